"""The 8-byte slot and the variable part of one BinaryRow field, for a whole Arrow column.

The layout is in docs/format.md 8 (fixed slots, variable chunks, the space that Java reserves for a null wide
DECIMAL or TIMESTAMP). All functions use numpy ``uint64`` words in little-endian order, the layout's unit.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.types import BINARY_ROOTS, STRING_ROOTS, AtomicType, DataType
from lakelsm.types.nano_timestamps import NANO_TIMESTAMP, micros_and_nanos

if sys.byteorder != "little":  # All buffer views below rely on it.
    raise ImportError("lakelsm needs a little-endian machine")

Words = npt.NDArray[np.uint64]
Longs = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

MAX_INLINE_BYTES = 7  # Persisted: do not change
MAX_COMPACT_DECIMAL_PRECISION = 18  # Persisted: do not change
MAX_COMPACT_TIMESTAMP_PRECISION = 3  # Persisted: do not change
WIDE_DECIMAL_WORDS = 2  # Persisted: do not change
INLINE_FLAG = 0x80  # Persisted: do not change

TIMESTAMP_ROOTS = frozenset({"TIMESTAMP", "TIMESTAMP_LTZ"})
_INTEGER_TYPES = {"TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(), "BIGINT": pa.int64()}
_FLOAT_TYPES = {"FLOAT": pa.float32(), "DOUBLE": pa.float64()}
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_UNITS_PER_MILLI = {"ms": 1, "us": 1_000, "ns": 1_000_000}


@dataclass(frozen=True, slots=True)
class FieldSlots:
    """One field of n rows.

    ``slots``: uint64[n]; if the field has a variable part, only the low 32 bits (length or nanos) are
    set, and the row's assembler adds the offset. ``nulls``: bool[n], or None if no row is null.
    ``var_words``: number of words in the variable part, one for all rows or int64[n]; 0 without one.
    ``var_data``: the words of the variable parts, row after row.
    """

    slots: Words
    nulls: Mask | None
    var_words: int | Longs
    var_data: Words | None


def is_row_type(data_type: DataType) -> bool:
    """Return whether BinaryRow fields of this type can be written and read here; nested types cannot."""
    if not isinstance(data_type, AtomicType):
        return False
    root = data_type.root
    return (
        root in _INTEGER_TYPES
        or root in _FLOAT_TYPES
        or root in STRING_ROOTS
        or root in BINARY_ROOTS
        or root in TIMESTAMP_ROOTS
        or root in ("BOOLEAN", "DECIMAL", "DATE", "TIME")
    )


def require_row_type(data_type: DataType) -> AtomicType:
    """Return the type. Raises UnsupportedFeatureError for ARRAY, MAP, MULTISET, VECTOR, ROW, VARIANT and BLOB."""
    if isinstance(data_type, AtomicType) and is_row_type(data_type):
        return data_type
    raise UnsupportedFeatureError(
        f"a field of type {data_type.root} cannot be part of a key, a partition or a statistics row"
    )


def is_wide_decimal(data_type: AtomicType) -> bool:
    """Return whether a DECIMAL's unscaled value is in the variable part (precision above 18)."""
    return data_type.root == "DECIMAL" and (data_type.precision or 0) > MAX_COMPACT_DECIMAL_PRECISION


def is_wide_timestamp(data_type: AtomicType) -> bool:
    """Return whether a timestamp's milliseconds are in the variable part (precision above 3)."""
    return data_type.root in TIMESTAMP_ROOTS and (data_type.precision or 0) > MAX_COMPACT_TIMESTAMP_PRECISION


def field_slots(array: pa.Array, data_type: DataType) -> FieldSlots:
    """Encode one Arrow array as a field of ``data_type``.

    Accepts slices, dictionaries, large and view layouts, and other units or widths of the same kind of value
    (finer time units are floored). Raises InvalidInputError for values of another kind or that do not fit.
    """
    atomic = require_row_type(data_type)
    plain = normalise(array, atomic)
    root = atomic.root
    nulls = null_mask(plain)
    if root in STRING_ROOTS or root in BINARY_ROOTS:
        return _bytes_slots(plain, nulls)
    if root == "DECIMAL":
        return _decimal_slots(plain, nulls, is_wide_decimal(atomic))
    if root in TIMESTAMP_ROOTS:
        return _timestamp_slots(plain, nulls, atomic)
    if root == "BOOLEAN":
        plain = plain.cast(pa.uint8())
    raw = primitive_values(plain)
    slots = raw.view(_UNSIGNED[raw.dtype.itemsize]).astype(np.uint64, copy=False)
    return FieldSlots(_zero_nulls(slots, nulls), nulls, 0, None)


def null_mask(array: pa.Array) -> Mask | None:
    """Return bool[n], True for null; None if no value is null."""
    if array.null_count == 0:
        return None
    mask: Mask = pc.is_null(array).to_numpy(zero_copy_only=False)
    return mask


