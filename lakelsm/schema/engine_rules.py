"""Rules for `partial-update`, `aggregation` and aggregate functions, as in the factories of Paimon's merge functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.options import MergeEngine, TableOptions
from lakelsm.options.option_values import parse_boolean, parse_names
from lakelsm.schema.table_schema import TableSchema
from lakelsm.types import MAX_LENGTH, NUMERIC_ROOTS, ArrayType, AtomicType, DataType, MapType, RowType

_REMOVE_ON_DELETE = "partial-update.remove-record-on-delete"
_REMOVE_ON_GROUP = "partial-update.remove-record-on-sequence-group"


def check_merge_engine(schema: TableSchema, options: TableOptions) -> None:
    """Check the options of the table's merge engine.

    Raises InvalidInputError for wrong options, and UnsupportedFeatureError for a sequence that lakelsm cannot order.
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
                    "option 'aggregation.remove-record-on-delete' = 'true' cannot be combined with "
                    f"'fields.{column}.ignore-retract' = 'true'. Remove one of them."
                )
    for name in (*options.sequence_field, *(name for group in groups.values() for name in group.ordering)):
        if not has_order(schema.field(name).type):
            raise UnsupportedFeatureError(
                f"sequence field '{name}': lakelsm cannot order values of type {schema.field(name).type.sql()}. Choose "
                "another column, or use Apache Paimon."
            )


def _function(column: str, options: TableOptions) -> str | None:
    """Return the aggregate function of a column, from its own option or the default."""
    return options.field_options.get(column, {}).get("aggregate-function", options.default_aggregate_function)


def _check_names(schema: TableSchema, options: TableOptions) -> None:
    for column in schema.field_names:
        function = _function(column, options)
        if function is not None and function not in AGGREGATE_FUNCTIONS:
            own = "aggregate-function" in options.field_options.get(column, {})
            key = f"fields.{column}.aggregate-function" if own else "fields.default-aggregate-function"
            raise InvalidInputError(
                f"option '{key}': '{function}' is not an aggregate function. Use one of "
                f"{', '.join(AGGREGATE_FUNCTIONS)}."
            )


def _check_functions(schema: TableSchema, options: TableOptions, groups: Mapping[str, _Group]) -> None:
    """Refuse functions on columns of wrong types. Columns of the key and of sequences have no function.

    Paimon creates such a table, and then each write fails. Cases that worked in an old release (listagg of a bounded
    VARCHAR, max of an ARRAY with one value per key) fail in all newer ones.
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
    """Return the sequence groups by the key of their option. No column is in two groups."""
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
                raise InvalidInputError(f"option '{key}': '{name}' is named twice. Name it once.")
        for name in sorted({*group.ordering, *group.governed}):
            if name in owners:
                raise InvalidInputError(
                    f"option '{key}': '{name}' is also in the group of '{owners[name]}'. Remove it from one of them."
                )
            owners[name] = key
        groups[key] = group
    return groups


def check_deletable(table: str, options: TableOptions) -> None:
    """Raise InvalidInputError unless a -D row deletes the row of its key (Paimon's ``validatePKUpsertDeletable``)."""
    if options.ignore_delete:
        raise InvalidInputError(f"Table {table}: deletes have no effect with option 'ignore-delete' = 'true'.")
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
        f"Table {table}: 'merge-engine' = '{engine.value}' does not support deletes. "
        + (f"Create the table with {remedy} to delete rows." if remedy else "Overwrite its partitions instead.")
    )


def _java_names(text: str) -> tuple[str, ...]:
    """Split a list of names as Java does, which keeps blanks."""
    return tuple(text.rstrip(",").split(","))


def _check_columns(key: str, names: tuple[str, ...], schema: TableSchema) -> None:
    for name in names:
        if name not in schema.field_names:
            remedy = f"Columns: {', '.join(schema.field_names)}."
            if name.strip() in schema.field_names:
                remedy = "Remove the blanks, which are part of the name for Paimon."
            raise InvalidInputError(f"option '{key}': column '{name}' does not exist. {remedy}")
        if name in schema.primary_keys:
            raise InvalidInputError(f"option '{key}': '{name}' is a primary key column. Leave it out.")


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
                remedy = f"Choose from {', '.join(ordering)}" if ordering else "The table has none; remove the option"
                raise InvalidInputError(
                    f"option '{_REMOVE_ON_GROUP}': '{name}' is not a sequence column of a group. {remedy}."
                )


def _check_grouped_functions(schema: TableSchema, options: TableOptions, groups: Mapping[str, _Group]) -> None:
    grouped = {name for group in groups.values() for name in (*group.ordering, *group.governed)}
    for column in schema.field_names:
        function = _function(column, options)
        if column in schema.primary_keys or column in grouped or function in (None, "last_non_null_value"):
            continue
        raise InvalidInputError(
            f"column '{column}': aggregate function '{function}' needs a sequence group with 'merge-engine' = "
            f"'partial-update'. Add the column to a 'fields.<sequence column>.sequence-group', or set "
            f"'fields.{column}.aggregate-function' = 'last_non_null_value'."
        )


