"""The query that decides what a merge does with each row.

It joins the target with the source. Each of its rows is a row that the merge writes: the number of the clause that
applies, the columns of the target's row, and the new values of each clause, NULL for all other clauses. Levels of the
query have the columns that their clauses may name: first both sides, then the source alone, then the target alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

from lakelsm.plan.merge_request import (
    DELETE,
    INSERT,
    MATCHED,
    NOT_MATCHED,
    NOT_MATCHED_BY_SOURCE,
    MergeRequest,
    PlannedClause,
    quoted,
)
from lakelsm.schema.identifiers import folded

#: Names of the tables in the text of the query: the target, its keys once more, and the source.
TARGET, KNOWN, SOURCE = "lakelsm_merge_target_", "lakelsm_merge_known_", "lakelsm_merge_source_"

#: Columns of the query: the clause, the rows of its key, and whether the table has the key of an inserted row.
ACTION, COPIES, IS_KNOWN = "_KEY__MERGE_ACTION", "_KEY__MERGE_COPIES", "_KEY__MERGE_KNOWN"
_IN_TARGET, _IN_SOURCE = "_KEY__MERGE_IN_TARGET", "_KEY__MERGE_IN_SOURCE"
_CHOICES = {MATCHED: "_KEY__MERGE_M", NOT_MATCHED: "_KEY__MERGE_N", NOT_MATCHED_BY_SOURCE: "_KEY__MERGE_S"}
_INSERTED, _ORDER, _RANK = "_KEY__MERGE_I{}", "_KEY__MERGE_O{}", "_KEY__MERGE_RANK"

_WORD = re.compile(r"\w+")
#: A star that stands for columns, as in ``hash(*)`` or ``struct(t.*)``. It may also be a product.
_STAR = re.compile(r"[.(,]\s*\*")


def named_columns(texts: Iterable[str], names: Iterable[str], other: str) -> list[str]:
    """Return those of ``names`` that some expressions may use, without what they qualify with the name ``other``.

    A name that is only within a literal may be among them.
    """
    text = folded("\n".join(texts))
    if _STAR.search(text):
        return list(names)
    other = folded(other)
    qualifier = rf"(?<![\w.`])({re.escape(quoted(other))}|\b{re.escape(other)}\b)\s*\.\s*(?:\w+|`(?:[^`]|``)*`)"
    # The qualifier stays: it may be a column with members.
    text = re.sub(qualifier, r"\1", text)
    words = set(_WORD.findall(text))
    return [
        name
        for name in names
        if folded(name) in words or (not _WORD.fullmatch(name) and folded(name.replace("`", "``")) in text)
    ]


@dataclass(frozen=True)
class MergeQuery:
    """The query, level by level. The text of an expression ends before a new line: it may end in a comment.

    ``old`` are the query's columns of the target's row by column. ``target`` and ``source`` are the columns that it
    reads. ``copied`` are columns of the source by the query's columns. ``is_unique``: no two rows of the source can
    write one key.
    """

    request: MergeRequest
    clauses: Sequence[PlannedClause]
    old: Mapping[str, str]
    keys: Sequence[str]
    _: KW_ONLY
    target: Sequence[str]
    source: Sequence[str]
    finds_known: bool
    copied: Mapping[str, str] = field(default_factory=dict)
    is_unique: bool = False

    def text(self) -> str:
        """Return the whole query."""
        columns = [_IN_TARGET, _IN_SOURCE, *self.old.values(), *self.copied, *self._orders()]
        text = self._joined()
        columns += self._columns(MATCHED)
        if self._of(NOT_MATCHED):
            items = [*columns, *self._items(NOT_MATCHED)]
            text = f"SELECT {', '.join(items)} FROM ({text}) AS {quoted(self.request.source_alias)}"
            columns += self._columns(NOT_MATCHED)
        if self._of(NOT_MATCHED_BY_SOURCE):
            shown = [f"{old} AS {quoted(name)}" for name, old in self.old.items()]
            inner = f"SELECT {', '.join([*columns, *shown])} FROM ({text}) AS m"
            items = [*columns, *self._items(NOT_MATCHED_BY_SOURCE)]
            text = f"SELECT {', '.join(items)} FROM ({inner}) AS {quoted(self.request.target_alias)}"
            columns += self._columns(NOT_MATCHED_BY_SOURCE)
        return self._counted(text, [name for name in columns if name not in _CHOICES.values()])

    def _of(self, rows: str) -> list[PlannedClause]:
        return [each for each in self.clauses if each.clause.rows == rows]

    def _orders(self) -> list[str]:
        return [_ORDER.format(at) for at, _ in enumerate(self.request.order)]

    def _columns(self, rows: str) -> list[str]:
        """Return the names of `_items`."""
        found = [_CHOICES[rows]] if self._of(rows) else []
        for each in self._of(rows):
            found += [each.column(name) for name in each.computed]
            found += [each.changes_key] if each.same else []
        if found and rows == NOT_MATCHED and self.request.order:
            found += [_INSERTED.format(at) for at, _ in enumerate(self.keys)]
        return found

    def _items(self, rows: str) -> list[str]:
        """Return the number of the clause that applies, and the new values of the clauses."""
        clauses = self._of(rows)
        if not clauses:
            return []
        here = {
            MATCHED: f"{_IN_TARGET} AND {_IN_SOURCE}",
            NOT_MATCHED: f"{_IN_TARGET} IS NULL",
            NOT_MATCHED_BY_SOURCE: f"{_IN_SOURCE} IS NULL",
        }[rows]
        choice = _CHOICES[rows]
        tests = [f"WHEN ({each.clause.condition or 'TRUE'}\n) THEN {each.number}" for each in clauses]
        items = [f"CASE WHEN {here} THEN CASE {' '.join(tests)} END END AS {choice}"]
        for each in clauses:
            applies = f"CASE WHEN {choice} = {each.number} THEN"
            items += [f"{applies} ({text}\n) END AS {each.column(name)}" for name, text in each.computed.items()]
            if each.same:
                target = quoted(self.request.target_alias)
                tests = [f"NOT ({target}.{quoted(name)} <=> {text})" for name, text in each.same.items()]
                items.append(f"{applies} {' OR '.join(tests)} END AS {each.changes_key}")
        if rows == NOT_MATCHED and self.request.order:
            # The last row of a key decides, even if no clause applies to it. All clauses insert the same key.
            for at, key in enumerate(self.keys):
                items.append(f"CASE WHEN {here} THEN ({clauses[0].values[key]}\n) END AS {_INSERTED.format(at)}")
        return items

    def _joined(self) -> str:
        """Return the join, with the clauses that may name both sides."""
        target, source = quoted(self.request.target_alias), quoted(self.request.source_alias)
        inserts, by_source = bool(self._of(NOT_MATCHED)), bool(self._of(NOT_MATCHED_BY_SOURCE))
        join = {(False, False): "INNER", (True, False): "RIGHT", (False, True): "LEFT", (True, True): "FULL"}
        items = [_IN_TARGET, _IN_SOURCE]
        items += [f"{target}.{quoted(name)} AS {old}" for name, old in self.old.items()]
        items += [f"{source}.{quoted(name)} AS {copy}" for copy, name in self.copied.items()]
        items += [f"{source}.{quoted(name)} AS {_ORDER.format(at)}" for at, name in enumerate(self.request.order)]
        items += self._items(MATCHED)
        if inserts:
            items += [f"{source}.{quoted(name)} AS {quoted(name)}" for name in self.source]
        return (
            f"SELECT {', '.join(items)} FROM {_side(self.target, _IN_TARGET, TARGET)} AS {target} "
            f"{join[inserts, by_source]} JOIN {_side(self.source, _IN_SOURCE, SOURCE)} AS {source} "
            f"ON ({self.request.on}\n)"
        )

    def _counted(self, text: str, columns: Sequence[str]) -> str:
        """Return the rows to which a clause applies, with the number of rows of each key."""
        choices = [name for rows, name in _CHOICES.items() if self._of(rows)]
        action = choices[0] if len(choices) == 1 else f"coalesce({', '.join(choices)})"
        inserted = list(self._inserted_keys())
        text = f"SELECT {', '.join([f'{action} AS {ACTION}', *columns, *inserted])} FROM ({text}) AS m"
        keys = [_IN_TARGET, *(self.old[key] for key in self.keys)]
        keys += [_INSERTED.format(at) for at, _ in enumerate(self.keys) if self._of(NOT_MATCHED)]
        items = [f"m.{name}" for name in (ACTION, _IN_TARGET, *columns[2:])]
        items += self._copies([f"m.{name}" for name in keys])
        known = ""
        if self.finds_known:
            tests = [f"m.{_INSERTED.format(at)} <=> k.{quoted(key)}" for at, key in enumerate(self.keys)]
            items.append(f"k.{IS_KNOWN} AS {IS_KNOWN}")
            named = ", ".join([*map(quoted, self.keys), f"TRUE AS {IS_KNOWN}"])
            tests.append(f"m.{_IN_TARGET} IS NULL")
            known = f" LEFT JOIN (SELECT {named} FROM {KNOWN}) AS k ON {' AND '.join(tests)}"
        text = f"SELECT {', '.join(items)} FROM ({text}) AS m{known}"
        if self.request.order and self._may_repeat:
            return f"SELECT * FROM ({text}) AS m WHERE {_RANK} = 1 AND {ACTION} IS NOT NULL"
        text = f"{text} WHERE m.{ACTION} IS NOT NULL"
        if not (self._may_repeat and self._deletes_all()):
            return text
        return f"SELECT * FROM ({text}) AS m WHERE {COPIES} = 1 OR {_IN_TARGET} IS NULL"

    @property
    def _may_repeat(self) -> bool:
        """Whether two rows of the query can have one key. Rows of the target that match no row do not."""
        return not self.is_unique and bool(self._of(MATCHED) or self._of(NOT_MATCHED))

    def _deletes_all(self) -> bool:
        """Return whether two rows of the source can delete one row: nothing else can happen to it."""
        matched = [each.clause for each in self._of(MATCHED)]
        return [(each.action, each.condition) for each in matched] == [(DELETE, None)]

    def _copies(self, keys: Sequence[str]) -> list[str]:
        """Return `COPIES`, and the rank of the row among those of its key if the last one is taken."""
        if not self._may_repeat:
            return [f"CAST(1 AS BIGINT) AS {COPIES}"]
        partition = f"PARTITION BY {', '.join(keys)}"
        if self.request.order:
            orders = [f"m.{name}" for name in self._orders()]
            last_first = ", ".join(f"{name} DESC NULLS LAST" for name in orders)
            return [
                f"rank() OVER ({partition} ORDER BY {last_first}) AS {_RANK}",
                f"count(*) OVER ({partition}, {', '.join(orders)}) AS {COPIES}",
            ]
        counted = f"row_number() OVER ({partition} ORDER BY m.{ACTION})" if self._deletes_all() else None
        return [f"{counted or f'count(*) OVER ({partition})'} AS {COPIES}"]

    def _inserted_keys(self) -> Iterator[str]:
        inserts = [each for each in self.clauses if each.clause.action == INSERT]
        for at, key in enumerate(self.keys if inserts and not self.request.order else ()):
            values = [each.column(key) for each in inserts]
            found = values[0] if len(values) == 1 else f"coalesce({', '.join(values)})"
            yield f"CASE WHEN {_IN_TARGET} IS NULL THEN {found} END AS {_INSERTED.format(at)}"


def _side(columns: Sequence[str], flag: str, name: str) -> str:
    return f"(SELECT {', '.join([*map(quoted, columns), f'TRUE AS {flag}'])} FROM {name})"
