"""What an update sets and what has to hold of each row, so that a new +U row of a key gives the row that is asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, dataclass

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.merge.merge_spec import LAST_NON_NULL_VALUE, LAST_VALUE, MergeSpec
from lakelsm.options import MergeEngine
from lakelsm.schema.identifiers import match
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import has_nanoseconds

#: The fault of a row that its delete would leave as it is.
NO_SEQUENCE = (
    "a row that matches has no sequence in any group of 'partial-update.remove-record-on-sequence-group', so that the "
    "delete would be lost"
)


@dataclass(frozen=True)
class RowSequence:
    """Columns whose values must not become weaker: by them the row that is there would win.

    ``descending``: the smallest value wins. ``required``: where all of them are NULL a new row says nothing.
    """

    columns: tuple[str, ...]
    _: KW_ONLY
    descending: bool = False
    required: bool = False


@dataclass(frozen=True)
class UpdatePlan:
    """``values`` are SQL expressions by column. ``kept_by_null``: columns of which NULL leaves the value that is there.

    ``sequences`` decide whether the new row counts; those that an update does not touch tie, and the newer row wins.
    """

    values: Mapping[str, str]
    _: KW_ONLY
    sequences: tuple[RowSequence, ...] = ()
    kept_by_null: frozenset[str] = frozenset()


def plan_update(store: TableStore, values: Mapping[str, str]) -> UpdatePlan:
    """The update that sets columns (named in any case) to SQL expressions.

    Raises InvalidInputError for a column that cannot be set and for a merge engine that would not show the new row.
    """
    check_engine(store)
    named = _named(store, values)
    _check_settable(store, named)
    spec = MergeSpec.of(store.schema, store.options)
    orders = _sequences(spec)
    ordered = {*orders, *(name for group in spec.groups for name in group.governed)}
    if spec.engine is MergeEngine.PARTIAL_UPDATE:
        _check_functions(store, spec)
    _check_microseconds(store, {*store.schema.field_names} - ({*named} - orders), "an update")
    sequences = [RowSequence(group.sequence, required=True) for group in spec.groups if {*group.columns} & {*named}]
    if {*spec.sequence_columns} & {*named}:
        sequences.append(RowSequence(spec.sequence_columns, descending=spec.sequence_descending))
    kept = {
        rule.name
        for rule in spec.columns
        if rule.function == LAST_NON_NULL_VALUE or (rule.function is None and rule.name not in ordered)
    }
    return UpdatePlan(named, sequences=tuple(sequences), kept_by_null=frozenset(kept & {*named}))


def check_engine(store: TableStore) -> None:
    """Raises InvalidInputError for a merge engine with which no new row of a key stands for the row that is there."""
    engine = store.options.merge_engine
    why = {
        MergeEngine.FIRST_ROW: "keeps the first row of a key; overwrite its partitions instead",
        MergeEngine.AGGREGATION: "adds a new row to the one that is there; write the changes themselves instead",
    }
    if engine in why:
        raise InvalidInputError(
            f"Table {store.name} cannot be updated: its 'merge-engine' = '{engine.value}' {why[engine]}."
        )


def check_delete_exact(store: TableStore) -> None:
    """Raises UnsupportedFeatureError where a -D row of a row that was read may be of another key, or lose to the row."""
    spec = MergeSpec.of(store.schema, store.options)
    _check_microseconds(store, {*store.schema.primary_keys, *_sequences(spec)}, "a delete")


def _sequences(spec: MergeSpec) -> set[str]:
    """The columns by whose values a row wins."""
    return {*spec.sequence_columns, *(name for group in spec.groups for name in group.sequence)}


def _check_microseconds(store: TableStore, names: Collection[str], operation: str) -> None:
    """Raises UnsupportedFeatureError where one of the columns has times that Spark would cut as rows pass through it."""
    for field in store.schema.fields:
        if field.name in names and has_nanoseconds(field.type):
            raise UnsupportedFeatureError(
                f"Table {store.name}: {operation} would cut column '{field.name}' ({field.type.sql()}) to Spark's "
                "microseconds, and the rows would be others; use Apache Paimon for it."
            )


def _named(store: TableStore, values: Mapping[str, str]) -> dict[str, str]:
    """The values by the table's own names."""
    named: dict[str, str] = {}
    for name, value in values.items():
        known = match(name, store.schema.field_names)
        if known is None:
            raise InvalidInputError(
                f"set names '{name}', which is no column of table {store.name}; it has "
                f"{', '.join(store.schema.field_names)}."
            )
        if known in named:
            raise InvalidInputError(f"set names column '{known}' of table {store.name} twice: leave one out.")
        named[known] = value
    return named


def _check_settable(store: TableStore, names: Collection[str]) -> None:
    schema = store.schema
    why = {
        **dict.fromkeys(schema.bucket_keys, "is part of the bucket key"),
        **dict.fromkeys(schema.primary_keys, "is part of the primary key"),
        **dict.fromkeys(schema.partition_keys, "is a partition column"),
    }
    if store.options.rowkind_field is not None:
        why[store.options.rowkind_field] = "holds the kind of the row ('rowkind.field')"
    for name in names:
        if name in why:
            raise InvalidInputError(
                f"set names column '{name}' of table {store.name}, which {why[name]} and cannot be updated: delete the "
                "rows and write them anew."
            )


def _check_functions(store: TableStore, spec: MergeSpec) -> None:
    """An update writes all columns of a row again, and a function would take them as new input."""
    for rule in spec.columns:
        if rule.function not in (None, LAST_VALUE, LAST_NON_NULL_VALUE):
            raise InvalidInputError(
                f"Table {store.name} cannot be updated: it merges column '{rule.name}' with the aggregate function "
                f"'{rule.function}', which would count what is there twice; write the changes themselves instead."
            )
