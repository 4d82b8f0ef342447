"""The values of a bitmap index: their order and their bytes (docs/format.md 7.6)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.format.index.file_index.fast_hash import as_longs
from lakelsm.types import DataType

Longs = npt.NDArray[np.int64]

#: The numpy type of each value in an index. Texts are stored as a length and UTF-8. Persisted: do not change
_KINDS = {
    "BOOLEAN": ">i1",
    "TINYINT": ">i1",
    "SMALLINT": ">i2",
    "INT": ">i4",
    "BIGINT": ">i8",
    "FLOAT": ">i4",
    "DOUBLE": ">i8",
    "DATE": ">i4",
    "TIME": ">i4",
    "TIMESTAMP": ">i8",
    "TIMESTAMP_LTZ": ">i8",
}
_LENGTH = struct.Struct(">i")


@dataclass(frozen=True)
class BitmapValues:
    """The form of a column type's values in an index: ``kind`` is a number's numpy type, None for texts."""

    kind: str | None
    float_mask: int | None

    @staticmethod
    def of(data_type: DataType) -> BitmapValues:
        """Return the form of values of a type that can have a bitmap index."""
        masks = {"FLOAT": 0x7FFFFFFF, "DOUBLE": 0x7FFFFFFFFFFFFFFF}
        return BitmapValues(_KINDS.get(data_type.root), masks.get(data_type.root))

    def domain(self, values: pa.Array) -> pa.Array:
        """Return values as the index distinguishes and sorts them: 64-bit numbers, or bytes. NULL stays NULL."""
        if self.kind is None:
            return values.cast(pa.binary())
        longs = self._turned(as_longs(values))
        nulls = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
        return pa.array(longs, mask=nulls)

    def entries(self, domain: pa.Array, *numbers: Longs) -> tuple[bytes, Longs]:
        """Return the bytes of each value followed by its ``numbers``, as 32-bit integers, and each offset."""
        count = len(domain)
        tails = np.stack(numbers, axis=1).astype(">i4") if count else np.empty((0, len(numbers)), ">i4")
        if self.kind is not None:
            rows = np.empty(count, np.dtype([("value", self.kind), ("numbers", ">i4", (len(numbers),))]))
            rows["value"], rows["numbers"] = self._turned(domain.to_numpy()), tails
            return rows.tobytes(), np.arange(count + 1, dtype=np.int64) * rows.dtype.itemsize
        lengths = pc.binary_length(domain).to_numpy(zero_copy_only=False).astype(">i4")
        parts = [_as_binary(lengths.reshape(-1, 1)), domain, _as_binary(tails), pa.scalar(b"", pa.binary())]
        joined = pc.binary_join_element_wise(*parts)
        offsets = np.frombuffer(joined.buffers()[1], np.int32, count + 1, joined.offset * 4).astype(np.int64)
        return joined.buffers()[2].to_pybytes()[offsets[0] : offsets[-1]], offsets - offsets[0]

    def read_entries(self, data: bytes, start: int, count: int, numbers: int) -> tuple[list[Any], list[list[int]], int]:
        """Return ``count`` values with ``numbers`` integers each, read from ``start``, and their end.

        Raises struct.error if the data ends before that.
        """
        if self.kind is not None:
            dtype = np.dtype([("value", self.kind), ("numbers", ">i4", (numbers,))])
            end = start + count * dtype.itemsize
            if end > len(data):
                raise struct.error(f"its {count} entries extend beyond its {len(data)} bytes")
            rows = np.frombuffer(data, dtype, count, start)
            return self._turned(rows["value"].astype(np.int64)).tolist(), rows["numbers"].tolist(), end
        tail = struct.Struct(f">{numbers}i")
        values: list[Any] = []
        found: list[list[int]] = []
        for _ in range(count):
            (length,) = _LENGTH.unpack_from(data, start)
            begin, start = start + _LENGTH.size, start + _LENGTH.size + length
            if length < 0:
                raise struct.error(f"a text claims {length} bytes")
            values.append(data[begin:start])
            found.append(list(tail.unpack_from(data, start)))
            start += tail.size
        return values, found, start

    def _turned(self, longs: Longs) -> Longs:
        """Convert the bits of floats to integers of the same order, or back."""
        return longs if self.float_mask is None else np.where(longs < 0, longs ^ self.float_mask, longs)


def _as_binary(numbers: npt.NDArray[Any]) -> pa.Array:
    """Return each row of numbers as one byte string."""
    width = numbers.shape[1] * numbers.dtype.itemsize
    offsets = np.arange(len(numbers) + 1, dtype=np.int32) * np.int32(width)
    return pa.Array.from_buffers(
        pa.binary(), len(numbers), [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(numbers))]
    )
