"""Rules for the options of `partial-update` and `aggregation` (the factories of Paimon's merge functions)."""

from __future__ import annotations

from lakelsm.errors import InvalidInputError
from lakelsm.options import MergeEngine, TableOptions
from lakelsm.options.option_values import parse_boolean, parse_names
from lakelsm.schema import TableSchema
from lakelsm.types import MAX_LENGTH, AtomicType

AGGREGATE_FUNCTIONS = (
    "bool_and",
    "bool_or",
    "collect",
    "first_non_null_value",
    "first_not_null_value",
    "first_value",
    "hll_sketch",
    "last_non_null_value",
    "last_value",
    "listagg",
    "max",
    "merge_map",
    "merge_map_with_keytime",
    "min",
    "nested_partial_update",
    "nested_update",
    "primary-key",
    "product",
    "rbm32",
    "rbm64",
    "sum",
    "theta_sketch",
)
_LAST_VALUES = ("last_value", "last_non_null_value")


def check_merge_engine(schema: TableSchema, options: TableOptions) -> None:
    """Raises InvalidInputError for options that the table's merge engine cannot work with."""
    if not schema.primary_keys:
        return
    if options.merge_engine in (MergeEngine.PARTIAL_UPDATE, MergeEngine.AGGREGATION):
        _check_functions(schema, options)
    if options.merge_engine is MergeEngine.PARTIAL_UPDATE:
        _check_partial_update(schema, options)
    if options.merge_engine is MergeEngine.AGGREGATION and options.aggregation_remove_record_on_delete:
        for column, settings in options.field_options.items():
            if parse_boolean(settings.get("ignore-retract", "false")):
                raise InvalidInputError(
                    "option 'aggregation.remove-record-on-delete' = 'true' cannot go with "
                    f"'fields.{column}.ignore-retract' = 'true'; remove one of both"
                )


def _check_functions(schema: TableSchema, options: TableOptions) -> None:
    for column in schema.field_names:
        settings = options.field_options.get(column, {})
        function = settings.get("aggregate-function", options.default_aggregate_function)
        if function is not None and function not in AGGREGATE_FUNCTIONS:
            own = "aggregate-function" in settings
            key = f"fields.{column}.aggregate-function" if own else "fields.default-aggregate-function"
            raise InvalidInputError(
                f"option '{key}' = '{function}' is no aggregate function; use one of "
                f"{', '.join(AGGREGATE_FUNCTIONS)}"
            )
        if column in schema.primary_keys:
            continue
        if "nested-key-null-strategy" in settings and not settings.get("nested-key", "").strip():
            raise InvalidInputError(
                f"option 'fields.{column}.nested-key-null-strategy' needs 'fields.{column}.nested-key'; "
                "set it"
            )
        if function is not None and column not in options.sequence_field:
            _check_function_type(schema, column, function)


def _check_function_type(schema: TableSchema, column: str, function: str) -> None:
    data_type = schema.field(column).type
    text = f"aggregate function '{function}' cannot take column '{column}' of type {data_type.sql()}"
    if function == "listagg" and not (
        isinstance(data_type, AtomicType) and data_type.root == "VARCHAR" and data_type.length == MAX_LENGTH
    ):
        raise InvalidInputError(f"{text}; make it STRING")
    if function in ("max", "min") and not isinstance(data_type, AtomicType):
        raise InvalidInputError(f"{text}; values of the column have no order")


def _check_partial_update(schema: TableSchema, options: TableOptions) -> None:
    sequences, protected = _sequence_groups(schema, options)
    _check_grouped_functions(schema, options, sequences, protected)
    remove_on_delete = "partial-update.remove-record-on-delete"
    remove_on_group = "partial-update.remove-record-on-sequence-group"
    if options.partial_update_remove_record_on_delete:
        if options.ignore_delete:
            raise _conflict("ignore-delete", remove_on_delete)
        if sequences:
            raise _conflict("fields.<column>.sequence-group", remove_on_delete)
    if options.is_set(remove_on_group):
        if options.ignore_delete:
            raise _conflict("ignore-delete", remove_on_group)
        for name in options.partial_update_remove_record_on_sequence_group:
            if name not in sequences:
                raise InvalidInputError(
                    f"option '{remove_on_group}' names '{name}', which is in no sequence group; "
                    f"choose among {', '.join(sorted(sequences)) or 'none'}"
                )


def _sequence_groups(schema: TableSchema, options: TableOptions) -> tuple[set[str], set[str]]:
    """(sequence columns, columns that they govern) of all sequence groups."""
    sequences: set[str] = set()
    protected: set[str] = set()
    for columns, settings in options.field_options.items():
        if "sequence-group" not in settings:
            continue
        key = f"fields.{columns}.sequence-group"
        ordering, governed = columns.split(","), parse_names(settings["sequence-group"])
        for name in (*governed, *ordering):
            if name not in schema.field_names:
                raise InvalidInputError(
                    f"option '{key}' names '{name}', which is no column; the columns are "
                    f"{', '.join(schema.field_names)}"
                )
            if name in schema.primary_keys:
                raise InvalidInputError(f"option '{key}' names the primary key column '{name}'; leave it out")
        for name in governed:
            if name in protected:
                raise InvalidInputError(
                    f"option '{key}' names '{name}', which another group has; leave one out"
                )
            protected.add(name)
        sequences.update(ordering)
    return sequences, protected


def _check_grouped_functions(
    schema: TableSchema, options: TableOptions, sequences: set[str], protected: set[str]
) -> None:
    for column in schema.field_names:
        if column in schema.primary_keys or column in sequences or column in protected:
            continue
        function = options.field_options.get(column, {}).get(
            "aggregate-function", options.default_aggregate_function
        )
        if function is not None and function not in _LAST_VALUES:
            raise InvalidInputError(
                f"aggregate function '{function}' of column '{column}' needs a sequence group with "
                f"'merge-engine' = 'partial-update'; set fields.<column>.sequence-group = '{column}'"
            )


def _conflict(first: str, second: str) -> InvalidInputError:
    return InvalidInputError(f"options '{first}' and '{second}' contradict each other; remove one of both")
