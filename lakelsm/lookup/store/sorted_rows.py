"""Rows in the order of their key, which is a number each (`key_numbers`): the rows themselves are searched."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.format.row.binary_row_slots import primitive_values
from lakelsm.lookup.cache import FoundRows
from lakelsm.lookup.store.arrow_segment import TOO_LARGE, PlacedRows, SegmentRows
from lakelsm.lookup.store.key_numbers import KeyNumbers

Longs = npt.NDArray[np.int64]


class NumberedBatches:
    """Watches record batches as they are written: whether the numbers of their keys ascend, and each one's first."""

    def __init__(self, column: str) -> None:
        self._column = column
        self._last: int | None = None
        self.ascend = True
        self.firsts: list[int] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Look at the next record batch, which has rows."""
        column = batch.column(self._column)
        if not self.ascend or column.null_count:
            self.ascend = False
            return
        numbers = primitive_values(column)
        first = int(numbers[0])
        self.ascend = (self._last is None or self._last < first) and bool((numbers[1:] > numbers[:-1]).all())
        self._last = int(numbers[-1])
        self.firsts.append(first)


class SortedRows:
    """Rows of one segment whose keys' numbers ascend. Several threads may ask.

    ``firsts`` are the numbers of the first key of each record batch. Each method looks at the file's stamp first, and
    raises CorruptStoreError for a file that is damaged.
    """

    def __init__(self, rows: SegmentRows, numbers: KeyNumbers, firsts: Sequence[int]) -> None:
        (self._segment,) = rows.segments
        if len(firsts) != len(self._segment.lengths):
            raise self._segment.file.damaged(f"it has the first keys of {len(firsts)} record batches")
        self.rows = rows
        self._numbers = numbers
        self._firsts = list(firsts)
        self._first_rows = [0, *np.cumsum(np.array(self._segment.lengths, dtype=np.int64)).tolist()]
        self._views: list[memoryview | None] = [None] * len(self._firsts)

    def find(self, keys: pa.Table, names: Sequence[str]) -> FoundRows:
        """The columns ``names`` of the rows of some keys, which have the key's columns, in stored types and no NULLs."""
        try:
            probes, placed = self._found(keys)
            return FoundRows(probes, placed.take(names))
        except TOO_LARGE:
            if len(keys) < 2:
                raise
            half = len(keys) // 2
            one, other = self.find(keys.slice(0, half), names), self.find(keys.slice(half), names)
            probes = np.concatenate([one.probes, other.probes + half])
            return FoundRows(probes, pa.concat_tables([one.rows, other.rows]))

    def rows_of(self, key: Sequence[Any]) -> list[int]:
        """The number of the row, if any, of one key of Python values, as `pa.Array.to_pylist` has them."""
        self._segment.file.check()
        number = self._numbers.of_key(key)
        at = bisect_right(self._firsts, number) - 1
        if at < 0:
            return []
        chunk = self._segment.chunk(at)
        view = self._views[at]
        if view is None:
            view = self._views[at] = primitive_values(chunk[self._numbers.column]).data
        row = bisect_left(view, number)
        return [self._first_rows[at] + row] if row < len(view) and view[row] == number else []

    def _found(self, keys: pa.Table) -> tuple[Longs, PlacedRows]:
        """The places of the keys that have a row, ascending, and those rows."""
        self._segment.file.check()
        numbers = self._numbers.of_keys(keys)
        order = None
        if not (numbers[1:] >= numbers[:-1]).all():
            order = np.argsort(numbers)
            numbers = numbers[order]  # Probes close to each other touch the same memory.
        starts = [*np.searchsorted(numbers, np.array(self._firsts, dtype=numbers.dtype)).tolist(), len(numbers)]
        chunks, bounds = [], [0]
        found: list[Longs] = [np.empty(0, np.int64)]
        local: list[Longs] = [np.empty(0, np.int64)]
        for at, start in enumerate(starts[:-1]):
            if start == starts[at + 1]:
                continue
            chunk = self._segment.chunk(at)
            stored, wanted = primitive_values(chunk[self._numbers.column]), numbers[start : starts[at + 1]]
            rows = np.searchsorted(stored, wanted)
            hit = np.flatnonzero(stored.take(rows, mode="clip") == wanted)
            chunks.append(chunk)
            found.append(hit + start)
            local.append(rows.take(hit))
            bounds.append(bounds[-1] + len(hit))
        probes, places = np.concatenate(found), None
        if order is not None:
            asked = np.zeros(len(numbers), dtype=bool)
            asked[order.take(probes)] = True
            places = (np.cumsum(asked) - 1).take(order.take(probes))
            probes = np.flatnonzero(asked)
        return probes, PlacedRows(self.rows.schema, chunks, bounds=bounds, local=np.concatenate(local), order=places)
