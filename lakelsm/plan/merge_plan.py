"""A MERGE: clauses checked against the table, the query that both engines run, and the columns that it reads."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.plan.merge_query import MergeQuery, named_columns
from lakelsm.plan.merge_request import (
    DELETE,
    INSERT,
    MATCHED,
    NOT_MATCHED,
    NOT_MATCHED_BY_SOURCE,
    ROW_NUMBER,
    MergeRequest,
    MergeRule,
    PlannedClause,
    quoted,
)
from lakelsm.plan.update_plan import plan_update
from lakelsm.schema.engine_rules import check_deletable
from lakelsm.schema.identifiers import alike, folded, match
from lakelsm.schema.system_columns import KEY_FIELD_PREFIX
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import INTEGER_ROOTS, AtomicType, DataField, DataType

#: The query's column of a column of the target's row.
_OLD = "_KEY__MERGE_T{}"
_TEXTS = ("VARCHAR", "VARBINARY")


@dataclass(frozen=True)
class MergePlan:
    """``old`` are the query's columns of the target's row by column: those that a written row or a check needs.

    ``target`` and ``source`` are the columns that the query reads. ``finds_known``: the query has `IS_KNOWN`. ``pairs``
    are columns of the source by the key columns of the target: a row of the target without these values has no effect.
    ``inserted`` are those that an insert copies to the key, ``known_pairs`` those of the second read of the keys.
    """

    query: MergeQuery
    clauses: tuple[PlannedClause, ...]
    old: Mapping[str, str]
    finds_known: bool
    _: KW_ONLY
    target: tuple[str, ...]
    source: tuple[str, ...]
    pairs: Mapping[str, str] = field(default_factory=dict)
    inserted: Mapping[str, str] = field(default_factory=dict)
    known_pairs: Mapping[str, str] = field(default_factory=dict)

    def text(self, unique: Collection[str] = ()) -> str:
        """Return the text of the query. ``unique`` are columns of the source without NULL and equal values."""
        known = {column for column, name in self.pairs.items() if name in unique}
        if self.numbers(INSERT):
            known = {column for column in known if self.inserted.get(column) == self.pairs[column]}
        return replace(self.query, is_unique=bool(known)).text()

    def numbers(self, action: str) -> list[int]:
        """Return the numbers of the clauses with an action."""
        return [each.number for each in self.clauses if each.clause.action == action]


def merge_columns(columns: Iterable[tuple[str, DataType | None]]) -> dict[str, DataType | None]:
    """Return the columns of a source for `plan_merge`. Raises InvalidInputError for two columns with one name."""
    found: dict[str, DataType | None] = {}
    for name, kind in columns:
        if name in found:
            raise _one_name(name, name)
        if name != ROW_NUMBER:
            found[name] = kind
    return found


def plan_merge(store: TableStore, request: MergeRequest, source: Mapping[str, DataType | None]) -> MergePlan:
    """Plan a merge of a source with the columns ``source`` and their types; None is a type that Paimon does not have.

    Raises InvalidInputError for clauses that the table, its merge engine or the source does not allow.
    """
    _check_clauses(request.clauses)
    _check_source(list(source), request)
    clauses = (_planned(store, request, at, list(source)) for at, _ in enumerate(request.clauses))
    planned = tuple(replace(each, copied=_copied(request, each, list(source))) for each in clauses)
    inserts = [each for each in planned if each.clause.action == INSERT]
    if request.order:
        _check_order(store, request, inserts, source)
    keys = store.schema.primary_keys
    inserted = dict(_inserted_columns(store, request, inserts, source))
    equal = dict(_equal_keys(store, request, source))
    own = request.is_equality and {*keys} <= {*inserted} and all(equal.get(key) == inserted[key] for key in keys)
    old = {name: _OLD.format(at) for at, name in enumerate(_kept_columns(store, planned, request.source_alias))}
    finds_known = bool(inserts) and not own
    texts = [request.on, *(text for each in planned for text in each.texts())]
    named = named_columns(texts, store.schema.field_names, request.source_alias)
    target = tuple(name for name in store.schema.field_names if name in old or name in named)
    columns = tuple(dict.fromkeys((*named_columns(texts, source, request.target_alias), *request.order)))
    copied = {each.column(name): list(source)[at] for each in planned for name, at in each.copied.items()}
    query = MergeQuery(
        request, planned, old, keys, target=target, source=columns, finds_known=finds_known, copied=copied
    )
    reads_all = any(each.clause.rows == NOT_MATCHED_BY_SOURCE for each in planned)
    return MergePlan(
        query,
        planned,
        old,
        finds_known,
        target=target,
        source=columns,
        pairs={} if reads_all else equal,
        inserted=inserted,
        known_pairs=inserted if finds_known else {},
    )


def _kept_columns(store: TableStore, clauses: Sequence[PlannedClause], source_alias: str) -> list[str]:
    """Return the columns of the target's row that written rows, checks or clauses for the target alone need."""
    every, kept = store.schema.field_names, {*store.schema.primary_keys}
    for each in clauses:
        if each.clause.rows == NOT_MATCHED_BY_SOURCE:
            kept.update(named_columns(each.texts(), every, source_alias))
        if each.clause.action == DELETE:
            kept.update(every)
        elif each.update is not None:
            kept.update(name for name in every if name not in each.values)
            kept.update(name for check in each.update.checks() for name in check.columns)
    return [name for name in every if name in kept]


