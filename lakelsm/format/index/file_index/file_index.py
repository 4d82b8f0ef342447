"""The indexes of one data file (docs/format.md 7.4)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from lakelsm.errors import CorruptTableError
from lakelsm.format.index.file_index.bitmap import Bitmaps
from lakelsm.format.index.file_index.bloom_filter import BloomFilter
from lakelsm.format.index.file_index.fast_hash import Hashes, fast_hashes
from lakelsm.format.index.file_index.file_index_container import FileIndexContainer
from lakelsm.options.file_index_options import BITMAP, BLOOM_FILTER
from lakelsm.types import DataField

#: Row indexes within a file. None means that any row may match.
Rows: TypeAlias = BitMap | None
#: Keys that are looked up together. Most files contain one of the first.
_KEYS_AT_ONCE = 1024
#: Distinct values whose rows are compared with a bitmap.
_CHECKED_VALUES = 16


class FileIndex:
    """The indexes of one data file with ``row_count`` rows. Indexes of unknown types are ignored.

    Columns have the names and types with which the file was written. Values have the types in which lakelsm keeps
    them. Each method raises CorruptTableError, beginning with ``source``, if an index cannot be decoded.
    """

    def __init__(self, data: bytes, row_count: int, source: str) -> None:
        self._bodies = FileIndexContainer.decode(data, source).bodies
        self._row_count = row_count
        self._source = source

    @property
    def columns(self) -> Collection[str]:
        """The columns that have an index."""
        return self._bodies.keys()

    def rows_with(self, column: DataField, values: pa.Array, hashes: Hashes | None) -> Rows:
        """Return the rows that may have one of the values; ``hashes`` are the values' (None: the type has no hash)."""
        blooms = self._bloom_filter(column.name)
        if blooms is not None and hashes is not None and not blooms.may_hold(hashes).any():
            return BitMap()
        bitmaps = self._bitmaps(column)
        return None if bitmaps is None else bitmaps.rows_of(values)

    def rows_without(self, column: DataField, values: pa.Array) -> Rows:
        """Return the rows that have another value. Rows with NULL are left out."""
        bitmaps = self._bitmaps(column)
        return None if bitmaps is None else self._all_rows() - bitmaps.rows_of(values) - bitmaps.nulls()

    def null_rows(self, column: DataField, null: bool) -> Rows:
        """Return the rows that are NULL, or that are not NULL."""
        bitmaps = self._bitmaps(column)
        if bitmaps is None:
            return None
        return bitmaps.nulls() if null else self._all_rows() - bitmaps.nulls()

    def may_hold_keys(self, keys: Mapping[str, pa.Array]) -> bool:
        """Return False if the bloom filters exclude all keys (one in each row of the columns, without NULL)."""
        filters = {name: self._bloom_filter(name) for name in keys}
        known = {name: found for name, found in filters.items() if found is not None}
        count = len(next(iter(keys.values())))
        for start in range(0, count, _KEYS_AT_ONCE):
            held: npt.NDArray[np.bool_] = np.ones(min(_KEYS_AT_ONCE, count - start), np.bool_)
            for name, bloom in known.items():
                held[held] = bloom.may_hold(fast_hashes(keys[name].slice(start, _KEYS_AT_ONCE))[held])
            if held.any():
                return True
        return False

    def contradicts(self, column: DataField, values: pa.Array, start: int) -> bool:
        """Return whether an index wrongly excludes one of the ``values`` that the file has from row ``start``.

        Bitmaps are checked for the NULLs and for some of the values.
        """
        known = values.drop_null()
        blooms = self._bloom_filter(column.name)
        if blooms is not None and not blooms.may_hold(fast_hashes(known)).all():
            return True
        bitmaps = self._bitmaps(column)
        if bitmaps is None:
            return False
        if not _row_bitmap(values.is_null(), start) <= bitmaps.nulls():
            return True
        if pa.types.is_floating(values.type):
            return False  # Arrow treats the two zeros, and all NaNs, as equal; an index does not.
        coded = values.dictionary_encode()
        checked = coded.dictionary[:_CHECKED_VALUES]
        return any(
            not _row_bitmap(pc.equal(coded.indices, code), start) <= bitmaps.rows_of(checked.slice(code, 1))
            for code in range(len(checked))
        )

    def _all_rows(self) -> BitMap:
        return BitMap(range(self._row_count))

    def _bloom_filter(self, column: str) -> BloomFilter | None:
        body = self._bodies.get(column, {}).get(BLOOM_FILTER)
        return None if body is None else BloomFilter.decode(body, self._source)

    def _bitmaps(self, column: DataField) -> Bitmaps | None:
        body = self._bodies.get(column.name, {}).get(BITMAP)
        if body is None:
            return None
        bitmaps = Bitmaps(body, column.type, self._source)
        if bitmaps.row_count != self._row_count:
            raise CorruptTableError(
                f"{self._source} has bitmaps of {bitmaps.row_count} rows, but the manifest entry says {self._row_count}: "
                "they are damaged, or those of another data file."
            )
        return bitmaps


def _row_bitmap(chosen: pa.BooleanArray, start: int) -> BitMap:
    """Return the chosen rows by row index; the first row is ``start``."""
    return BitMap(np.flatnonzero(pc.fill_null(chosen, False).to_numpy(zero_copy_only=False)) + start)
