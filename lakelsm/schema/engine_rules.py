"""Rules for the options of `partial-update` and `aggregation` (the factories of Paimon's merge functions)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.options import MergeEngine, TableOptions
from lakelsm.options.option_values import parse_boolean
from lakelsm.schema.function_rules import AGGREGATE_FUNCTIONS, check_function, has_order
from lakelsm.schema.table_schema import TableSchema

_REMOVE_ON_DELETE = "partial-update.remove-record-on-delete"
_REMOVE_ON_GROUP = "partial-update.remove-record-on-sequence-group"


def check_merge_engine(schema: TableSchema, options: TableOptions) -> None:
    """Raises InvalidInputError for options that the table's merge engine cannot work with, and UnsupportedFeatureError
    for sequences that lakelsm cannot order.
    """
    if not schema.primary_keys:
        return
    groups: dict[str, _Group] = {}
    if options.merge_engine in (MergeEngine.PARTIAL_UPDATE, MergeEngine.AGGREGATION):
        _check_names(schema, options)
    if options.merge_engine is MergeEngine.PARTIAL_UPDATE:
        groups = _sequence_groups(schema, options)
        _check_partial_update(schema, options, groups)
    if options.merge_engine in (MergeEngine.PARTIAL_UPDATE, MergeEngine.AGGREGATION):
        _check_functions(schema, options, groups)
    if options.merge_engine is MergeEngine.AGGREGATION and options.aggregation_remove_record_on_delete:
        for column, settings in options.field_options.items():
            if parse_boolean(settings.get("ignore-retract", "false")):
                raise InvalidInputError(
                    "option 'aggregation.remove-record-on-delete' = 'true' cannot go with "
                    f"'fields.{column}.ignore-retract' = 'true'; remove one of both"
                )
    for name in (*options.sequence_field, *(name for group in groups.values() for name in group.ordering)):
        if not has_order(schema.field(name).type):
            raise UnsupportedFeatureError(
                f"lakelsm cannot order by column '{name}' of type {schema.field(name).type.sql()}, which is a sequence "
                "field; choose a column of another type or use Apache Paimon for the table"
            )


def _function(column: str, options: TableOptions) -> str | None:
    """The aggregate function that a column has by its own option or by default."""
    return options.field_options.get(column, {}).get("aggregate-function", options.default_aggregate_function)


def _check_names(schema: TableSchema, options: TableOptions) -> None:
    for column in schema.field_names:
        function = _function(column, options)
        if function is not None and function not in AGGREGATE_FUNCTIONS:
            own = "aggregate-function" in options.field_options.get(column, {})
            key = f"fields.{column}.aggregate-function" if own else "fields.default-aggregate-function"
            raise InvalidInputError(
                f"option '{key}' = '{function}' is no aggregate function; use one of "
                f"{', '.join(AGGREGATE_FUNCTIONS)}"
            )


def _check_functions(schema: TableSchema, options: TableOptions, groups: Mapping[str, _Group]) -> None:
    """Functions on types that they cannot take. Columns of the key and of sequences have no function.

    Paimon creates such a table and then fails every write; the cases where an existing table worked in some old release
    (listagg of a bounded VARCHAR, max of an ARRAY with one value a key) fail in all newer ones.
    """
    ordering = {name for group in groups.values() for name in group.ordering}
    if options.merge_engine is MergeEngine.AGGREGATION:
        ordering.update(options.sequence_field)
    for column in schema.field_names:
        function = _function(column, options)
        if function is not None and column not in ordering and column not in schema.primary_keys:
            check_function(column, schema.field(column).type, function, options.field_options.get(column, {}))


@dataclass(frozen=True)
class _Group:
    ordering: tuple[str, ...]
    governed: tuple[str, ...]


def _sequence_groups(schema: TableSchema, options: TableOptions) -> dict[str, _Group]:
    """The sequence groups by their option's key. No column is in two of them."""
    groups: dict[str, _Group] = {}
    owners: dict[str, str] = {}
    for columns, settings in options.field_options.items():
        if "sequence-group" not in settings:
            continue
        key = f"fields.{columns}.sequence-group"
        group = _Group(tuple(columns.split(",")), _java_names(settings["sequence-group"]))
        _check_columns(key, (*group.governed, *group.ordering), schema)
        for name in group.governed:
            if group.governed.count(name) > 1:
                raise InvalidInputError(f"option '{key}' names '{name}' twice; name it once")
        for name in sorted({*group.ordering, *group.governed}):
            if name in owners:
                raise InvalidInputError(
                    f"option '{key}' names '{name}', which another group has ('{owners[name]}'); leave one out"
                )
            owners[name] = key
        groups[key] = group
    return groups