def primitive_values(array: pa.Array) -> npt.NDArray[Any]:
    """Return a view of a fixed-width array's values as signed integers or floats; those of NULL are arbitrary."""
    width = array.type.bit_width // 8
    dtype: Any = array.type.to_pandas_dtype() if pa.types.is_floating(array.type) else f"i{width}"
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(len(array), dtype=dtype)
    return np.frombuffer(buffer, dtype=dtype, count=len(array), offset=array.offset * width)


def byte_layout(array: pa.Array) -> tuple[Longs, npt.NDArray[np.uint8]]:
    """Return offsets int64[n+1] and data bytes (a view) of a (large) string or binary array."""
    large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, offset_buffer, data_buffer = array.buffers()
    if offset_buffer is None or len(array) == 0:
        return np.zeros(len(array) + 1, dtype=np.int64), np.empty(0, dtype=np.uint8)
    dtype = np.dtype(np.int64 if large else np.int32)
    offsets = np.frombuffer(offset_buffer, dtype, len(array) + 1, array.offset * dtype.itemsize)
    data = np.empty(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    return offsets.astype(np.int64, copy=False), data


def padded_words(data: npt.NDArray[np.uint8]) -> Words:
    """Return a copy of the bytes as words, followed by at least two zero words, for :func:`load_words`."""
    words = np.zeros((len(data) >> 3) + 3, dtype=np.uint64)
    words.view(np.uint8)[: len(data)] = data
    return words


def load_words(words: Words, positions: Longs) -> Words:
    """Return the 8 bytes at each byte position (any alignment) as a word. Also reads one word past the last position."""
    index = positions >> 3
    shift = ((positions & 7) << 3).astype(np.uint64)
    low = words[index] >> shift
    index += 1
    high = words[index] << (np.uint64(63) - shift)
    high <<= np.uint64(1)
    loaded: Words = low | high
    return loaded


def normalise(array: pa.Array, data_type: AtomicType) -> pa.Array:
    """Return the array in a plain layout for the encoders. Raises InvalidInputError for values of another kind."""
    source = array.type
    if pa.types.is_dictionary(source):
        array = array.cast(source.value_type)
        source = array.type
    target = _plain_type(source, data_type)
    if target is None:
        raise InvalidInputError(f"values of type {source} cannot be stored as {data_type.sql()}")
    if source == target:
        return array
    if pa.types.is_null(source):
        return pa.nulls(len(array), target)
    try:
        # Unsafe only for times of day and dates, whose finer units are floored. A timestamp keeps its unit.
        return array.cast(target, safe=data_type.root not in ("TIME", "DATE"))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidInputError(f"{source} value does not fit {data_type.sql()}: {error}") from error


def _plain_type(source: pa.DataType, data_type: AtomicType) -> pa.DataType | None:
    """Return the Arrow type for reading ``source`` values; None if they are of another kind than ``data_type``."""
    root = data_type.root
    is_null = pa.types.is_null(source)
    if root in _INTEGER_TYPES:
        return _INTEGER_TYPES[root] if is_null or pa.types.is_integer(source) else None
    if root in _FLOAT_TYPES:
        return _FLOAT_TYPES[root] if is_null or pa.types.is_floating(source) else None
    if root == "BOOLEAN":
        return pa.bool_() if is_null or pa.types.is_boolean(source) else None
    if root == "DECIMAL":
        target = pa.decimal128(data_type.precision or 10, data_type.scale or 0)
        return target if is_null or pa.types.is_decimal(source) else None
    if root == "DATE":
        return pa.date32() if is_null or pa.types.is_date(source) else None
    if root == "TIME":
        return pa.time32("ms") if is_null or pa.types.is_time(source) else None
    if root in TIMESTAMP_ROOTS:
        if is_null:
            return pa.timestamp("ms")
        return source if pa.types.is_timestamp(source) or source == NANO_TIMESTAMP else None
    return _plain_bytes_type(source, root in STRING_ROOTS)


def _plain_bytes_type(source: pa.DataType, text: bool) -> pa.DataType | None:
    types = pa.types
    if text:
        plain = types.is_string(source) or types.is_large_string(source)
        other = types.is_null(source) or types.is_string_view(source)
        return source if plain else pa.large_string() if other else None
    plain = types.is_binary(source) or types.is_large_binary(source)
    other = types.is_null(source) or types.is_fixed_size_binary(source) or types.is_binary_view(source)
    return source if plain else pa.large_binary() if other else None


def _zero_nulls(slots: Words, nulls: Mask | None) -> Words:
    return slots if nulls is None else np.where(nulls, np.uint64(0), slots)


def _bytes_slots(array: pa.Array, nulls: Mask | None) -> FieldSlots:
    offsets, data = byte_layout(array)
    base = int(offsets[0])
    words = padded_words(data[base : int(offsets[-1])])
    starts = offsets[:-1] - base
    lengths = offsets[1:] - offsets[:-1]
    if nulls is not None:
        lengths = np.where(nulls, 0, lengths)
    inline_length = np.minimum(lengths, MAX_INLINE_BYTES).astype(np.uint64)
    keep = (np.uint64(1) << (inline_length << np.uint64(3))) - np.uint64(1)
    slots = load_words(words, starts) & keep
    slots |= (inline_length | np.uint64(INLINE_FLAG)) << np.uint64(56)
    if int(lengths.max(initial=0)) <= MAX_INLINE_BYTES:
        return FieldSlots(_zero_nulls(slots, nulls), nulls, 0, None)
    long = lengths > MAX_INLINE_BYTES
    slots = np.where(long, lengths.view(np.uint64), slots)
    var_words = np.where(long, (lengths + 7) >> 3, 0)
    return FieldSlots(
        _zero_nulls(slots, nulls), nulls, _single(var_words), chunk_words(words, starts, lengths, var_words)
    )


def _single(var_words: Longs) -> int | Longs:
    first = int(var_words[0])
    return first if bool((var_words == first).all()) else var_words


def chunk_words(words: Words, starts: Longs, lengths: Longs, var_words: Longs) -> Words:
    """Return the zero-padded chunks of the long values, concatenated."""
    ends = np.cumsum(var_words)
    total = int(ends[-1]) if len(ends) else 0
    positions = np.repeat(starts - ((ends - var_words) << 3), var_words)
    positions += np.arange(0, total << 3, 8, dtype=np.int64)
    chunks = load_words(words, positions)
    tails = ((lengths & 7) > 0) & (var_words > 0)
    keep = (np.uint64(1) << ((lengths[tails] & 7) << 3).astype(np.uint64)) - np.uint64(1)
    chunks[ends[tails] - 1] &= keep
    return chunks


def _decimal_slots(array: pa.Array, nulls: Mask | None, wide: bool) -> FieldSlots:
    low, high = decimal_words(array)
    if not wide:
        return FieldSlots(_zero_nulls(low, nulls), nulls, 0, None)
    lengths, first, second = minimal_big_endian(_zero_nulls(low, nulls), _zero_nulls(high, nulls))
    data = np.empty((len(array), WIDE_DECIMAL_WORDS), dtype=np.uint64)
    data[:, 0] = first.byteswap()
    data[:, 1] = second.byteswap()
    return FieldSlots(_zero_nulls(lengths, nulls), nulls, WIDE_DECIMAL_WORDS, data.reshape(-1))


def decimal_words(array: pa.Array) -> tuple[Words, Words]:
    """Return low and high words of the unscaled values of a decimal128 array (two's complement)."""
    buffer = array.buffers()[1]
    if buffer is None:
        return np.zeros(len(array), np.uint64), np.zeros(len(array), np.uint64)
    pairs = np.frombuffer(buffer, np.uint64, 2 * len(array), 16 * array.offset)
    return pairs[0::2], pairs[1::2]


def minimal_big_endian(low: Words, high: Words) -> tuple[Words, Words, Words]:
    """Return the byte length of the shortest two's complement form, and its bytes left-justified in two words.

    The length is that of Java's ``BigInteger.toByteArray`` (-1.28 as DECIMAL(20, 2) is the one byte 80).
    """
    sign = (high.view(np.int64) >> 63).view(np.uint64)
    magnitude_low, magnitude_high = low ^ sign, high ^ sign
    lengths = np.ones(len(low), dtype=np.uint64)
    spills = magnitude_high != 0
    for byte in range(8):
        bound = np.uint64(1 << (8 * byte + 7))
        lengths += spills | (magnitude_low >= bound)
        lengths += magnitude_high >= bound
    shift = (np.uint64(16) - lengths) << np.uint64(3)
    far = shift >= 64
    near_shift = np.where(far, np.uint64(0), shift)
    carried = (low >> np.uint64(1)) >> (np.uint64(63) - near_shift)
    far_shift = np.where(far, shift - np.uint64(64), np.uint64(0))
    first = np.where(far, low << far_shift, (high << near_shift) | carried)
    second = np.where(far, np.uint64(0), low << near_shift)
    return lengths, first, second


def _timestamp_slots(array: pa.Array, nulls: Mask | None, data_type: AtomicType) -> FieldSlots:
    if array.type == NANO_TIMESTAMP:
        micros, rest = micros_and_nanos(array)
        millis, nanos = split_millis(micros, "us")
        nanos += rest
    else:
        millis, nanos = split_millis(primitive_values(array), array.type.unit)
    words = _zero_nulls(millis.view(np.uint64), nulls)
    if not is_wide_timestamp(data_type):
        return FieldSlots(words, nulls, 0, None)
    if (data_type.precision or 0) <= 6:
        nanos -= nanos % 1_000
    return FieldSlots(_zero_nulls(nanos.view(np.uint64), nulls), nulls, 1, words)


def split_millis(values: Longs, unit: str) -> tuple[Longs, Longs]:
    """Return epoch milliseconds (floored, also before 1970) and nanoseconds within the millisecond (0..999999)."""
    if unit == "s":
        return values * 1_000, np.zeros(len(values), dtype=np.int64)
    per_milli = _UNITS_PER_MILLI[unit]
    if per_milli == 1:
        return values, np.zeros(len(values), dtype=np.int64)
    millis = values // per_milli
    rest = values - millis * per_milli
    return millis, rest * (1_000_000 // per_milli)
