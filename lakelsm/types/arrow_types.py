"""Mapping between Paimon types and Arrow types, with the Parquet field ids of docs/format.md 6.1 and 6.2."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.types.data_types import (
    MAX_LENGTH,
    UNASSIGNED_ID,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
)
from lakelsm.types.nano_timestamps import NANO_TIMESTAMP

_STRUCTURE_ID_BASE = 536870911  # Persisted: do not change. Ids of list elements and map entries start here.
_STRUCTURE_ID_STRIDE = 1024  # Persisted: do not change.
_FIELD_ID = b"PARQUET:field_id"  # Persisted: do not change. Arrow's name of a Parquet field id.

_SIMPLE: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "CHAR": pa.string(),
    "VARCHAR": pa.string(),
    "BINARY": pa.binary(),
    "VARBINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIME": pa.time32("ms"),
}

# Tests of Arrow types without parameters, each with the Paimon type; tried in this order.
_FROM_ARROW: tuple[tuple[Callable[[pa.DataType], bool], AtomicType], ...] = (
    (pa.types.is_boolean, AtomicType("BOOLEAN")),
    (pa.types.is_int8, AtomicType("TINYINT")),
    (pa.types.is_int16, AtomicType("SMALLINT")),
    (pa.types.is_int32, AtomicType("INT")),
    (pa.types.is_int64, AtomicType("BIGINT")),
    (pa.types.is_float32, AtomicType("FLOAT")),
    (pa.types.is_float64, AtomicType("DOUBLE")),
    (pa.types.is_string, AtomicType("VARCHAR", length=MAX_LENGTH)),
    (pa.types.is_large_string, AtomicType("VARCHAR", length=MAX_LENGTH)),
    (pa.types.is_string_view, AtomicType("VARCHAR", length=MAX_LENGTH)),
    (pa.types.is_binary, AtomicType("VARBINARY", length=MAX_LENGTH)),
    (pa.types.is_large_binary, AtomicType("VARBINARY", length=MAX_LENGTH)),
    (pa.types.is_binary_view, AtomicType("VARBINARY", length=MAX_LENGTH)),
    (pa.types.is_date, AtomicType("DATE")),
)
_UNIT_PRECISION = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def to_arrow(data_type: DataType) -> pa.DataType:
    """Return the Arrow type in which lakelsm keeps values of a Paimon type.

    TIME is time32('ms'); TIMESTAMP(p) is 'ms' for p <= 3, 'us' for 4 to 6, `NANO_TIMESTAMP` for 7 to 9; LTZ has tz
    'UTC' where Arrow's type has one. Raises UnsupportedFeatureError for VARIANT, BLOB and VECTOR.
    """
    return _to_arrow(data_type, None, 0)


def python_arrow(data_type: DataType) -> pa.DataType:
    """Return the Arrow type that takes Python values of a column: `to_arrow`, with times of at most microseconds."""
    kind = to_arrow(data_type)
    if kind != NANO_TIMESTAMP or not isinstance(data_type, AtomicType):
        return kind
    return pa.timestamp("us", _zone(data_type))


def output_arrow(data_type: DataType, timestamps: str = "ns") -> pa.DataType:
    """Return the Arrow type of values that users receive: `to_arrow`, except for TIMESTAMP(7..9).

    ``timestamps`` selects the form of those, one of `arguments.TIMESTAMP_FORMS`: Arrow's nanoseconds or microseconds,
    or text.
    """

    def part(name: str, of: DataType) -> pa.Field:
        return pa.field(name, output_arrow(of, timestamps), of.nullable)

    if isinstance(data_type, ArrayType):
        return pa.list_(part("element", data_type.element))
    if isinstance(data_type, MapType):
        return pa.map_(output_arrow(data_type.key, timestamps), part("value", data_type.value))
    if isinstance(data_type, MultisetType):
        return pa.map_(output_arrow(data_type.element, timestamps), part("value", AtomicType("INT", nullable=False)))
    if isinstance(data_type, RowType):
        return pa.struct([part(member.name, member.type) for member in data_type.fields])
    kind = to_arrow(data_type)
    if kind != NANO_TIMESTAMP or not isinstance(data_type, AtomicType):
        return kind
    return pa.string() if timestamps == "text" else pa.timestamp(timestamps, _zone(data_type))


def contiguous(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the values of a column as one array. They are copied only if the column has several chunks."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)


def arrow_field(field: DataField) -> pa.Field:
    """Return the Arrow field of a column, with its nullability and field id, and the ids of nested parts as metadata."""
    return pa.field(
        field.name, _to_arrow(field.type, field.id, 0), nullable=field.type.nullable, metadata=_id(field.id)
    )


def from_arrow(arrow_type: pa.DataType, nullable: bool = True) -> DataType:
    """Return the Paimon type for values of an Arrow type. Members of structs get UNASSIGNED_ID.

    A timestamp with any zone becomes TIMESTAMP_LTZ (an instant). A time finer than milliseconds becomes TIME(3).
    Raises InvalidInputError for types that Paimon does not have (unsigned integers, durations …).
    """
    for matches, atomic in _FROM_ARROW:
        if matches(arrow_type):
            return atomic.with_nullable(nullable)
    parsed = _parametric_from_arrow(arrow_type) or _nested_from_arrow(arrow_type)
    if parsed is not None:
        return parsed.with_nullable(nullable)
    remedy = (
        "Cast it to a wider signed integer." if pa.types.is_unsigned_integer(arrow_type) else "Cast it first."
    )
    raise InvalidInputError(f"Arrow type {arrow_type} has no Paimon type. {remedy}")


def field_from_arrow(field: pa.Field) -> DataField:
    """Return a column of an Arrow schema, with UNASSIGNED_ID. Errors name the column."""
    try:
        return DataField(UNASSIGNED_ID, field.name, from_arrow(field.type, field.nullable))
    except InvalidInputError as error:
        raise InvalidInputError(f"column '{field.name}': {error}") from error


def _id(field_id: int | None) -> dict[bytes, bytes] | None:
    return None if field_id is None or field_id < 0 else {_FIELD_ID: str(field_id).encode()}


def _part(
    name: str, data_type: DataType, root_id: int | None, depth: int, sign: int, nullable: bool
) -> pa.Field:
    part_id = None
    if root_id is not None and root_id >= 0:
        part_id = _STRUCTURE_ID_BASE + sign * (_STRUCTURE_ID_STRIDE * root_id + depth)
    return pa.field(name, _to_arrow(data_type, root_id, depth), nullable=nullable, metadata=_id(part_id))


def _to_arrow(data_type: DataType, root_id: int | None, depth: int) -> pa.DataType:
    """Return the Arrow type; ``depth`` counts the nested types since ``root_id``, the id of the column or ROW member."""
    if isinstance(data_type, AtomicType):
        return _atomic_to_arrow(data_type)
    if isinstance(data_type, ArrayType):
        element = data_type.element
        return pa.list_(_part("element", element, root_id, depth + 1, 1, element.nullable))
    if isinstance(data_type, MapType):
        key = _part("key", data_type.key, root_id, depth + 1, -1, False)
        return pa.map_(key, _part("value", data_type.value, root_id, depth + 1, 1, data_type.value.nullable))
    if isinstance(data_type, MultisetType):
        key = _part("key", data_type.element, root_id, depth + 1, -1, False)
        return pa.map_(key, _part("value", AtomicType("INT"), root_id, depth + 1, 1, False))
    if isinstance(data_type, RowType):
        if root_id is None:
            return pa.struct([pa.field(f.name, to_arrow(f.type), f.type.nullable) for f in data_type.fields])
        return pa.struct([arrow_field(field) for field in data_type.fields])
    raise UnsupportedFeatureError(f"values of type {data_type.sql()} are not supported")


def _atomic_to_arrow(data_type: AtomicType) -> pa.DataType:
    simple = _SIMPLE.get(data_type.root)
    if simple is not None:
        return simple
    if data_type.root == "DECIMAL":
        return pa.decimal128(data_type.precision, data_type.scale)
    if data_type.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        precision = data_type.precision or 0
        return NANO_TIMESTAMP if precision > 6 else pa.timestamp("ms" if precision <= 3 else "us", _zone(data_type))
    raise UnsupportedFeatureError(f"values of type {data_type.sql()} are not supported")


def _zone(data_type: AtomicType) -> str | None:
    return "UTC" if data_type.root == "TIMESTAMP_LTZ" else None


def _parametric_from_arrow(arrow_type: pa.DataType) -> DataType | None:
    if pa.types.is_fixed_size_binary(arrow_type):
        return AtomicType("BINARY", length=arrow_type.byte_width)
    if pa.types.is_decimal(arrow_type):
        return AtomicType("DECIMAL", precision=arrow_type.precision, scale=arrow_type.scale)
    if pa.types.is_time(arrow_type):
        return AtomicType("TIME", precision=min(_UNIT_PRECISION[arrow_type.unit], 3))
    if pa.types.is_timestamp(arrow_type):
        root = "TIMESTAMP" if arrow_type.tz is None else "TIMESTAMP_LTZ"
        return AtomicType(root, precision=_UNIT_PRECISION[arrow_type.unit])
    return None


def _nested_from_arrow(arrow_type: pa.DataType) -> DataType | None:
    if pa.types.is_dictionary(arrow_type) or pa.types.is_run_end_encoded(arrow_type):
        return from_arrow(arrow_type.value_type)
    if pa.types.is_map(arrow_type):
        value = from_arrow(arrow_type.item_type, arrow_type.item_field.nullable)
        return MapType(from_arrow(arrow_type.key_type, nullable=False), value)
    if (
        pa.types.is_list(arrow_type)
        or pa.types.is_large_list(arrow_type)
        or pa.types.is_fixed_size_list(arrow_type)
        or pa.types.is_list_view(arrow_type)
        or pa.types.is_large_list_view(arrow_type)
    ):
        return ArrayType(from_arrow(arrow_type.value_type, arrow_type.value_field.nullable))
    if pa.types.is_struct(arrow_type):
        return RowType(tuple(field_from_arrow(arrow_type.field(i)) for i in range(arrow_type.num_fields)))
    return None


__all__ = ["arrow_field", "contiguous", "field_from_arrow", "from_arrow", "output_arrow", "python_arrow", "to_arrow"]