def _conflict(first: str, second: str) -> InvalidInputError:
    return InvalidInputError(f"options '{first}' and '{second}' contradict each other. Remove one of them.")


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

Settings = Mapping[str, str]


def check_function(column: str, data_type: DataType, function: str, settings: Settings) -> None:
    """Raise InvalidInputError for an aggregate function that does not support the type of a column."""
    needs, fits = _TYPES.get(function, ("", _anything))
    if not fits(data_type):
        raise InvalidInputError(
            f"column '{column}': aggregate function '{function}' does not support type {data_type.sql()}. Use {needs}, "
            f"or choose another 'fields.{column}.aggregate-function'."
        )
    if function in ("nested_update", "nested_partial_update"):
        _check_nested(column, data_type, function, settings)
    if function == "merge_map_with_keytime":
        _check_time_member(column, data_type, settings)


def _check_nested(column: str, data_type: DataType, function: str, settings: Settings) -> None:
    members = [field.name for field in _row(data_type).fields]
    key = parse_names(settings.get("nested-key", ""))
    if function == "nested_partial_update" and not key:
        raise InvalidInputError(f"aggregate function '{function}' needs 'fields.{column}.nested-key'. Set it.")
    for option in ("nested-key-null-strategy", "nested-sequence-field"):
        if option in settings and not key:
            raise InvalidInputError(f"option 'fields.{column}.{option}' needs 'fields.{column}.nested-key'. Set it.")
    for option in ("nested-key", "nested-sequence-field"):
        for name in parse_names(settings.get(option, "")):
            if name not in members:
                raise InvalidInputError(
                    f"option 'fields.{column}.{option}': '{name}' is not a member of the nested rows. Members: "
                    f"{', '.join(members)}."
                )


def _check_time_member(column: str, data_type: DataType, settings: Settings) -> None:
    assert isinstance(data_type, MapType)
    row = data_type.value
    assert isinstance(row, RowType)
    members = {field.name: field.type for field in row.fields}
    name = settings.get("ts-field", row.fields[-1].name)
    if name not in members:
        raise InvalidInputError(
            f"option 'fields.{column}.ts-field': '{name}' is not a member of the map's values. Members: "
            f"{', '.join(members)}."
        )
    if not _text(members[name]):
        raise InvalidInputError(
            f"column '{column}': 'merge_map_with_keytime' compares times as text, and member '{name}' is "
            f"{members[name].sql()}. Use STRING, or choose another member with 'fields.{column}.ts-field'."
        )


def _row(data_type: DataType) -> RowType:
    assert isinstance(data_type, ArrayType)
    assert isinstance(data_type.element, RowType)
    return data_type.element


def _anything(data_type: DataType) -> bool:
    return True


def _roots(*roots: str) -> Callable[[DataType], bool]:
    return lambda data_type: isinstance(data_type, AtomicType) and data_type.root in roots


def has_order(data_type: DataType) -> bool:
    """Return whether lakelsm can compare values of the type."""
    return isinstance(data_type, AtomicType) and data_type.root not in ("VARIANT", "BLOB")


def _unbounded_text(data_type: DataType) -> bool:
    return isinstance(data_type, AtomicType) and data_type.root == "VARCHAR" and data_type.length == MAX_LENGTH


def _rows(data_type: DataType) -> bool:
    return isinstance(data_type, ArrayType) and isinstance(data_type.element, RowType)


def _timed_map(data_type: DataType) -> bool:
    return isinstance(data_type, MapType) and isinstance(data_type.value, RowType) and len(data_type.value.fields) > 1


_text = _roots("CHAR", "VARCHAR")
_bytes = ("VARBINARY (BYTES)", _roots("VARBINARY"))
_number = ("a number", _roots(*NUMERIC_ROOTS))

#: The types that a function supports, as text and as a predicate.
_TYPES: Mapping[str, tuple[str, Callable[[DataType], bool]]] = {
    "bool_and": ("BOOLEAN", _roots("BOOLEAN")),
    "bool_or": ("BOOLEAN", _roots("BOOLEAN")),
    "collect": ("ARRAY", lambda data_type: isinstance(data_type, ArrayType)),
    "hll_sketch": _bytes,
    "listagg": ("STRING", _unbounded_text),
    "max": ("a type whose values have an order", has_order),
    "merge_map": ("MAP", lambda data_type: isinstance(data_type, MapType)),
    "merge_map_with_keytime": ("MAP of ROW with at least two members", _timed_map),
    "min": ("a type whose values have an order", has_order),
    "nested_partial_update": ("ARRAY of ROW", _rows),
    "nested_update": ("ARRAY of ROW", _rows),
    "product": _number,
    "rbm32": _bytes,
    "rbm64": _bytes,
    "sum": _number,
    "theta_sketch": _bytes,
}
