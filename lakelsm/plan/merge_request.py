"""The parts of a MERGE as its caller writes them: the condition, the clauses, and what happens to repeated rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field

from lakelsm.plan.update_plan import UpdatePlan

#: The rows that a clause is for.
MATCHED, NOT_MATCHED, NOT_MATCHED_BY_SOURCE = "matched", "not matched", "not matched by source"
#: What a clause does.
UPDATE, DELETE, INSERT = "update", "delete", "insert"

#: The column of a source whose rows have an order: the number of the row.
ROW_NUMBER = "_KEY__MERGE_ROW"


@dataclass(frozen=True)
class MergeRule:
    """WHEN … THEN … of a merge: the rows that it is for, a condition, an action, and expressions by column.

    ``values`` None: all columns of the table get the values of the source's columns with their names.
    """

    rows: str
    condition: str | None
    action: str
    values: Mapping[str, str] | None = None


@dataclass(frozen=True)
class MergeRequest:
    """``on`` is a condition in SQL. ``equal`` are columns of the source by the columns of the target that they equal.

    ``on`` is false for rows without these equalities; ``is_equality``: it is true for all rows with them. Of several
    source rows for one target row the merge takes the last one in the order of the columns ``order``; without it, they
    are an error. ``evolves``: the table gets the columns of the source that it lacks.
    """

    on: str
    clauses: tuple[MergeRule, ...]
    target_alias: str
    source_alias: str
    _: KW_ONLY
    equal: Mapping[str, str] = field(default_factory=dict)
    is_equality: bool = False
    order: tuple[str, ...] = ()
    evolves: bool = False


@dataclass(frozen=True)
class PlannedClause:
    """A clause with its number in the query, from 1.

    ``values`` are its expressions by column of the table. ``update`` is how an update is checked. ``same`` are key
    columns of ``*`` with their expressions: they must have the value of the target's row. ``copied`` are the columns of
    the source, by number, of those columns whose values they are; the others have expressions.
    """

    number: int
    clause: MergeRule
    values: Mapping[str, str]
    _: KW_ONLY
    update: UpdatePlan | None = None
    same: Mapping[str, str] | None = None
    copied: Mapping[str, int] = field(default_factory=dict)

    def column(self, name: str) -> str:
        """The query's column with the new value of a column. Clauses that copy a column of the source share it."""
        if name in self.copied:
            return f"_KEY__MERGE_C{self.copied[name]}"
        return f"_KEY__MERGE_V{self.number}_{list(self.values).index(name)}"

    @property
    def computed(self) -> Mapping[str, str]:
        """The expressions of the columns that are not copied."""
        return {name: text for name, text in self.values.items() if name not in self.copied}

    @property
    def changes_key(self) -> str:
        """The query's column that is TRUE for a row whose key the update would change."""
        return f"_KEY__MERGE_K{self.number}"

    def texts(self) -> Iterator[str]:
        """Yield the condition and the expressions."""
        if self.clause.condition is not None:
            yield self.clause.condition
        yield from self.values.values()
        yield from (self.same or {}).values()


def quoted(name: str) -> str:
    """Return a name in backticks."""
    return "`" + name.replace("`", "``") + "`"
