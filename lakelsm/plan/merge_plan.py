"""A MERGE: clauses checked against the table, and the query that decides what the merge does with each row.

One query joins the target with the source. Each of its rows is a row that the merge writes: the number of the clause
that applies, the columns of the target's row, and the new values of each clause, NULL for all other clauses. Levels of
the query have the columns that their clauses may name: first both sides, then the source alone, then the target alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass

from lakelsm.errors import InvalidInputError
from lakelsm.plan.update_plan import UpdatePlan, plan_update
from lakelsm.schema.engine_rules import check_deletable
from lakelsm.schema.identifiers import alike, match
from lakelsm.schema.system_columns import KEY_FIELD_PREFIX
from lakelsm.snapshots.table_store import TableStore

#: Names of the two tables in the text of the query.
TARGET, SOURCE = "lakelsm_merge_target_", "lakelsm_merge_source_"
#: The rows that a clause is for.
MATCHED, NOT_MATCHED, NOT_MATCHED_BY_SOURCE = "matched", "not matched", "not matched by source"
#: What a clause does.
UPDATE, DELETE, INSERT = "update", "delete", "insert"

#: Columns of the query: the clause, the rows of its key, and whether the table has the key of an inserted row.
ACTION, COPIES, IS_KNOWN = "_KEY__MERGE_ACTION", "_KEY__MERGE_COPIES", "_KEY__MERGE_KNOWN"
_IN_TARGET, _IN_SOURCE = "_KEY__MERGE_IN_TARGET", "_KEY__MERGE_IN_SOURCE"
_CHOICES = {MATCHED: "_KEY__MERGE_M", NOT_MATCHED: "_KEY__MERGE_N", NOT_MATCHED_BY_SOURCE: "_KEY__MERGE_S"}
_INSERTED = "_KEY__MERGE_I{}"
_OLD = "_KEY__MERGE_T{}"


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
    """``on`` is a condition in SQL. ``compares_key``: it is false unless both sides have the same primary key."""

    on: str
    clauses: tuple[MergeRule, ...]
    target_alias: str
    source_alias: str
    _: KW_ONLY
    compares_key: bool = False


@dataclass(frozen=True)
class PlannedClause:
    """A clause with its number in the query, from 1.

    ``values`` are its expressions by column of the table. ``update`` is how an update is checked. ``same`` are key
    columns of ``*`` with their expressions: they must have the value of the target's row.
    """

    number: int
    clause: MergeRule
    values: Mapping[str, str]
    _: KW_ONLY
    update: UpdatePlan | None = None
    same: Mapping[str, str] | None = None

    def column(self, name: str) -> str:
        """The query's column with the new value of a column."""
        return f"_KEY__MERGE_V{self.number}_{list(self.values).index(name)}"

    @property
    def changes_key(self) -> str:
        """The query's column that is TRUE for a row whose key the update would change."""
        return f"_KEY__MERGE_K{self.number}"


@dataclass(frozen=True)
class MergePlan:
    """``old`` are the query's columns of the target's row by column. ``finds_known``: the query has `IS_KNOWN`."""

    text: str
    clauses: tuple[PlannedClause, ...]
    old: Mapping[str, str]
    finds_known: bool

    def numbers(self, action: str) -> list[int]:
        """The numbers of the clauses with an action."""
        return [each.number for each in self.clauses if each.clause.action == action]


def plan_merge(store: TableStore, request: MergeRequest, source: Sequence[str]) -> MergePlan:
    """Plan a merge of a source with the columns ``source``.

    Raises InvalidInputError for clauses that the table, its merge engine or the source does not allow.
    """
    _check_clauses(request.clauses)
    _check_source(source, request)
    planned = tuple(_planned(store, request, at, source) for at, _ in enumerate(request.clauses))
    inserts = [each for each in planned if each.clause.action == INSERT]
    keys = store.schema.primary_keys
    own = all(_is_source_column(each.values[key], key, request, source) for each in inserts for key in keys)
    old = {name: _OLD.format(at) for at, name in enumerate(store.schema.field_names)}
    finds_known = bool(inserts) and not (request.compares_key and own)
    query = _MergeQuery(request, planned, old, keys, source=source, finds_known=finds_known)
    return MergePlan(query.text(), planned, old, finds_known)


def duplicate_fault(key: str) -> str:
    """The fault of a key of which a merge would write two rows."""
    return f"merge: two rows of the source change the row with the key {key}. Make the source unique"


def known_fault(key: str) -> str:
    """The fault of an inserted row whose key the table has."""
    return f"merge: the table already has a row with the key {key} of an inserted row. Compare the primary key in ON"


