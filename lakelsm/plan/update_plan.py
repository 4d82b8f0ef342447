"""The values that an update sets, and the checks of each row that make a new +U row give the requested row."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from enum import Enum

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.merge.merge_spec import LAST_NON_NULL_VALUE, LAST_VALUE, MergeSpec
from lakelsm.options import MergeEngine
from lakelsm.schema.identifiers import match
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import DataField, has_nanoseconds

#: The fault of a row that its delete would not remove.
NO_SEQUENCE_FAULT = (
    "a row that matches has no sequence in any group of 'partial-update.remove-record-on-sequence-group', so that the "
    "delete would be lost"
)


@dataclass(frozen=True)
class RowSequence:
    """Columns whose values must not become weaker: with a weaker value the existing row would win.

    ``descending``: the smallest value wins. ``required``: if all of them are NULL, a new row has no effect.
    """

    columns: tuple[str, ...]
    _: KW_ONLY
    descending: bool = False
    required: bool = False


class RowFault(Enum):
    """What can be wrong with the new values of some columns of a row, given those that it has."""

    #: The new value of the only column is NULL.
    NULL = "null"
    #: The new value of the only column is NULL, and the present value is not.
    NULL_OVER_VALUE = "null over value"
    #: The new values lose to the present ones: NULL loses to all, otherwise the first difference decides.
    WEAKER = "weaker"
    #: All new values are NULL.
    ALL_NULL = "all null"


@dataclass(frozen=True)
class RowCheck:
    """No row that an update writes may have the ``fault`` in the columns; ``text`` is the error's.

    Columns that the update does not set keep their values. ``descending``: the smaller value is the stronger.
    """

    fault: RowFault
    columns: tuple[str, ...]
    text: str
    _: KW_ONLY
    descending: bool = False


@dataclass(frozen=True)
class UpdatePlan:
    """``values`` are SQL expressions by column. ``kept_by_null``: columns in which NULL keeps the present value.

    ``sequences`` decide whether the new row counts; those that an update does not touch tie, and the newer row wins.
    ``required`` columns are NOT NULL.
    """

    values: Mapping[str, str]
    _: KW_ONLY
    sequences: tuple[RowSequence, ...] = ()
    kept_by_null: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()

    def checks(self) -> Iterator[RowCheck]:
        """What each engine checks of the rows that it writes."""
        for name in self.values:
            if name in self.required:
                text = f"set makes column '{name}', which is NOT NULL, NULL in a row that matches"
                yield RowCheck(RowFault.NULL, (name,), text)
            elif name in self.kept_by_null:
                text = f"set makes column '{name}' NULL, and with 'merge-engine' = 'partial-update' NULL leaves the value"
                yield RowCheck(RowFault.NULL_OVER_VALUE, (name,), text)
        for sequence in self.sequences:
            names = ", ".join(f"'{name}'" for name in sequence.columns)
            text = f"set makes a row older than it is by its sequence {names}, so that the update would be lost"
            yield RowCheck(RowFault.WEAKER, sequence.columns, text, descending=sequence.descending)
            if sequence.required:
                text = f"a row that matches has no sequence {names}, so that the update of its group would be lost"
                yield RowCheck(RowFault.ALL_NULL, sequence.columns, text)


def out_of_range(field: DataField) -> str:
    """The fault of a number that its column cannot have."""
    return f"set gives column '{field.name}' a number that {field.type.sql()} has no place for"


def other_type(field: DataField, source: str, target: str) -> InvalidInputError:
    """The error for a value of another type; ``source`` and ``target`` are types as the engine names them."""
    return InvalidInputError(
        f"set gives column '{field.name}' ({field.type.sql()}) a value of type {source}: cast it to {target}."
    )


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
    sequences = [RowSequence(group.sequence, required=True) for group in spec.groups if {*group.columns} & {*named}]
    if {*spec.sequence_columns} & {*named}:
        sequences.append(RowSequence(spec.sequence_columns, descending=spec.sequence_descending))
    kept = {
        rule.name
        for rule in spec.columns
        if rule.function == LAST_NON_NULL_VALUE or (rule.function is None and rule.name not in ordered)
    }
    return UpdatePlan(
        named,
        sequences=tuple(sequences),
        kept_by_null=frozenset(kept & {*named}),
        required=frozenset(name for name in named if not store.schema.field(name).type.nullable),
    )


def check_engine(store: TableStore) -> None:
    """Raises InvalidInputError for a merge engine with which a new row of a key cannot replace the present one."""
    engine = store.options.merge_engine
    why = {
        MergeEngine.FIRST_ROW: "keeps the first row of a key; overwrite its partitions instead",
        MergeEngine.AGGREGATION: "adds a new row to the one that is there; write the changes themselves instead",
    }
    if engine in why:
        raise InvalidInputError(
            f"Table {store.name} cannot be updated: its 'merge-engine' = '{engine.value}' {why[engine]}."
        )


def _sequences(spec: MergeSpec) -> set[str]:
    """The columns by whose values a row wins."""
    return {*spec.sequence_columns, *(name for group in spec.groups for name in group.sequence)}


def check_microseconds(store: TableStore, names: Collection[str], operation: str) -> None:
    """Raises UnsupportedFeatureError where one of the columns has times that Spark cuts as it compares them."""
    for field in store.schema.fields:
        if field.name in names and has_nanoseconds(field.type):
            raise UnsupportedFeatureError(
                f"Table {store.name}: on Spark {operation} compares column '{field.name}' ({field.type.sql()}) by "
                "microseconds, so that it could miss rows or lose. Pass engine='local', or keys as Arrow."
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
