"""Rows of a key on several levels of a table that looks rows up (Paimon's ``LookupMergeFunction``).

In such a table (``changelog-producer`` = ``lookup``, ``force-lookup``) a compaction of level 0 also merges the row of
the key below. A row above level 0 therefore includes the rows of its key on higher levels, which must not be merged
again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakelsm.merge.grouped_rows import Indices, Mask
from lakelsm.merge.key_order import OrderKeys, group_starts

#: The level of a key without a row: greater than all levels.
NO_LEVEL = int(np.iinfo(np.int64).max)


@dataclass(frozen=True)
class KeyGroups:
    """The rows of a table grouped by key: ``ids`` has the group of each row; groups are numbered from 0 in key order."""

    ids: Indices
    order: Indices
    starts: Indices

    @staticmethod
    def of(keys: OrderKeys | None, rows: int) -> KeyGroups:
        """Return the groups of ``rows`` rows with these `order_keys`; None means that the keys ascend and are unique."""
        if keys is None:
            every = np.arange(rows)
            return KeyGroups(every, every, every)
        order = np.argsort(keys, kind="stable").astype(np.int64, copy=False)
        starts = group_starts(keys[order])
        ids = np.empty(rows, dtype=np.int64)
        ids[order] = np.cumsum(starts) - 1
        return KeyGroups(ids, order, np.flatnonzero(starts))

    @property
    def count(self) -> int:
        """The number of keys."""
        return len(self.starts)

    def minimum(self, values: Indices) -> Indices:
        """Return the smallest value of each group's rows."""
        if not self.count:
            return np.empty(0, dtype=np.int64)
        result: Indices = np.minimum.reduceat(values[self.order], self.starts)
        return result

    def any(self, mask: Mask) -> Mask:
        """Return which groups have a row that the mask selects."""
        result = np.zeros(self.count, dtype=bool)
        result[self.ids[mask]] = True
        return result

    def row_of(self, mask: Mask) -> Indices:
        """Return the row index that the mask selects in each group (the last of several), -1 for none."""
        row_indexes = np.full(self.count, -1, dtype=np.int64)
        chosen = np.flatnonzero(mask)
        row_indexes[self.ids[chosen]] = chosen
        return row_indexes


def combined_rows(groups: KeyGroups, levels: Indices) -> Mask:
    """Return which rows a merge combines: of each key those of level 0, and the one of the lowest level above 0."""
    lowest = groups.minimum(np.where(levels > 0, levels, NO_LEVEL))
    mask: Mask = (levels == 0) | (levels == lowest[groups.ids])
    return mask


def merge_candidates(rows: pa.Table, keys: OrderKeys, levels: Indices) -> tuple[pa.Table, OrderKeys]:
    """Return the rows that `combined_rows` selects, and their keys."""
    mask = combined_rows(KeyGroups.of(keys, len(rows)), levels)
    if mask.all():
        return rows, keys
    return rows.filter(pa.array(mask)), keys[mask]
