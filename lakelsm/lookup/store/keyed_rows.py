"""Rows of segments found by a key: candidates of an index, told apart by their key columns."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.format.row.single_hash import SingleHash
from lakelsm.lookup.cache import FoundRows, key_row
from lakelsm.lookup.store.arrow_segment import TOO_LARGE, PlacedRows, SegmentRows
from lakelsm.lookup.store.key_entries import hashes_of
from lakelsm.lookup.store.key_index import KeyIndex
from lakelsm.types import DataField, contiguous

Longs = npt.NDArray[np.int64]


class KeyedRows:
    """Rows and the index of one of their keys, whose columns are ``key``. Several threads may ask.

    Each method looks at the files' stamps first, and raises CorruptStoreError for a file that is damaged.
    """

    def __init__(self, rows: SegmentRows, index: KeyIndex, key: Sequence[DataField]) -> None:
        if index.rows != len(rows):
            raise index.file.damaged(f"it is an index of {index.rows} rows instead of {len(rows)}")
        self.rows = rows
        self.index = index
        self._key = tuple(key)
        self._names = tuple(field.name for field in key)
        self._hash = SingleHash([field.type for field in key])

    def find(self, keys: pa.Table, names: Sequence[str]) -> FoundRows:
        """The columns ``names`` of the rows that have some keys; see `places`."""
        return self._found(keys).taken(self.rows, names)

    def places(self, keys: pa.Table) -> tuple[Longs, Longs]:
        """Which rows have some keys: the places of the keys, ascending, and the numbers of the rows, ascending of each.

        ``keys`` has the key's columns, by name, in stored types; they may be repeated. A key with a NULL has no rows.
        """
        found = self._found(keys)
        return found.probes, found.rows

    def hash_of(self, key: Sequence[Any]) -> int | None:
        """The hash of one key of Python values, for `rows_of` of others by the same columns; None: it takes arrays."""
        return self._hash(key) if self._hash.is_plain else None

    def rows_of(self, key: Sequence[Any], key_hash: int | None = None) -> list[int]:
        """The numbers of the rows, ascending, that have one key of Python values, as `pa.Array.to_pylist` has them.

        ``key_hash`` is its `hash_of` (None: worked out here).
        """
        if not self._hash.is_plain:
            return [int(row) for row in self.places(key_row(key, self._key))[1]]
        self.index.file.check()
        rows = self.index.rows_of(self._hash(key) if key_hash is None else key_hash)
        if not rows:
            return rows
        wanted = tuple(key)
        return [row for row in rows if self.rows.row(row, self._names) == wanted]

    def _found(self, keys: pa.Table) -> SameKeys:
        self.index.file.check()
        self.rows.check()
        probes, rows = self.index.candidates(hashes_of(keys, self._key))
        return SameKeys.among(self.rows, keys.select(self._names), probes, rows)


class SameKeys(NamedTuple):
    """The places of keys and the numbers of the rows that have them; ``placed`` where no candidate had another key."""

    probes: Longs
    rows: Longs
    placed: PlacedRows | None

    @staticmethod
    def among(rows: SegmentRows, keys: pa.Table, probes: Longs, candidates: Longs) -> SameKeys:
        """Those of the rows ``candidates`` that have the keys at ``probes``. The caller looks at the files' stamps."""
        placed = rows.placed(candidates)
        is_each = len(probes) == len(keys) and bool((probes == np.arange(len(keys))).all())
        equal = np.ones(len(candidates), dtype=bool)
        for name in keys.column_names:
            values = contiguous(keys.column(name))
            equal &= placed.have(name, values if is_each else values.take(pa.array(probes)))
        if equal.all():
            return SameKeys(probes, candidates, placed)
        return SameKeys(probes[equal], candidates[equal], None)

    def taken(self, rows: SegmentRows, names: Sequence[str]) -> FoundRows:
        """The columns ``names`` of the rows."""
        if self.placed is not None:
            with suppress(*TOO_LARGE):  # As one table; `SegmentRows.take` makes several of it.
                return FoundRows(self.probes, self.placed.take(names))
        return FoundRows(self.probes, rows.take(self.rows, names))
