"""Rules for the options of `partial-update` and `aggregation` (the factories of Paimon's merge functions)."""

from __future__ import annotations

from lakelsm.aggregate_function_rules import AGGREGATE_FUNCTIONS, check_function
from lakelsm.errors import InvalidInputError
from lakelsm.options import MergeEngine, TableOptions
from lakelsm.options.option_values import parse_boolean, parse_names
from lakelsm.schema import TableSchema

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
        if function is not None and column not in options.sequence_field:
            check_function(column, schema.field(column).type, function, settings)


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
        own = set(ordering)
        for name in governed:
            if name in protected or name in sequences - own:
                raise _in_two_groups(key, name)
            protected.add(name)
        if own & sequences or own & (protected - set(governed)):
            raise _in_two_groups(key, min(own & (sequences | protected)))
        sequences |= own
    return sequences, protected


def _in_two_groups(key: str, name: str) -> InvalidInputError:
    return InvalidInputError(f"option '{key}' names '{name}', which another group has; leave one out")


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
