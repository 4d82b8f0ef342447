"""The values that an update sets, and the checks which ensure that each new +U row becomes the visible row."""

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

#: The fault of a row that a delete would not remove.
NO_SEQUENCE_FAULT = (
    "a matching row has no sequence in any group of 'partial-update.remove-record-on-sequence-group', so the delete "
    "would have no effect"
)


@dataclass(frozen=True)
class RowSequence:
    """Columns whose new values must not lose against the old ones, because the old row would win.

    ``descending``: the smallest value wins. ``required``: if all columns are NULL, a new row has no effect.
    """

    columns: tuple[str, ...]
    _: KW_ONLY
    descending: bool = False
    required: bool = False


class RowFault(Enum):
    """A fault of the new values of some columns of a row, compared with its present values."""

    #: The new value of the only column is NULL.
    NULL = "null"
    #: The new value of the only column is NULL, and the present value is not.
    NULL_OVER_VALUE = "null over value"
    #: The new values lose against the present ones: NULL loses to any value, otherwise the first difference decides.
    WEAKER = "weaker"
    #: All new values are NULL.
    ALL_NULL = "all null"


@dataclass(frozen=True)
class RowCheck:
    """No row that an update writes may have the ``fault`` in the columns; ``text`` is the error's text.

    Columns that the update does not set keep their values. ``descending``: the smaller value wins.
    """

    fault: RowFault
    columns: tuple[str, ...]
    text: str
    _: KW_ONLY
    descending: bool = False


@dataclass(frozen=True)
class UpdatePlan:
    """``values`` are SQL expressions by column. ``kept_by_null``: columns in which NULL keeps the present value.

    ``sequences`` decide whether the new row wins. Sequences that an update does not change are equal, and the newer row
    wins. ``required`` columns are NOT NULL.
    """

    values: Mapping[str, str]
    _: KW_ONLY
    sequences: tuple[RowSequence, ...] = ()
    kept_by_null: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()

    def checks(self) -> Iterator[RowCheck]:
        """Yield the checks of the rows that each engine writes."""
        for name in self.values:
            if name in self.required:
                text = f"set: column '{name}' is NOT NULL, and its new value is NULL in a matching row"
                yield RowCheck(RowFault.NULL, (name,), text)
            elif name in self.kept_by_null:
                text = f"set: column '{name}' becomes NULL, but with 'merge-engine' = 'partial-update' it keeps its value"
                yield RowCheck(RowFault.NULL_OVER_VALUE, (name,), text)
        for sequence in self.sequences:
            names = ", ".join(f"'{name}'" for name in sequence.columns)
            text = f"set: a matching row gets an older sequence {names} than it has, so the update would have no effect"
            yield RowCheck(RowFault.WEAKER, sequence.columns, text, descending=sequence.descending)
            if sequence.required:
                text = f"set: a matching row has no sequence {names}, so the update of its group would have no effect"
                yield RowCheck(RowFault.ALL_NULL, sequence.columns, text)


def out_of_range(field: DataField) -> str:
    """Return the fault of a number that is out of its column's range."""
    return f"set: column '{field.name}': a new value does not fit {field.type.sql()}"


def other_type(field: DataField, source: str, target: str) -> InvalidInputError:
    """Return the error for a value of another type; ``source`` and ``target`` are types in the engine's notation."""
    return InvalidInputError(
        f"set: column '{field.name}' is {field.type.sql()}, but its new value is {source}. Cast it to {target}."
    )


def plan_update(store: TableStore, values: Mapping[str, str]) -> UpdatePlan:
    """Return the update that sets columns (named in any case) to SQL expressions.

    Raises InvalidInputError for a column that cannot be set, and for a merge engine that would not show the new row.
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
    """Raise InvalidInputError for a merge engine in which a new row of a key cannot replace the present one."""
    engine = store.options.merge_engine
    why = {
        MergeEngine.FIRST_ROW: "keeps the first row of a key. Overwrite its partitions instead",
        MergeEngine.AGGREGATION: "adds a new row to the existing one. Write the changes themselves instead",
    }
    if engine in why:
        raise InvalidInputError(
            f"Table {store.name}: update is refused, because 'merge-engine' = '{engine.value}' {why[engine]}."
        )


def _sequences(spec: MergeSpec) -> set[str]:
    """Return the columns whose values decide which row wins."""
    return {*spec.sequence_columns, *(name for group in spec.groups for name in group.sequence)}


def check_microseconds(store: TableStore, names: Collection[str], operation: str) -> None:
    """Raise UnsupportedFeatureError if a column has times that Spark truncates when it compares them."""
    for field in store.schema.fields:
        if field.name in names and has_nanoseconds(field.type):
            raise UnsupportedFeatureError(
                f"Table {store.name}: on Spark {operation} compares column '{field.name}' ({field.type.sql()}) by "
                "microseconds, so it could miss rows or have no effect. Pass engine='local', or keys as Arrow."
            )


def _named(store: TableStore, values: Mapping[str, str]) -> dict[str, str]:
    """Return the values by the column names of the table."""
    named: dict[str, str] = {}
    for name, value in values.items():
        column = match(name, store.schema.field_names)
        if column is None:
            raise InvalidInputError(
                f"Table {store.name}: set: column '{name}' does not exist. Columns: "
                f"{', '.join(store.schema.field_names)}."
            )
        if column in named:
            raise InvalidInputError(f"Table {store.name}: set: column '{column}' occurs twice. Name it once.")
        named[column] = value
    return named


def _check_settable(store: TableStore, names: Collection[str]) -> None:
    schema = store.schema
    why = {
        **dict.fromkeys(schema.bucket_keys, "is part of the bucket key"),
        **dict.fromkeys(schema.primary_keys, "is part of the primary key"),
        **dict.fromkeys(schema.partition_keys, "is a partition column"),
    }
    if store.options.rowkind_field is not None:
        why[store.options.rowkind_field] = "has the kind of the row ('rowkind.field')"
    for name in names:
        if name in why:
            raise InvalidInputError(
                f"Table {store.name}: set: column '{name}' {why[name]} and cannot be updated. Delete the rows and write "
                "them again."
            )


def _check_functions(store: TableStore, spec: MergeSpec) -> None:
    """Refuse aggregate functions: an update writes all columns of a row, and a function would count them again."""
    for rule in spec.columns:
        if rule.function not in (None, LAST_VALUE, LAST_NON_NULL_VALUE):
            raise InvalidInputError(
                f"Table {store.name}: update is refused, because aggregate function '{rule.function}' of column "
                f"'{rule.name}' would count existing values twice. Write the changes themselves instead."
            )
