"""Columns of an older schema converted to the newest schema, in Arrow: members of ROW are matched by field id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.format.data_file.int96_timestamps import INT96, from_int96, to_int96
from lakelsm.types import ArrayType, DataType, MapType, MultisetType, RowType, python_arrow, same_layout, to_arrow
from lakelsm.types.nano_timestamps import (
    NANO_TIMESTAMP,
    timestamp_out_of_range,
    timestamp_texts,
    with_nanoseconds,
    without_nanoseconds,
)

#: Maximum digits of a decimal that Paimon stores as one 64-bit number.
_COMPACT_DIGITS = 18

_UNITS = {"s": "second", "ms": "millisecond", "us": "microsecond"}


def cast_column(column: pa.Array | pa.ChunkedArray, target: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Cast to the target type: the same values in another layout, Paimon's widening, or coarser timestamps (floored).

    Timestamps may also be `NANO_TIMESTAMP`, or INT96 as files store them; `NANO_TIMESTAMP` can be cast to text
    (`timestamp_texts`). Raises UnsupportedFeatureError for a time outside the range of 64-bit microseconds.
    """
    if column.type.equals(target):
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([cast_column(chunk, target) for chunk in column.chunks], target)
    source = column.type
    if pa.types.is_date(source) and _is_time(target):
        column, source = _midnights(column), pa.timestamp("us")
    if _is_time(source) and (_is_time(target) or (source == NANO_TIMESTAMP and pa.types.is_string(target))):
        return _cast_time(column, target)
    if pa.types.is_struct(source) and source.num_fields == target.num_fields:
        children = [cast_column(column.field(at), target.field(at).type) for at in range(source.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(target), mask=column.is_null())
    if pa.types.is_map(source):
        return _with_parts(column, target, [column.keys, column.items])
    if pa.types.is_list(source):
        return _with_parts(column, target, [column.values])
    if pa.types.is_time32(target) and pa.types.is_integer(source):
        column = column.cast(pa.int32())
    if pa.types.is_decimal128(source) and pa.types.is_floating(target):
        column = _doubles(column)
    return column.cast(target, safe=False)


def _doubles(decimals: pa.Array) -> pa.Array:
    """Cast decimals to DOUBLE with the same bits as Paimon's Java; a cast to FLOAT uses this DOUBLE.

    Up to 18 digits, the result is the unscaled value as a DOUBLE, divided by the power of ten. With more digits it is the
    DOUBLE nearest to the decimal. Both rules agree for numbers of at most 53 bits.
    """
    if decimals.type.precision > _COMPACT_DIGITS or not len(decimals):
        # Arrow's cast multiplies by a power of ten, which is not a binary fraction. Its parser is exact.
        return decimals.cast(pa.string()).cast(pa.float64())
    words = np.frombuffer(decimals.buffers()[1], "<i8")[2 * decimals.offset : 2 * (decimals.offset + len(decimals)) : 2]
    mask = decimals.is_null().to_numpy(zero_copy_only=False) if decimals.null_count else None
    return pa.array(words.astype(np.float64) / 10.0**decimals.type.scale, mask=mask)


def comparable_values(column: pa.Array, data_type: DataType) -> list[Any]:
    """Return a column's Python values as conditions compare them: TIMESTAMP(7..9) is floored to microseconds.

    Raises UnsupportedFeatureError for dates and times outside Python's years 1 to 9999.
    """
    try:
        values: list[Any] = cast_column(column, python_arrow(data_type)).to_pylist()
    except (OverflowError, ValueError) as error:
        raise UnsupportedFeatureError(f"a {data_type.sql()} value is outside the years 1 to 9999: {error}") from error
    return values


def _is_time(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) or kind in (NANO_TIMESTAMP, INT96)


def _midnights(days: pa.Array) -> pa.Array:
    """Convert dates to the timestamps at their start."""
    try:
        return days.cast(pa.timestamp("us"))
    except pa.ArrowInvalid as error:
        raise timestamp_out_of_range() from error


def _cast_time(column: pa.Array, target: pa.DataType) -> pa.Array:
    if column.type == INT96:
        column = from_int96(column)
    if target == INT96:
        return to_int96(_cast_time(column, NANO_TIMESTAMP))
    if target == NANO_TIMESTAMP:
        return column if column.type == NANO_TIMESTAMP else with_nanoseconds(column)
    if column.type == NANO_TIMESTAMP:
        return timestamp_texts(column) if pa.types.is_string(target) else without_nanoseconds(column, target)
    if target.unit in _UNITS:
        column = pc.floor_temporal(column, unit=_UNITS[target.unit])
    try:
        return column.cast(target)
    except pa.ArrowInvalid as error:
        raise timestamp_out_of_range() from error


def evolve_array(array: pa.Array, source: DataType, target: DataType) -> pa.Array:
    """Convert values of the file's type ``source`` to the table's type ``target``.

    Members of a ROW are matched by field id. A member that the file does not have becomes NULL; others are dropped.
    """
    if same_layout(source, target):
        return cast_column(array, to_arrow(target))
    if isinstance(source, RowType) and isinstance(target, RowType):
        return _evolve_row(array, source, target)
    if isinstance(source, (ArrayType, MultisetType)) and type(source) is type(target):
        assert isinstance(target, (ArrayType, MultisetType))
        return _evolve_nested(array, to_arrow(target), [(source.element, target.element)])
    if isinstance(source, MapType) and isinstance(target, MapType):
        return _evolve_nested(array, to_arrow(target), [(source.key, target.key), (source.value, target.value)])
    return cast_column(array, to_arrow(target))


def _evolve_row(array: pa.StructArray, source: RowType, target: RowType) -> pa.StructArray:
    wanted = to_arrow(target)
    positions = {member.id: at for at, member in enumerate(source.fields)}
    children = []
    for member, field in zip(target.fields, wanted):
        at = positions.get(member.id)
        if at is None:
            children.append(pa.nulls(len(array), field.type))
        else:
            child = array.field(source.fields[at].name)
            children.append(evolve_array(child, source.fields[at].type, member.type))
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=array.is_null())


def _evolve_nested(array: pa.Array, wanted: pa.DataType, parts: list[tuple[DataType, DataType]]) -> pa.Array:
    """Convert the elements of lists, and the keys and values of maps. The counts of multisets stay."""
    old = [array.keys, array.items] if pa.types.is_map(array.type) else [array.values]
    evolved = [evolve_array(values, *types) for values, types in zip(old, parts)]
    return _with_parts(array, wanted, [*evolved, *old[len(parts) :]])


def _with_parts(array: pa.Array, wanted: pa.DataType, parts: Sequence[pa.Array]) -> pa.Array:
    """Return the list or map with other elements, cast to the wanted type. Validity and offsets stay."""
    if pa.types.is_map(wanted):
        fields = [wanted.key_field, wanted.item_field]
        columns = [cast_column(part, field.type) for part, field in zip(parts, fields)]
        child = pa.StructArray.from_arrays(columns, fields=fields)
    else:
        child = cast_column(parts[0], wanted.value_type)
    validity, offsets = array.buffers()[:2]
    return pa.Array.from_buffers(wanted, len(array), [validity, offsets], offset=array.offset, children=[child])


__all__ = ["cast_column", "comparable_values", "evolve_array"]