def changed_key_fault(names: Sequence[str]) -> str:
    """The fault of an update with ``*`` from a row with another key."""
    return f"merge: an update of all columns would change the key ({', '.join(names)}). Name the columns to update"


def _check_clauses(clauses: Sequence[MergeRule]) -> None:
    if not clauses:
        raise InvalidInputError("merge: there is no clause. Add, for example, when_matched_update().")
    for rows in _CHOICES:
        conditions = [each.condition for each in clauses if each.rows == rows]
        if None in conditions[:-1]:
            raise InvalidInputError(
                f"merge: a clause follows one for all rows that are {rows}, so it has no effect. "
                "Only the last of these clauses can be without a condition."
            )


def _check_source(source: Sequence[str], request: MergeRequest) -> None:
    twice = alike(source)
    if twice is not None:
        raise InvalidInputError(f"merge: columns {twice[0]!r} and {twice[1]!r} of the source have one name. Rename one.")
    for name in source:
        if name.upper().startswith(KEY_FIELD_PREFIX):
            raise InvalidInputError(f"merge: column {name!r} of the source: names with '_KEY_' are reserved. Rename it.")
    if request.target_alias.lower() == request.source_alias.lower():
        raise InvalidInputError(
            f"merge: the target and the source are both called {request.source_alias!r}. Give one another alias."
        )


def _planned(store: TableStore, request: MergeRequest, at: int, source: Sequence[str]) -> PlannedClause:
    clause, number = request.clauses[at], at + 1
    schema = store.schema
    if clause.action == DELETE:
        check_deletable(store.name, store.options)
        return PlannedClause(number, clause, {})
    own = store.options.rowkind_field
    if clause.action == INSERT:
        values = _named(store, clause.values) if clause.values is not None else _all(store, request, source)
        missing = [name for name in schema.primary_keys if name not in values]
        if missing:
            raise InvalidInputError(f"Table {store.name}: merge: an insert has no value for key column {missing[0]!r}.")
        if own in values:
            raise InvalidInputError(f"Table {store.name}: merge: column {own!r} has the kind of the row. Leave it out.")
        return PlannedClause(number, clause, values)
    if clause.values is not None:
        plan = plan_update(store, clause.values)
        return PlannedClause(number, clause, plan.values, update=plan)
    every = _all(store, request, source)
    fixed = {*schema.primary_keys, *schema.partition_keys, *schema.bucket_keys}
    plan = plan_update(store, {name: text for name, text in every.items() if name not in fixed})
    same = {name: text for name, text in every.items() if name in fixed}
    return PlannedClause(number, clause, plan.values, update=plan, same=same)


def _all(store: TableStore, request: MergeRequest, source: Sequence[str]) -> dict[str, str]:
    """``*``: the columns of the source with the names of the table's columns."""
    found = {}
    for name in store.schema.field_names:
        if name == store.options.rowkind_field:
            continue  # The merge writes the kind.
        column = match(name, source)
        if column is None:
            raise InvalidInputError(
                f"Table {store.name}: merge: the source has no column {name!r}, which an update or insert of all columns "
                f"needs. Name the columns. Columns of the source: {', '.join(source)}."
            )
        found[name] = f"{quoted(request.source_alias)}.{quoted(column)}"
    return found


def _named(store: TableStore, values: Mapping[str, str]) -> dict[str, str]:
    named: dict[str, str] = {}
    for name, text in values.items():
        column = match(name, store.schema.field_names)
        if column is None:
            raise InvalidInputError(
                f"Table {store.name}: merge: column {name!r} does not exist. Columns: "
                f"{', '.join(store.schema.field_names)}."
            )
        if column in named:
            raise InvalidInputError(f"Table {store.name}: merge: column {column!r} occurs twice. Name it once.")
        named[column] = text
    return named


def _is_source_column(text: str, key: str, request: MergeRequest, source: Sequence[str]) -> bool:
    """Whether an expression is the source's column with the name of a key column."""
    plain = text.replace("`", "").strip().lower()
    return match(key, source) is not None and plain in (f"{request.source_alias}.{key}".lower(), key.lower())


