"""Columns from slots: fields of BinaryRows and elements of BinaryArrays, also nested ones (docs/format.md 8.2, 8.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lakelsm.errors import CorruptTableError, UnsupportedFeatureError
from lakelsm.format.row.binary_row_slots import (
    TIMESTAMP_ROOTS,
    Longs,
    Mask,
    Words,
    is_wide_decimal,
    is_wide_timestamp,
)
from lakelsm.format.row.row_bytes import RowBytes, check_rows, load_numbers
from lakelsm.format.row.row_columns import (
    MILLIS_PER_DAY,
    big_endian_words,
    bytes_column,
    decimal_column,
    sign_words,
    time_column,
    validity,
    value_column,
)
from lakelsm.types import (
    BINARY_ROOTS,
    STRING_ROOTS,
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    parse_type,
    to_arrow,
)

_LOW_HALF = np.uint64(0xFFFFFFFF)
_NUMPY_TYPES: dict[str, Any] = {
    "BOOLEAN": np.uint8,
    "TINYINT": np.uint8,
    "SMALLINT": np.uint16,
    "INT": np.uint32,
    "DATE": np.uint32,
    "TIME": np.uint32,
    "FLOAT": np.uint32,
    "BIGINT": np.uint64,
    "DOUBLE": np.uint64,
}
#: Bytes of an element by the name of its type; 8 for other types. Persisted: do not change
ELEMENT_BYTES = {"BOOLEAN": 1, "TINYINT": 1, "SMALLINT": 2, "INT": 4, "FLOAT": 4, "DATE": 4, "TIME": 4}
_COUNT = parse_type("INT")


@dataclass(frozen=True, slots=True)
class Slots:
    """Slots of rows (or arrays) in a padded buffer.

    ``values`` are 0 for NULL; ``slot_offsets`` are the slots' offsets. ``rows`` has the row of each slot, and ``fixed``
    the size of its fixed part, which variable parts follow. ``room`` is the total size of all rows: variable parts with
    a larger total overlap.
    """

    values: Words
    nulls: Mask
    _: KW_ONLY
    slot_offsets: Longs
    rows: RowBytes
    fixed: Longs
    room: int


def slot_column(slots: Slots, data_type: DataType) -> pa.Array:
    """Return the column of type ``to_arrow(data_type)``. Raises CorruptTableError if bytes contradict the layout."""
    arrow_type, nulls = to_arrow(data_type), slots.nulls
    if not isinstance(data_type, AtomicType):
        return nested_column(_parts(slots, slots.values & _LOW_HALF), nulls, data_type)
    root = data_type.root
    if root in STRING_ROOTS or root in BINARY_ROOTS:
        return _bytes_column(slots, arrow_type)
    if root == "DECIMAL":
        wide = is_wide_decimal(data_type)
        low, high = _wide_decimals(slots) if wide else (slots.values, sign_words(slots.values))
        return decimal_column(arrow_type, low, high, nulls)
    if root in TIMESTAMP_ROOTS:
        return _timestamps(slots, data_type, arrow_type)
    values = slots.values.astype(_NUMPY_TYPES[root])
    if root == "BOOLEAN":
        return value_column(pa.uint8(), values, nulls).cast(arrow_type)
    if root == "TIME":
        check_rows(values >= MILLIS_PER_DAY, "has a time of day beyond 24 hours")
    return value_column(arrow_type, values, nulls)


def nested_column(values: RowBytes, nulls: Mask, data_type: DataType) -> pa.Array:
    """Return a column of arrays, maps or rows (in BinaryRow form) from the bytes of each value, of length 0 for NULL."""
    arrow_type = to_arrow(data_type)
    if isinstance(data_type, RowType):
        present = np.flatnonzero(~nulls)
        members = _binary_rows(values.take(present), [member.type for member in data_type.fields])
        rows = pa.StructArray.from_arrays(members, fields=list(arrow_type))
        return spread(rows, nulls)
    if isinstance(data_type, ArrayType):
        offsets, elements = _elements(values, nulls, data_type.element)
        return _listed(arrow_type, offsets, nulls, elements)
    if not isinstance(data_type, (MapType, MultisetType)):
        raise UnsupportedFeatureError(f"a value of type {data_type.root} cannot be read from a row's bytes")
    key_type = data_type.key if isinstance(data_type, MapType) else data_type.element
    value_type = data_type.value if isinstance(data_type, MapType) else _COUNT
    check_rows(~nulls & (values.lengths < 4), "has a map without a size")
    sizes = np.where(nulls, 0, load_numbers(values.buffer, values.starts, "<i4"))
    check_rows(~nulls & ((sizes < 0) | (sizes > values.lengths - 4)), "has a map of keys that do not fit")
    offsets, keys = _elements(RowBytes(values.buffer, values.starts + 4, sizes), nulls, key_type)
    rest = np.where(nulls, 0, values.lengths - 4 - sizes)
    others, items = _elements(RowBytes(values.buffer, values.starts + 4 + sizes, rest), nulls, value_type)
    check_rows(offsets[1:] != others[1:], "has a map whose numbers of keys and values differ")
    check_rows(keys.is_null().to_numpy(zero_copy_only=False), "has a map with a key that is NULL")
    entries = pa.StructArray.from_arrays([keys, items], fields=[arrow_type.key_field, arrow_type.item_field])
    return _listed(arrow_type, offsets, nulls, entries)


def spread(rows: pa.Array, nulls: Mask) -> pa.Array:
    """Insert NULL into the values of the non-NULL rows, so that each value has its row's index."""
    if len(rows) == len(nulls):
        return rows
    return rows.take(pa.array(np.maximum(np.cumsum(~nulls) - 1, 0), mask=nulls))


