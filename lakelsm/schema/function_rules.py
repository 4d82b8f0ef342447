"""Which aggregate function takes which column, judged from the schema and the column's options (Paimon's factories)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lakelsm.errors import InvalidInputError
from lakelsm.options.option_values import parse_names
from lakelsm.types import MAX_LENGTH, NUMERIC_ROOTS, ArrayType, AtomicType, DataType, MapType, RowType

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
    """Raises InvalidInputError, naming column, option and remedy, for a function that cannot take the column."""
    needs, fits = _TYPES.get(function, ("", _anything))
    if not fits(data_type):
        raise InvalidInputError(
            f"aggregate function '{function}' cannot take column '{column}' of type {data_type.sql()}; make it {needs} "
            f"or choose another 'fields.{column}.aggregate-function'"
        )
    if function in ("nested_update", "nested_partial_update"):
        _check_nested(column, data_type, function, settings)
    if function == "merge_map_with_keytime":
        _check_time_member(column, data_type, settings)


def _check_nested(column: str, data_type: DataType, function: str, settings: Settings) -> None:
    members = [field.name for field in _row(data_type).fields]
    key = parse_names(settings.get("nested-key", ""))
    if function == "nested_partial_update" and not key:
        raise InvalidInputError(f"aggregate function '{function}' needs 'fields.{column}.nested-key'; set it")
    for option in ("nested-key-null-strategy", "nested-sequence-field"):
        if option in settings and not key:
            raise InvalidInputError(f"option 'fields.{column}.{option}' needs 'fields.{column}.nested-key'; set it")
    for option in ("nested-key", "nested-sequence-field"):
        for name in parse_names(settings.get(option, "")):
            if name not in members:
                raise InvalidInputError(
                    f"option 'fields.{column}.{option}' names '{name}', which is no member of the rows of the column; "
                    f"they have {', '.join(members)}"
                )


def _check_time_member(column: str, data_type: DataType, settings: Settings) -> None:
    assert isinstance(data_type, MapType)
    row = data_type.value
    assert isinstance(row, RowType)
    members = {field.name: field.type for field in row.fields}
    name = settings.get("ts-field", row.fields[-1].name)
    if name not in members:
        raise InvalidInputError(
            f"option 'fields.{column}.ts-field' names '{name}', which is no member of the map's values; "
            f"they have {', '.join(members)}"
        )
    if not _text(members[name]):
        raise InvalidInputError(
            f"aggregate function 'merge_map_with_keytime' of column '{column}' compares times as text, and member "
            f"'{name}' is {members[name].sql()}; make it STRING or choose another with 'fields.{column}.ts-field'"
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
    """Whether lakelsm can compare values of the type."""
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

#: What a function needs, in words and as a test.
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
