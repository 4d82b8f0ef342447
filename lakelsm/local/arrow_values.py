"""The Paimon type of Arrow values, and their plain form: one of Arrow's several forms for a value.

The plain form has no encodings and widths without a Paimon type: no dictionaries, views, large offsets, fixed lengths,
unsigned numbers or time zones other than UTC, at any depth.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.errors import InvalidInputError
from lakelsm.schema.row_rules import OnlyNull
from lakelsm.types import MAX_DECIMAL_DIGITS, UNASSIGNED_ID, ArrayType, DataField, DataType, MapType, RowType, from_arrow

#: A cast takes whole buffers. If they are this many times as large as the array's part of them, it is copied first.
_SPARSE = 2
_SMALL = 1 << 16

_WIDER_SIGNED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the plain form. Raises InvalidInputError for views of lists within other values."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([_plain_field(kind.field(at)) for at in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(_plain_field(kind.key_field), _plain_field(kind.item_field))
    if _is_list(kind) or _is_list_view(kind):
        return pa.list_(_plain_field(kind.value_field))
    if pa.types.is_decimal(kind) and not pa.types.is_decimal128(kind) and kind.precision <= MAX_DECIMAL_DIGITS:
        return pa.decimal128(kind.precision, kind.scale)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    return _WIDER_SIGNED.get(kind, kind)


def value_type(kind: pa.DataType) -> DataType:
    """Return the Paimon type for values of a plain type. Raises InvalidInputError for a type without one."""
    if pa.types.is_null(kind):
        return OnlyNull()
    if pa.types.is_struct(kind):
        members = (kind.field(at) for at in range(kind.num_fields))
        return RowType(tuple(DataField(UNASSIGNED_ID, member.name, value_type(member.type)) for member in members))
    if pa.types.is_map(kind):
        return MapType(value_type(kind.key_type), value_type(kind.item_type))
    if pa.types.is_list(kind):
        return ArrayType(value_type(kind.value_type))
    if pa.types.is_run_end_encoded(kind):
        raise InvalidInputError(f"Arrow type {kind} is not supported. Cast it to {kind.value_type} first.")
    return from_arrow(kind)


def plain_array(array: pa.Array) -> pa.Array:
    """Return the values in plain form. Raises Arrow's errors for values without one."""
    kind = plain_type(array.type)
    if not _is_list_view(array.type) and _refers_to_more(array):
        array = array.take(pa.array(np.arange(len(array))))
    if _is_list_view(array.type):
        array = _lists(array)
    if pa.types.is_dictionary(array.type):  # Arrow cannot decode dictionaries of views.
        array = pa.DictionaryArray.from_arrays(array.indices, plain_array(array.dictionary))
    # A date64 is a whole number of days; a finer part is cut, as for times.
    return array if array.type == kind else array.cast(kind, safe=not pa.types.is_date(kind))


def _refers_to_more(array: pa.Array) -> bool:
    """Return whether a slice has far larger buffers: a cast would copy them whole, and offsets could overflow."""
    kind = array.type
    if not (pa.types.is_nested(kind) or pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)):
        return False
    return bool(array.get_total_buffer_size() > max(_SMALL, _SPARSE * array.nbytes))


def _lists(views: pa.Array) -> pa.Array:
    """Return views of lists as lists. Arrow's own cast loses the values after a NULL."""
    lengths = pc.fill_null(pc.list_value_length(views), 0).to_numpy().astype(np.int64)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    mask = views.is_null() if views.null_count else None
    return pa.LargeListArray.from_arrays(pa.array(offsets), views.flatten(), mask=mask)


def _plain_field(field: pa.Field) -> pa.Field:
    if _is_list_view(field.type):
        raise InvalidInputError(
            f"Arrow type {field.type} is not supported within other values. Cast it to a list first."
        )
    return pa.field(field.name, plain_type(field.type), field.nullable)


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
    )


def _is_list_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))