def _equal_keys(
    store: TableStore, request: MergeRequest, source: Mapping[str, DataType | None]
) -> Iterator[tuple[str, str]]:
    """Yield the key columns that equal a column of the source, whose values have one form in both."""
    for name, other in request.equal.items():
        column, given = match(name, store.schema.primary_keys), match(other, source)
        if column is not None and given is not None and _has_same_values(store.schema.field(column), source[given]):
            yield column, given


def _inserted_columns(
    store: TableStore,
    request: MergeRequest,
    inserts: Sequence[PlannedClause],
    source: Mapping[str, DataType | None],
) -> Iterator[tuple[str, str]]:
    """Yield the key columns which all inserts fill with the same column of the source."""
    for key in store.schema.primary_keys if inserts else ():
        texts = {folded(each.values[key].strip()) for each in inserts}
        for name, kind in source.items():
            if texts <= set(_spellings(request.source_alias, name)) and _has_same_values(store.schema.field(key), kind):
                yield key, name


def _copied(request: MergeRequest, clause: PlannedClause, source: Sequence[str]) -> dict[str, int]:
    """Return the numbers of the source's columns that a clause copies, by the columns that get their values."""
    if clause.clause.rows == NOT_MATCHED_BY_SOURCE:
        return {}
    # A name alone can also be a column of the target.
    skipped = 2 if clause.clause.rows == MATCHED else 0
    spelled = {
        text: at
        for at, name in reversed(list(enumerate(source)))
        for text in list(_spellings(request.source_alias, name))[skipped:]
    }
    texts = {name: folded(text.strip()) for name, text in clause.values.items()}
    return {name: spelled[text] for name, text in texts.items() if text in spelled}


def _spellings(alias: str, name: str) -> Iterator[str]:
    """Yield the expressions that are a column of the source."""
    names = [quoted(folded(name)), folded(name)]
    yield from names
    yield from (f"{one}.{other}" for one in (quoted(folded(alias)), folded(alias)) for other in names)


def _has_same_values(field: DataField, given: DataType | None) -> bool:
    """Return whether equal values of a column and of a type are one value, which no cast changes."""
    if given is None:
        return False
    if field.type.root in INTEGER_ROOTS:
        return given.root in INTEGER_ROOTS
    return field.type.root == given.root and (
        field.type.root in _TEXTS or field.type.with_nullable(True) == given.with_nullable(True)
    )