def quoted(name: str) -> str:
    """A name in backticks."""
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True)
class _MergeQuery:
    """The query of a merge, level by level. The text of an expression ends before a new line: it may end in a comment."""

    request: MergeRequest
    clauses: Sequence[PlannedClause]
    old: Mapping[str, str]
    keys: Sequence[str]
    _: KW_ONLY
    source: Sequence[str]
    finds_known: bool

    def text(self) -> str:
        """The whole query."""
        columns = [_IN_TARGET, _IN_SOURCE, *self.old.values()]
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

    def _columns(self, rows: str) -> list[str]:
        """The names of `_items`."""
        found = [_CHOICES[rows]] if self._of(rows) else []
        for each in self._of(rows):
            found += [each.column(name) for name in each.values]
            found += [each.changes_key] if each.same else []
        return found

    def _items(self, rows: str) -> list[str]:
        """The number of the clause that applies, and the new values of the clauses."""
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
            items += [f"{applies} ({text}\n) END AS {each.column(name)}" for name, text in each.values.items()]
            if each.same:
                target = quoted(self.request.target_alias)
                tests = [f"NOT ({target}.{quoted(name)} <=> {text})" for name, text in each.same.items()]
                items.append(f"{applies} {' OR '.join(tests)} END AS {each.changes_key}")
        return items

    def _joined(self) -> str:
        """The join, with the clauses that may name both sides."""
        target, source = quoted(self.request.target_alias), quoted(self.request.source_alias)
        inserts, by_source = bool(self._of(NOT_MATCHED)), bool(self._of(NOT_MATCHED_BY_SOURCE))
        join = {(False, False): "INNER", (True, False): "RIGHT", (False, True): "LEFT", (True, True): "FULL"}
        items = [_IN_TARGET, _IN_SOURCE]
        items += [f"{target}.{quoted(name)} AS {old}" for name, old in self.old.items()]
        items += self._items(MATCHED)
        if inserts:
            items += [f"{source}.{quoted(name)} AS {quoted(name)}" for name in self.source]
        return (
            f"SELECT {', '.join(items)} FROM (SELECT *, TRUE AS {_IN_TARGET} FROM {TARGET}) AS {target} "
            f"{join[inserts, by_source]} JOIN (SELECT *, TRUE AS {_IN_SOURCE} FROM {SOURCE}) AS {source} "
            f"ON ({self.request.on}\n)"
        )

    def _counted(self, text: str, columns: Sequence[str]) -> str:
        """The rows to which a clause applies, with the number of rows of each key."""
        choices = [name for rows, name in _CHOICES.items() if self._of(rows)]
        action = choices[0] if len(choices) == 1 else f"coalesce({', '.join(choices)})"
        inserted = list(self._inserted_keys())
        text = f"SELECT {', '.join([f'{action} AS {ACTION}', *columns, *inserted])} FROM ({text}) AS m"
        keys = [_IN_TARGET, *(self.old[key] for key in self.keys)]
        keys += [_INSERTED.format(at) for at in range(len(inserted))]
        partition = f"PARTITION BY {', '.join(f'm.{key}' for key in keys)}"
        matched = [each.clause for each in self._of(MATCHED)]
        # Two rows of the source can delete one row of the target, if nothing else can happen to it.
        deletes_all = [(each.action, each.condition) for each in matched] == [(DELETE, None)]
        copies = f"row_number() OVER ({partition} ORDER BY m.{ACTION})" if deletes_all else f"count(*) OVER ({partition})"
        items = [f"m.{name}" for name in (ACTION, _IN_TARGET, *columns[2:])]
        items += [f"{copies} AS {COPIES}"]
        known = ""
        if self.finds_known:
            tests = [f"m.{_INSERTED.format(at)} <=> k.{quoted(key)}" for at, key in enumerate(self.keys)]
            items.append(f"k.{IS_KNOWN} AS {IS_KNOWN}")
            named = ", ".join([*map(quoted, self.keys), f"TRUE AS {IS_KNOWN}"])
            tests.append(f"m.{_IN_TARGET} IS NULL")
            known = f" LEFT JOIN (SELECT {named} FROM {TARGET}) AS k ON {' AND '.join(tests)}"
        text = f"SELECT {', '.join(items)} FROM ({text}) AS m{known} WHERE m.{ACTION} IS NOT NULL"
        if not deletes_all:
            return text
        return f"SELECT * FROM ({text}) AS m WHERE {COPIES} = 1 OR {_IN_TARGET} IS NULL"

    def _inserted_keys(self) -> Iterator[str]:
        inserts = [each for each in self.clauses if each.clause.action == INSERT]
        for at, key in enumerate(self.keys if inserts else ()):
            values = [each.column(key) for each in inserts]
            found = values[0] if len(values) == 1 else f"coalesce({', '.join(values)})"
            yield f"{found} AS {_INSERTED.format(at)}"
