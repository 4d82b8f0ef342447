"""Bytes of nested values of a column: BinaryArray, BinaryMap, and BinaryRow within them (docs/format.md 8.6)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.format.row.binary_row import assembled_rows
from lakelsm.format.row.binary_row_slots import (
    FieldSlots,
    Longs,
    byte_layout,
    chunk_words,
    field_slots,
    is_row_type,
    null_mask,
    padded_words,
)
from lakelsm.format.row.row_bytes import fixed_bytes, join_bytes
from lakelsm.format.row.slot_columns import ELEMENT_BYTES
from lakelsm.types import ArrayType, AtomicType, DataType, MapType, MultisetType, RowType, parse_type

_COUNT = parse_type("INT")


def is_nested_type(data_type: DataType) -> bool:
    """Return whether values of the type have bytes here: ARRAY, MAP, MULTISET and ROW of types that do."""
    if isinstance(data_type, RowType):
        return all(_is_member(member.type) for member in data_type.fields)
    if isinstance(data_type, MapType):
        return _is_member(data_type.key) and _is_member(data_type.value)
    return isinstance(data_type, (ArrayType, MultisetType)) and _is_member(data_type.element)


def nested_bytes(array: pa.Array, data_type: DataType) -> pa.BinaryArray:
    """Return the bytes of each value (arbitrary for NULL). Raises InvalidInputError for values of another kind."""
    if isinstance(data_type, RowType) and pa.types.is_struct(array.type):
        members = [_slots(array.field(index), member.type) for index, member in enumerate(data_type.fields)]
        return assembled_rows(members, len(array))
    if isinstance(data_type, ArrayType) and (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
        counts, (elements,) = _children(array, [array.values])
        return _arrays(counts, elements, data_type.element)
    if isinstance(data_type, (MapType, MultisetType)) and pa.types.is_map(array.type):
        counts, (keys, items) = _children(array, [array.keys, array.items])
        key_type = data_type.key if isinstance(data_type, MapType) else data_type.element
        key_arrays = _arrays(counts, keys, key_type)
        value_arrays = _arrays(counts, items, data_type.value if isinstance(data_type, MapType) else _COUNT)
        sizes = np.diff(byte_layout(key_arrays)[0]).astype("<i4")
        return join_bytes([fixed_bytes(sizes, 4), key_arrays, value_arrays])
    if not is_nested_type(data_type):
        raise UnsupportedFeatureError(f"a value of type {data_type.root} has no bytes in a row")
    raise InvalidInputError(f"values of type {array.type} cannot be stored as {data_type.sql()}")


def _is_member(data_type: DataType) -> bool:
    return is_row_type(data_type) or is_nested_type(data_type)


def _slots(array: pa.Array, data_type: DataType) -> FieldSlots:
    """Return a field or an element of any type."""
    if isinstance(data_type, AtomicType):
        return field_slots(array, data_type)
    nulls = null_mask(array)
    offsets, data = byte_layout(nested_bytes(array, data_type))
    starts, lengths = offsets[:-1] - offsets[0], np.diff(offsets)
    if nulls is not None:
        lengths = np.where(nulls, 0, lengths)
    var_words = (lengths + 7) >> 3
    words = padded_words(data[int(offsets[0]) : int(offsets[-1])])
    chunks = chunk_words(words, starts, lengths, var_words)
    return FieldSlots(lengths.view(np.uint64), nulls, var_words, chunks)


def _children(array: pa.Array, children: list[pa.Array]) -> tuple[Longs, list[pa.Array]]:
    """Return the number of elements of each list (0 for NULL), and the elements of all lists, concatenated."""
    offsets = array.offsets.to_numpy().astype(np.int64)
    first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    counts = np.diff(offsets)
    parts = [child.slice(first, last - first) for child in children]
    nulls = null_mask(array)
    if nulls is None:
        return counts, parts
    kept = np.repeat(~nulls, counts)
    if not kept.all():
        parts = [part.filter(pa.array(kept)) for part in parts]
    return np.where(nulls, 0, counts), parts


def _arrays(counts: Longs, elements: pa.Array, element_type: DataType) -> pa.BinaryArray:
    """Return BinaryArrays; ``counts`` has the number of elements of each."""
    slots = _slots(elements, element_type)
    width = ELEMENT_BYTES.get(element_type.root, 8)
    header = 4 + 4 * ((counts + 31) // 32)
    fixed = (header + width * counts + 7) & ~7
    var_words, var_data = _variable(slots, len(elements))
    var_ends = np.concatenate([[0], np.cumsum(var_words)])
    ends = np.cumsum(counts)
    firsts = ends - counts
    starts = np.concatenate([[0], np.cumsum(fixed + 8 * (var_ends[ends] - var_ends[firsts]))])
    if int(starts[-1]) >= 1 << 31:
        raise InvalidInputError("the rows need more than 2 GiB. Encode fewer rows at a time.")
    owners = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(owners)) - firsts[owners]
    out = np.zeros(int(starts[-1]) + 8, np.uint8)
    _store(out, starts[:-1], counts.astype("<i4"))
    if slots.nulls is not None:
        null_offsets = starts[owners] + 4 + (number >> 3)
        bits = np.uint8(1) << (number & 7).astype(np.uint8)
        np.bitwise_or.at(out, null_offsets[slots.nulls], bits[slots.nulls])
    inner = fixed[owners] + 8 * (var_ends[:-1] - var_ends[firsts][owners])
    values = slots.slots | np.where(var_words > 0, inner << 32, 0).view(np.uint64)
    _store(out, starts[owners] + header[owners] + width * number, values.astype(f"<u{width}"))
    if len(var_data):
        targets = np.repeat(((starts[owners] + inner) >> 3) - var_ends[:-1], var_words)
        out[: int(starts[-1])].view(np.uint64)[targets + np.arange(len(var_data))] = var_data
    offsets = pa.py_buffer(starts.astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(counts), [None, offsets, pa.py_buffer(out)])


def _variable(slots: FieldSlots, rows: int) -> tuple[Longs, npt.NDArray[np.uint64]]:
    """Return the number of variable words of each element, and the words. A NULL element of an array has none."""
    if slots.var_data is None:
        return np.zeros(rows, np.int64), np.zeros(0, np.uint64)
    words = np.broadcast_to(np.asarray(slots.var_words, np.int64), (rows,))
    if slots.nulls is None:
        return words, slots.var_data
    return np.where(slots.nulls, 0, words), slots.var_data[np.repeat(~slots.nulls, words)]


def _store(out: npt.NDArray[np.uint8], offsets: Longs, values: npt.NDArray[np.generic]) -> None:
    """Write numbers at byte offsets of any alignment."""
    width = values.dtype.itemsize
    windows: npt.NDArray[np.generic] = np.ndarray((len(out) - width + 1,), values.dtype, out, strides=(1,))
    windows[offsets] = values