def _listed(arrow_type: pa.DataType, offsets: Longs, nulls: Mask, elements: pa.Array) -> pa.Array:
    buffers = [validity(nulls), pa.py_buffer(offsets.astype(np.int32))]
    return pa.Array.from_buffers(arrow_type, len(nulls), buffers, children=[elements])


def _elements(values: RowBytes, nulls: Mask, element_type: DataType) -> tuple[Longs, pa.Array]:
    """Return the start of each BinaryArray's elements among all elements, and the elements."""
    check_rows(~nulls & (values.lengths < 4), "has an array without a size")
    starts = np.where(nulls, 0, values.starts)
    counts = np.where(nulls, 0, load_numbers(values.buffer, starts, "<i4")).astype(np.int64)
    width = ELEMENT_BYTES.get(element_type.root, 8)
    header = 4 + 4 * ((counts + 31) // 32)
    check_rows((counts < 0) | (~nulls & (header + width * counts > values.lengths)), "has an array that does not fit")
    offsets = np.concatenate([[0], np.cumsum(counts)])
    owners = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(owners)) - offsets[owners]
    flags = values.buffer[starts[owners] + 4 + (number >> 3)] >> (number & 7).astype(np.uint8)
    missing: Mask = (flags & np.uint8(1)).astype(bool)
    slot_offsets = (starts + header)[owners] + width * number
    slots = np.where(missing, 0, load_numbers(values.buffer, slot_offsets, f"<u{width}")).astype(np.uint64)
    rows = RowBytes(values.buffer, starts[owners], values.lengths[owners])
    fixed = (header + width * counts)[owners]
    room = int(values.lengths.sum())
    found = Slots(slots, missing, slot_offsets=slot_offsets, rows=rows, fixed=fixed, room=room)
    return offsets, slot_column(found, element_type)


def _binary_rows(rows: RowBytes, types: Sequence[DataType]) -> list[pa.Array]:
    """Return the columns of BinaryRows without arity."""
    header = ((len(types) + 8 + 63) // 64) * 8
    fixed = header + 8 * len(types)
    check_rows(rows.lengths < fixed, "ends before its last field")
    columns, room = [], int(rows.lengths.sum())
    for index, data_type in enumerate(types):
        bit = index + 8
        nulls = (rows.buffer[rows.starts + (bit >> 3)] & np.uint8(1 << (bit & 7))) != 0
        slot_offsets = rows.starts + header + 8 * index
        values = np.where(nulls, np.uint64(0), load_numbers(rows.buffer, slot_offsets, "<u8"))
        ends = np.full(len(slot_offsets), fixed)
        slots = Slots(values, nulls, slot_offsets=slot_offsets, rows=rows, fixed=ends, room=room)
        columns.append(slot_column(slots, data_type))
    return columns


def _parts(slots: Slots, sizes: Words, absent: Mask | None = None) -> RowBytes:
    """Return the variable parts that slots point to. Raises CorruptTableError if one is outside its row."""
    absent = slots.nulls if absent is None else absent
    lengths = np.where(absent, 0, sizes).astype(np.int64)
    offsets = (slots.values >> np.uint64(32)).astype(np.int64)
    outside = (offsets < slots.fixed) | (offsets + lengths > slots.rows.lengths)
    check_rows(outside & ~absent, "has a variable-length field that points outside the row")
    if int(lengths.sum()) > slots.room:
        raise CorruptTableError("a row has variable-length fields that overlap")
    return RowBytes(slots.rows.buffer, np.where(absent, 0, slots.rows.starts + offsets), lengths)


def _bytes_column(slots: Slots, arrow_type: pa.DataType) -> pa.Array:
    flags = (slots.values >> np.uint64(56)).astype(np.int64)
    inline = flags >= 0x80
    check_rows(inline & (flags & 0x7F > 7), "has an inline value of more than 7 bytes")
    parts = _parts(slots, slots.values & _LOW_HALF, inline | slots.nulls)
    starts = np.where(inline, slots.slot_offsets, parts.starts)
    lengths = np.where(inline, flags & 0x7F, parts.lengths)
    return bytes_column(arrow_type, slots.rows.buffer, starts, lengths, slots.nulls)


def _wide_decimals(slots: Slots) -> tuple[Words, Words]:
    lengths = (slots.values & _LOW_HALF).astype(np.int64)
    check_rows(~slots.nulls & ((lengths < 1) | (lengths > 16)), "has a decimal that is not 1 to 16 bytes long")
    parts = _parts(slots, slots.values & _LOW_HALF)
    # A writer that does not reserve 16 bytes may cut the last word short. The bytes loaded after it are not used.
    first, second = (load_numbers(parts.buffer, parts.starts + at, "<u8") for at in (0, 8))
    return big_endian_words(first, second, np.where(slots.nulls, 16, lengths))


def _timestamps(slots: Slots, data_type: AtomicType, arrow_type: pa.DataType) -> pa.Array:
    if not is_wide_timestamp(data_type):
        return value_column(arrow_type, slots.values, slots.nulls)
    nanos = (slots.values & _LOW_HALF).astype(np.int64)
    check_rows(~slots.nulls & (nanos > 999_999), "has a timestamp with more than a millisecond of nanoseconds")
    parts = _parts(slots, np.full(len(nanos), 8, np.uint64))
    return time_column(arrow_type, load_numbers(parts.buffer, parts.starts, "<i8"), nanos, slots.nulls)
