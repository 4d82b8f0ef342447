"""Byte strings in one buffer, read at many offsets together: numbers and variable-length integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.errors import CorruptTableError
from lakelsm.format.row.binary_row_slots import Longs, Mask, Words, byte_layout

#: Bytes after the last one that loads may touch. Their values are never used.
PADDING = 16
_VARINT_BYTES = 10  # The maximum of a number of 64 bits.


@dataclass(frozen=True, slots=True)
class RowBytes:
    """Byte strings in a buffer that ends with `PADDING` unused bytes. The strings may overlap and have any order."""

    buffer: npt.NDArray[np.uint8]
    starts: Longs
    lengths: Longs

    @classmethod
    def of(cls, rows: pa.Array) -> RowBytes:
        """Return the values of a binary array; those of NULL are empty."""
        offsets, data = byte_layout(rows)
        base = int(offsets[0])
        return cls(padded(data[base : int(offsets[-1])]), offsets[:-1] - base, offsets[1:] - offsets[:-1])

    def take(self, indices: npt.NDArray[np.int64]) -> RowBytes:
        """Return the strings at ``indices``."""
        return RowBytes(self.buffer, self.starts[indices], self.lengths[indices])


def padded(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return a copy of the bytes, followed by `PADDING` zeros."""
    buffer = np.zeros(len(data) + PADDING, np.uint8)
    buffer[: len(data)] = data
    return buffer


def load_numbers(buffer: npt.NDArray[np.uint8], offsets: Longs, dtype: str) -> npt.NDArray[Any]:
    """Return the little-endian numbers at byte offsets of a padded buffer, of any alignment."""
    kind = np.dtype(dtype)
    windows: npt.NDArray[Any] = np.ndarray((len(buffer) - kind.itemsize + 1,), kind, buffer, strides=(1,))
    return windows[offsets]


def load_varints(buffer: npt.NDArray[np.uint8], offsets: Longs, ends: Longs) -> tuple[Longs, Longs]:
    """Return variable-length integers (7 bits a byte, low bits first) at byte offsets, and the size of each in bytes.

    Raises CorruptTableError for one that continues after its string's end, or has more than 63 bits.
    """
    last = buffer[np.minimum(offsets, ends)].astype(np.int64)
    values = last & 0x7F
    sizes = np.ones(len(offsets), np.int64)
    unfinished = np.flatnonzero(last >= 0x80)
    for byte in range(1, _VARINT_BYTES):
        if not len(unfinished):
            break
        more = buffer[np.minimum(offsets[unfinished] + byte, ends[unfinished])].astype(np.int64)
        values[unfinished] |= (more & 0x7F) << (7 * byte)
        sizes[unfinished] += 1
        unfinished = unfinished[more >= 0x80]
    check_rows((offsets + sizes > ends) | (values < 0), "has a number that continues after its end")
    return values, sizes


def varint_bytes(values: Longs, nulls: Mask | None = None) -> pa.BinaryArray:
    """Return non-negative integers as variable-length byte strings, NULL where ``nulls`` is True."""
    largest = int(values.max(initial=0))
    width = max((largest.bit_length() + 6) // 7, 1)
    if width == 1:
        return fixed_bytes(values.astype(np.uint8), 1, nulls)
    digits = (values[:, None] >> (7 * np.arange(width))).astype(np.int64)
    more = digits >= 0x80
    written = np.ones(digits.shape, bool)
    written[:, 1:] = digits[:, 1:] > 0
    data = ((digits & 0x7F) | np.where(more, 0x80, 0)).astype(np.uint8)[written]
    return _strings(data, written.sum(axis=1), nulls)


def fixed_bytes(values: npt.NDArray[Any], width: int, nulls: Mask | None = None) -> pa.BinaryArray:
    """Return values of ``width`` bytes each as byte strings, NULL where ``nulls`` is True."""
    rows = values.nbytes // width
    offsets = np.arange(0, (rows + 1) * width, width, dtype=np.int32)
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.binary(), rows, [_validity(nulls), pa.py_buffer(offsets), data])


def left_justified(first: Words, second: Words, lengths: Longs, nulls: Mask | None) -> pa.BinaryArray:
    """Return the first 1 to 16 bytes of two big-endian words each, as byte strings."""
    table = np.stack([first.byteswap(), second.byteswap()], axis=1).view(np.uint8)
    if nulls is not None:
        lengths = np.where(nulls, 0, lengths)
    data = table[np.arange(16) < lengths[:, None]]
    return _strings(data, lengths, nulls)


def with_nulls(strings: pa.BinaryArray, nulls: Mask) -> pa.BinaryArray:
    """Return the same byte strings, NULL where ``nulls`` is True."""
    _, offsets, data = strings.buffers()
    offset = pa.py_buffer(np.frombuffer(offsets, np.int32, len(strings) + 1, 4 * strings.offset))
    return pa.Array.from_buffers(pa.binary(), len(strings), [_validity(nulls), offset, data])


def join_bytes(parts: Sequence[pa.Array]) -> pa.BinaryArray:
    """Return the concatenated strings of each row; NULL is empty."""
    if len(parts) == 1:
        return parts[0]
    return pc.binary_join_element_wise(*parts, pa.scalar(b""), null_handling="replace", null_replacement="")


def _strings(data: npt.NDArray[np.uint8], lengths: Longs, nulls: Mask | None) -> pa.BinaryArray:
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    buffers = [_validity(nulls), pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(lengths), buffers)


def _validity(nulls: Mask | None) -> pa.Buffer | None:
    return None if nulls is None else pa.py_buffer(np.packbits(~nulls, bitorder="little"))


def check_rows(bad: Mask, problem: str) -> None:
    """Raise CorruptTableError for the first bad row."""
    if bad.any():
        raise CorruptTableError(f"row number {int(np.argmax(bad))} {problem}")
