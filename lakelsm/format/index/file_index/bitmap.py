"""Bitmap indexes: the rows that have each value of a column (Paimon's ``BitmapFileIndex``; docs/format.md 7.6)."""

from __future__ import annotations

import struct
from bisect import bisect_right
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from lakelsm.errors import CorruptTableError, UnsupportedFeatureError
from lakelsm.format.index.file_index.bitmap_values import BitmapValues
from lakelsm.types import DataType

#: Versions of the layout. Persisted: do not change
FLAT, BLOCKS = 1, 2
#: Bytes of a dictionary block in the second layout.
BLOCK_BYTES = 16 << 10

_HEAD = struct.Struct(">bii?")
_INT, _TWO = struct.Struct(">i"), struct.Struct(">ii")


class BitmapBuilder:
    """Builds the index of a file from the values of its rows, in their order.

    Keeps each distinct value and up to four bytes a row in memory.
    """

    def __init__(self, data_type: DataType, version: int = BLOCKS, block_bytes: int = BLOCK_BYTES) -> None:
        self._values = BitmapValues.of(data_type)
        self._version = version
        self._block_bytes = block_bytes
        self._domains: list[pa.Array] = []
        self._codes: list[npt.NDArray[Any]] = []

    def add(self, values: pa.Array) -> None:
        """Add the values of the next rows."""
        encoded = self._values.domain(values).dictionary_encode()
        codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
        self._domains.append(encoded.dictionary)
        self._codes.append(codes.astype(np.min_scalar_type(-1 - len(encoded.dictionary))))

    def encode(self) -> bytes:
        """Return the bytes of the index."""
        domain, codes = self._unified()
        nulls = BitMap(np.flatnonzero(codes < 0).astype(np.uint32))
        null_bytes = _serialized(nulls)
        bodies = [null_bytes] if len(nulls) > 1 else []
        offsets, lengths, found = self._bitmaps(codes, len(domain), len(null_bytes) if bodies else 0)
        head = [_HEAD.pack(self._version, len(codes), len(domain), bool(nulls))]
        null_offset = -1 - nulls[0] if len(nulls) == 1 else 0
        if self._version == FLAT:
            if nulls:
                head.append(_INT.pack(null_offset))
            head.append(self._values.entries(domain, offsets)[0])
        else:
            if nulls:
                head.append(_TWO.pack(null_offset, len(null_bytes)))
            head.append(self._blocks(domain, offsets, lengths))
        return b"".join([*head, *bodies, *found])

    def _unified(self) -> tuple[pa.Array, npt.NDArray[np.int32]]:
        """Return the distinct values in order, and the index of each row's value in them (-1: NULL)."""
        if not self._domains:
            raise ValueError("an index needs at least one row")
        encoded = pa.concat_arrays(self._domains).dictionary_encode()
        order = pc.sort_indices(encoded.dictionary).to_numpy()
        ranks = np.empty(len(order) + 1, np.int32)
        ranks[order], ranks[-1] = np.arange(len(order)), -1
        positions = ranks[encoded.indices.to_numpy()]
        codes, start = [], 0
        for domain, own in zip(self._domains, self._codes):
            codes.append(np.append(positions[start : start + len(domain)], np.int32(-1))[own])
            start += len(domain)
        return encoded.dictionary.take(pa.array(order)), np.concatenate(codes)

    @staticmethod
    def _bitmaps(
        codes: npt.NDArray[np.int32], count: int, start: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], list[bytes]]:
        """Return offset and length of each value's bitmap, and the bitmaps of values with several rows, from ``start``.

        A value with one row has no bitmap: its offset encodes the row, and its length is -1.
        """
        rows = np.argsort(codes, kind="stable").astype(np.uint32)[np.count_nonzero(codes < 0) :]
        ends = np.cumsum(np.bincount(codes[codes >= 0], minlength=count))
        begins = np.concatenate([np.zeros(1, np.int64), ends[:-1]]) if count else ends
        several = np.flatnonzero(ends - begins > 1)
        found = [_serialized(BitMap(rows[begin:end])) for begin, end in zip(begins[several], ends[several])]
        offsets = -1 - rows[begins].astype(np.int64) if count else begins
        lengths = np.full(count, -1, np.int64)
        lengths[several] = [len(data) for data in found]
        offsets[several] = start + np.cumsum(lengths[several]) - lengths[several]
        return offsets, lengths, found

    def _blocks(self, domain: pa.Array, offsets: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> bytes:
        """Return the dictionary of the second layout: the first value and offset of each block, then the blocks."""
        data, starts = self._values.entries(domain, offsets, lengths)
        begins, blocks, at = [], [], 0
        while at < len(domain):
            fitting = int(np.searchsorted(starts, starts[at] + self._block_bytes - _INT.size, side="right")) - 1
            end = max(fitting, at + 1)  # A value that is larger than a block has a block to itself.
            begins.append(at)
            blocks.append(_INT.pack(end - at) + data[starts[at] : starts[end]])
            at = end
        sizes = np.array([len(block) for block in blocks], np.int64)
        firsts, _ = self._values.entries(domain.take(pa.array(begins, pa.int64())), np.cumsum(sizes) - sizes)
        return b"".join([_INT.pack(len(blocks)), firsts, _INT.pack(int(sizes.sum())), *blocks])


class Bitmaps:
    """The bitmap index of one column of a file. Decodes only the needed parts."""

    def __init__(self, body: bytes, data_type: DataType, source: str) -> None:
        """Read the head. ``source`` begins errors. Raises CorruptTableError if the bytes are not a bitmap index."""
        self._body = body
        self._values = BitmapValues.of(data_type)
        self._source = source
        try:
            version, self.row_count, count, has_null = _HEAD.unpack_from(body)
            if version not in (FLAT, BLOCKS):
                raise UnsupportedFeatureError(f"{source} has bitmap version {version}; lakelsm reads only 1 and 2.")
            if self.row_count < 0 or count < 0:
                raise struct.error(f"it claims {count} values in {self.row_count} rows")
            at = _HEAD.size
            self._null: tuple[int, int] | None = None
            if has_null:
                offset, length = _TWO.unpack_from(body, at) if version == BLOCKS else (*_INT.unpack_from(body, at), -1)
                self._null = offset, length
                at += _TWO.size if version == BLOCKS else _INT.size
            self._blocks: list[list[int]] | None = None
            if version == FLAT:
                self._keys, found, self._start = self._values.read_entries(body, at, count, 1)
                self._entries = dict(zip(self._keys, _with_lengths([offset for (offset,) in found])))
            else:
                (blocks,) = _INT.unpack_from(body, at)
                self._keys, self._blocks, at = self._values.read_entries(body, at + _INT.size, blocks, 1)
                (size,) = _INT.unpack_from(body, at)
                self._first_block = at + _INT.size
                self._start = self._first_block + size
                self._entries = {}
        except (struct.error, ValueError) as error:
            raise self._damaged(error) from error

    def nulls(self) -> BitMap:
        """Return the rows that are NULL."""
        return BitMap() if self._null is None else self._rows(*self._null)

    def rows_of(self, values: pa.Array) -> BitMap:
        """Return the rows that have one of the values."""
        found = BitMap()
        for value in self._values.domain(values).to_pylist():
            entry = self._entry(value)
            if entry is not None:
                found |= self._rows(*entry)
        return found

    def _entry(self, value: Any) -> tuple[int, int] | None:
        if self._blocks is None:
            return self._entries.get(value)
        block = bisect_right(self._keys, value) - 1
        if block < 0:
            return None
        try:
            start = self._first_block + self._blocks[block][0]
            if start < self._first_block:
                raise struct.error("a block is before the first one")
            (count,) = _INT.unpack_from(self._body, start)
            if count < 0:
                raise struct.error(f"a block claims {count} values")
            keys, entries, _ = self._values.read_entries(self._body, start + _INT.size, count, 2)
        except (struct.error, ValueError) as error:
            raise self._damaged(error) from error
        for key, (offset, length) in zip(keys, entries):
            if key == value:
                return offset, length
        return None

    def _rows(self, offset: int, length: int) -> BitMap:
        """Return the rows of an entry: one row that its offset encodes, or a bitmap."""
        try:
            if offset < 0:
                rows = BitMap([-1 - offset])
            else:
                start = self._start + offset
                end = len(self._body) if length < 0 else start + length
                if end > len(self._body):
                    raise ValueError(f"a bitmap ends after the {len(self._body)} bytes of the index")
                rows = BitMap.deserialize(self._body[start:end])
        except (ValueError, IndexError) as error:
            raise self._damaged(error) from error
        if rows and rows.max() >= self.row_count:
            raise self._damaged(ValueError(f"a bitmap has row {rows.max()}, but the file has only {self.row_count} rows"))
        return rows

    def _damaged(self, error: Exception) -> CorruptTableError:
        return CorruptTableError(f"{self._source} has a bitmap index that cannot be decoded: {error}.")


def _with_lengths(offsets: list[int]) -> list[tuple[int, int]]:
    """Return offsets with the lengths that the first layout lacks: up to the next bitmap (-1: to the end)."""
    laid = sorted({offset for offset in offsets if offset >= 0})
    following = dict(pairwise(laid))
    return [(offset, following[offset] - offset if offset in following else -1) for offset in offsets]


def _serialized(rows: BitMap) -> bytes:
    rows.run_optimize()
    data: bytes = rows.serialize()
    return data
