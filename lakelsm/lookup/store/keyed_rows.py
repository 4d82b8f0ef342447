"""Rows of segments, found by a key with an index of its hashes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.format.row.single_hash import SingleHash
from lakelsm.lookup.cache import FoundRows
from lakelsm.lookup.store.arrow_segment import SegmentRows
from lakelsm.lookup.store.key_index import KeyIndex, hashes_of
from lakelsm.types import DataField, contiguous

Longs = npt.NDArray[np.int64]


class KeyedRows:
    """Rows and the index of one of their keys, whose columns are ``key``. Several threads may search them.

    Each method compares the stamps of the files first. It raises CorruptStoreError for a damaged file.
    """

    def __init__(self, rows: SegmentRows, index: KeyIndex, key: Sequence[DataField]) -> None:
        if index.rows != len(rows):
            raise index.file.damaged(f"it is an index of {index.rows} rows instead of {len(rows)}")
        self.rows = rows
        self.index = index
        self._key = tuple(key)
        self._names = tuple(field.name for field in key)
        self._hash = SingleHash([field.type for field in key])

    def row_indexes(self, keys: pa.Table) -> tuple[Longs, Longs]:
        """Return the rows that have some keys: the indexes of the keys, and the row indexes, both ascending.

        ``keys`` has the key's columns in stored types; keys may be repeated. A key with a NULL has no rows.
        """
        self.index.file.check()
        self.rows.check()
        probes, rows = self.index.candidates(hashes_of(keys, self._key))
        by_batch = self.rows.by_batch(rows)
        is_each = len(probes) == len(keys) and bool((probes == np.arange(len(keys))).all())
        equal = np.ones(len(rows), dtype=bool)
        for name in self._names:
            values = contiguous(keys.column(name))
            equal &= by_batch.have_values(name, values if is_each else values.take(pa.array(probes)))
        return (probes, rows) if equal.all() else (probes[equal], rows[equal])

    def find(self, keys: pa.Table, names: Sequence[str]) -> FoundRows:
        """Find the rows of some keys; return their columns ``names``."""
        probes, rows = self.row_indexes(keys)
        return FoundRows(probes, self.rows.take(rows, names))

    def hash_of(self, key: Sequence[Any]) -> int | None:
        """Return the hash of one key of Python values, as `pa.Array.to_pylist` returns them.

        Return None if keys must be compared as arrays: Python compares floats differently, and has no nanoseconds.
        """
        return self._hash(key) if self._hash.is_plain else None

    def rows_of(self, key: Sequence[Any]) -> list[int] | None:
        """Return the indexes of the rows with one key of Python values, ascending; None if it has no `hash_of`."""
        key_hash = self.hash_of(key)
        return None if key_hash is None else self.rows_of_hash(key, key_hash)

    def rows_of_hash(self, key: Sequence[Any], key_hash: int) -> list[int]:
        """Do the same as `rows_of`, for a key and its `hash_of`, which is equal for all rows with these key columns."""
        self.index.file.check()
        rows = self.index.rows_of(key_hash)
        if not rows:
            return rows
        wanted = tuple(key)
        return [row for row in rows if self.rows.row(row, self._names) == wanted]