def duplicate_fault(key: str) -> str:
    """The fault of a key of which a merge would write two rows."""
    return f"merge: two rows of the source change the row with the key {key}. Make the source unique"


def known_fault(key: str) -> str:
    """The fault of an inserted row whose key the table has."""
    return f"merge: the table already has a row with the key {key} of an inserted row. Compare the primary key in ON"


def changed_key_fault(names: Sequence[str]) -> str:
    """The fault of an update with ``*`` from a row with another key."""
    return f"merge: an update of all columns would change the key ({', '.join(names)}). Name the columns to update"


def check_inserted_key(field: DataField, given: DataType) -> None:
    """Raise InvalidInputError for a type of an inserted key from which a cast makes one key of two values."""
    kind = field.type
    exact = {
        "DOUBLE": ("DOUBLE", "FLOAT", "INT", "SMALLINT", "TINYINT"),
        "FLOAT": ("FLOAT", "SMALLINT", "TINYINT"),
        "DECIMAL": ("DECIMAL", *INTEGER_ROOTS),
    }.get(kind.root, tuple(INTEGER_ROOTS) if kind.root in INTEGER_ROOTS else None)
    is_finer = isinstance(kind, AtomicType) and isinstance(given, AtomicType) and (given.scale or 0) > (kind.scale or 0)
    if exact is not None and (given.root not in exact or (kind.root == "DECIMAL" and is_finer)):
        target = kind.with_nullable(True).sql()
        raise InvalidInputError(
            f"merge: key column '{field.name}' is {target}, but its inserted value is {given.sql()}. Cast it to {target}."
        )


def _check_clauses(clauses: Sequence[MergeRule]) -> None:
    if not clauses:
        raise InvalidInputError("merge: there is no clause. Add, for example, when_matched_update().")
    for rows in (MATCHED, NOT_MATCHED, NOT_MATCHED_BY_SOURCE):
        conditions = [each.condition for each in clauses if each.rows == rows]
        if None in conditions[:-1]:
            raise InvalidInputError(
                f"merge: a clause follows one for all rows that are {rows}, so it has no effect. "
                "Only the last of these clauses can be without a condition."
            )


def _check_source(source: Sequence[str], request: MergeRequest) -> None:
    twice = alike(source)
    if twice is not None:
        raise _one_name(*twice)
    for name in source:
        if name.upper().startswith(KEY_FIELD_PREFIX):
            raise InvalidInputError(f"merge: column {name!r} of the source: names with '_KEY_' are reserved. Rename it.")
    if request.target_alias.lower() == request.source_alias.lower():
        raise InvalidInputError(
            f"merge: the target and the source are both called {request.source_alias!r}. Give one another alias."
        )


def _one_name(one: str, other: str) -> InvalidInputError:
    return InvalidInputError(f"merge: columns {one!r} and {other!r} of the source have one name. Rename one.")


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
        if column is None and request.evolves:
            continue  # An update keeps the value, and an insert writes NULL.
        if column is None:
            raise InvalidInputError(
                f"Table {store.name}: merge: the source has no column {name!r}, which an update or insert of all columns "
                f"needs. Name the columns. Columns of the source: {', '.join(source)}."
            )
        found[name] = f"{quoted(request.source_alias)}.{quoted(column)}"
    return found


def _check_order(
    store: TableStore, request: MergeRequest, inserts: Sequence[PlannedClause], source: Iterable[str]
) -> None:
    """Raise an error if inserts have different keys for a row, so that the last row of a key is not defined."""
    for key in store.schema.primary_keys:
        texts = {folded(each.values[key].strip()) for each in inserts}
        if len(texts) > 1 and not any(texts <= {*_spellings(request.source_alias, name)} for name in source):
            raise UnsupportedFeatureError(
                f"Table {store.name}: merge: duplicates='last' needs one expression of the key column {key!r} in all "
                "inserts. Write the same one."
            )


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
