"""Rows of a key on several levels of a table that looks rows up (Paimon's ``LookupMergeFunction``).

In such a table (``changelog-producer`` = ``lookup``, ``force-lookup``) a compaction of level 0 merges the row that lies
below with it, so a row above level 0 holds everything that older levels have of its key: those must not be merged again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakelsm.merge.grouped_rows import Indices, Mask
from lakelsm.merge.key_order import OrderKeys, group_starts

#: Stands for no level where levels are compared: above all of them.
NO_LEVEL = int(np.iinfo(np.int64).max)


@dataclass(frozen=True)
class KeyGroups:
    """The rows of a table by key: ``ids`` has the group of each row, in key order from 0 up to ``count``."""

    ids: Indices
    order: Indices
    starts: Indices

    @staticmethod
    def of(keys: OrderKeys | None, rows: int) -> KeyGroups:
        """The groups of rows with these `order_keys`; None if every row has another key, in order."""
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
        """How many keys there are."""
        return len(self.starts)

    def minimum(self, values: Indices) -> Indices:
        """The least value of each group's rows."""
        if not self.count:
            return np.empty(0, dtype=np.int64)
        found: Indices = np.minimum.reduceat(values[self.order], self.starts)
        return found

    def any(self, mask: Mask) -> Mask:
        """Whether the mask holds for some row of each group."""
        found = np.zeros(self.count, dtype=bool)
        found[self.ids[mask]] = True
        return found

    def row_of(self, mask: Mask) -> Indices:
        """The row of each group where the mask holds (the last of several), -1 for none."""
        places = np.full(self.count, -1, dtype=np.int64)
        chosen = np.flatnonzero(mask)
        places[self.ids[chosen]] = chosen
        return places


def combined_rows(groups: KeyGroups, levels: Indices) -> Mask:
    """Which rows a merge combines: those of level 0 and, of the others of a key, the one of the lowest level."""
    lowest = groups.minimum(np.where(levels > 0, levels, NO_LEVEL))
    mask: Mask = (levels == 0) | (levels == lowest[groups.ids])
    return mask


def merge_candidates(rows: pa.Table, keys: OrderKeys, levels: Indices) -> tuple[pa.Table, OrderKeys]:
    """The rows of `combined_rows` and their keys."""
    mask = combined_rows(KeyGroups.of(keys, len(rows)), levels)
    if mask.all():
        return rows, keys
    return rows.filter(pa.array(mask)), keys[mask]
