"""Arrow columns from values decoded from the bytes of BinaryRows and compacted rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.errors import CorruptTableError
from lakelsm.format.row.binary_row_slots import Longs, Mask, Words
from lakelsm.types.nano_timestamps import NANO_TIMESTAMP, nano_timestamps, timestamp_out_of_range

MILLIS_PER_DAY = 86_400_000


def value_column(arrow_type: pa.DataType, values: npt.NDArray[Any], nulls: Mask) -> pa.Array:
    """Return a column of fixed width with the buffer ``values``, which may have any value for NULL."""
    buffers = [validity(nulls), pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(arrow_type, len(nulls), buffers)


def bytes_column(
    arrow_type: pa.DataType, data: npt.NDArray[np.uint8], starts: Longs, lengths: Longs, nulls: Mask
) -> pa.Array:
    """Return a column of text or bytes: the parts of ``data`` at ``starts``; the length of a NULL is 0.

    Raises CorruptTableError for text that is not UTF-8, and for more than 2 GiB.
    """
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if int(offsets[-1]) >= 1 << 31:
        raise CorruptTableError("the texts of rows that are decoded together exceed 2 GiB")
    picks = np.repeat(starts - offsets[:-1], lengths)
    picks += np.arange(len(picks), dtype=np.int64)
    buffers = [validity(nulls), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data[picks])]
    column = pa.Array.from_buffers(arrow_type, len(nulls), buffers)
    if pa.types.is_string(arrow_type):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise CorruptTableError(f"a row has text that is not UTF-8: {error}") from error
    return column


def time_column(arrow_type: pa.DataType, millis: Longs, nanos: Longs, nulls: Mask) -> pa.Array:
    """Return a column of times from milliseconds since the epoch and nanoseconds within the millisecond.

    Raises UnsupportedFeatureError for a time outside the range of 64-bit microseconds.
    """
    millis = np.where(nulls, 0, millis)
    bound = (1 << 63) // 1_000 - 1
    if ((millis > bound) | (millis < -bound)).any():
        raise timestamp_out_of_range()
    micros = millis * 1_000 + nanos // 1_000
    if arrow_type == NANO_TIMESTAMP:
        return nano_timestamps(micros, nanos % 1_000, pa.array(~nulls) if nulls.any() else None)
    return value_column(arrow_type, micros, nulls)


def decimal_column(arrow_type: pa.DataType, low: Words, high: Words, nulls: Mask) -> pa.Array:
    """Return a column of decimals from the words of their unscaled values."""
    return value_column(arrow_type, np.stack([low, high], axis=1), nulls)


def big_endian_words(first: Words, second: Words, lengths: Longs) -> tuple[Words, Words]:
    """Return low and high words of big-endian numbers of 1 to 16 bytes. At least 16 bytes of each were loaded."""
    first, second = first.byteswap(), second.byteswap()
    shift = ((16 - lengths) << 3).astype(np.uint64)
    far = shift >= 64
    near = np.where(far, np.uint64(0), shift)
    sign = sign_words(first)
    carried = (first << np.uint64(1)) << (np.uint64(63) - near)
    rest = np.where(far, shift - np.uint64(64), np.uint64(0)).view(np.int64)
    beyond = (first.view(np.int64) >> rest).view(np.uint64)
    low = np.where(far, beyond, (second >> near) | carried)
    high = np.where(far, sign, (first.view(np.int64) >> near.view(np.int64)).view(np.uint64))
    return low, high


def sign_words(words: Words) -> Words:
    """Return all ones for negative numbers, else 0."""
    return (words.view(np.int64) >> 63).view(np.uint64)


def validity(nulls: Mask) -> pa.Buffer | None:
    """Return the validity bits of a column; None if no value is NULL."""
    return pa.py_buffer(np.packbits(~nulls, bitorder="little")) if nulls.any() else None