def check_deletable(table: str, options: TableOptions) -> None:
    """Raises InvalidInputError unless a -D row removes the row of its key (Paimon's ``validatePKUpsertDeletable``)."""
    if options.ignore_delete:
        raise InvalidInputError(f"Table {table} ignores deletes (option 'ignore-delete'): it keeps its rows")
    engine = options.merge_engine
    needed = {
        MergeEngine.PARTIAL_UPDATE: (_REMOVE_ON_DELETE, _REMOVE_ON_GROUP),
        MergeEngine.AGGREGATION: ("aggregation.remove-record-on-delete",),
        MergeEngine.FIRST_ROW: (),
    }
    removes = {
        MergeEngine.DEDUPLICATE: True,
        MergeEngine.PARTIAL_UPDATE: options.partial_update_remove_record_on_delete or options.is_set(_REMOVE_ON_GROUP),
        MergeEngine.AGGREGATION: options.aggregation_remove_record_on_delete,
        MergeEngine.FIRST_ROW: False,
    }
    if removes[engine]:
        return
    remedy = " or ".join(f"'{key}'" for key in needed[engine])
    raise InvalidInputError(
        f"Table {table} has 'merge-engine' = '{engine.value}', which does not remove rows by deletes; "
        + (f"create it with {remedy} to delete from it" if remedy else "overwrite its partitions instead")
    )


def _java_names(text: str) -> tuple[str, ...]:
    """The names of a list as Java splits it, blanks included."""
    return tuple(text.rstrip(",").split(","))


def _check_columns(key: str, names: tuple[str, ...], schema: TableSchema) -> None:
    for name in names:
        if name not in schema.field_names:
            remedy = f"the columns are {', '.join(schema.field_names)}"
            if name.strip() in schema.field_names:
                remedy = "leave out the blanks, which Paimon takes as part of the name"
            raise InvalidInputError(f"option '{key}' names '{name}', which is no column; {remedy}")
        if name in schema.primary_keys:
            raise InvalidInputError(f"option '{key}' names the primary key column '{name}'; leave it out")


def _check_partial_update(schema: TableSchema, options: TableOptions, groups: Mapping[str, _Group]) -> None:
    _check_grouped_functions(schema, options, groups)
    if options.partial_update_remove_record_on_delete:
        if options.ignore_delete:
            raise _conflict("ignore-delete", _REMOVE_ON_DELETE)
        if groups:
            raise _conflict(min(groups), _REMOVE_ON_DELETE)
    if options.is_set(_REMOVE_ON_GROUP):
        if options.ignore_delete:
            raise _conflict("ignore-delete", _REMOVE_ON_GROUP)
        ordering = sorted(name for group in groups.values() for name in group.ordering)
        for name in _java_names(schema.options[_REMOVE_ON_GROUP]):
            if name not in ordering:
                known = f"choose among {', '.join(ordering)}" if ordering else "the table has none; remove the option"
                raise InvalidInputError(
                    f"option '{_REMOVE_ON_GROUP}' names '{name}', which is no sequence column of a group; {known}"
                )


def _check_grouped_functions(schema: TableSchema, options: TableOptions, groups: Mapping[str, _Group]) -> None:
    grouped = {name for group in groups.values() for name in (*group.ordering, *group.governed)}
    for column in schema.field_names:
        function = _function(column, options)
        if column in schema.primary_keys or column in grouped or function in (None, "last_non_null_value"):
            continue
        raise InvalidInputError(
            f"aggregate function '{function}' of column '{column}' needs a sequence group with 'merge-engine' = "
            f"'partial-update'; list the column in a 'fields.<sequence column>.sequence-group' or set "
            f"'fields.{column}.aggregate-function' = 'last_non_null_value'"
        )


def _conflict(first: str, second: str) -> InvalidInputError:
    return InvalidInputError(f"options '{first}' and '{second}' contradict each other; remove one of both")
