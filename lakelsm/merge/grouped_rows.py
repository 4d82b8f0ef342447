"""The rows of contested keys, grouped by key in merge order, and reductions over the groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.format.row_kinds import is_retract
from lakelsm.merge.key_order import group_starts, order_keys
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.schema.system_columns import SEQUENCE_NUMBER, VALUE_KIND

Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class GroupedRows:
    """Rows in groups: ``rows[i]`` is the row index of position ``i``, ``starts`` has the first position of each group."""

    rows: Indices
    starts: Indices

    @property
    def count(self) -> int:
        """The number of groups. No group is empty."""
        return len(self.starts)

    @cached_property
    def sizes(self) -> Indices:
        """The number of rows of each group."""
        return np.diff(self.starts, append=len(self.rows))

    @property
    def ends(self) -> Indices:
        """The last position of each group."""
        return self.starts + self.sizes - 1

    @cached_property
    def ids(self) -> Indices:
        """The number of the group of each position."""
        return np.repeat(np.arange(self.count), self.sizes)

    @cached_property
    def positions(self) -> Indices:
        """All positions in order: 0, 1, 2, …"""
        return np.arange(len(self.rows))

    def last(self, mask: Mask) -> Indices:
        """Return the last position of each group that ``mask`` selects, -1 for none."""
        result: Indices = np.maximum.reduceat(np.where(mask, self.positions, -1), self.starts)
        return result

    def first(self, mask: Mask) -> Indices:
        """Return the first position of each group that ``mask`` selects, -1 for none."""
        none = len(self.rows)
        result = np.minimum.reduceat(np.where(mask, self.positions, none), self.starts)
        return np.where(result == none, -1, result)

    def any(self, mask: Mask) -> Mask:
        """Return which groups have a position that ``mask`` selects."""
        result: Mask = np.logical_or.reduceat(mask, self.starts)
        return result

    def narrowed(self, mask: Mask) -> tuple[Indices, Indices, Indices]:
        """Return the positions that ``mask`` selects, the index among them of each group's first, and these groups."""
        chosen = np.flatnonzero(mask)
        ids = self.ids[chosen]
        firsts = np.flatnonzero(group_starts(ids))
        return chosen, firsts, ids[firsts]


def by_rank(starts: Indices, sizes: Indices) -> Iterator[tuple[Indices, Indices]]:
    """Yield, for k = 0, 1, 2, …, the groups that have a k-th row and the positions of these rows."""
    order = np.argsort(-sizes, kind="stable")
    sorted_sizes = -sizes[order]
    for rank in range(int(sizes.max(initial=0))):
        active = order[: int(np.searchsorted(sorted_sizes, -rank, side="left"))]
        yield active, starts[active] + rank


def grouped_rows(table: pa.Table, rows: Indices, group: Indices, spec: MergeSpec) -> GroupedRows:
    """Sort the rows of each group by merge order: sequence fields, sequence number, retractions before added rows.

    ``rows`` are row indexes in ``table``, ordered by ``group`` and then by row index, which decides ties.
    """
    part = table.select([*dict.fromkeys((*spec.sequence_columns, SEQUENCE_NUMBER, VALUE_KIND))]).take(pa.array(rows))
    numbers = part.column(SEQUENCE_NUMBER).to_numpy()
    starts = group_starts(group)
    firsts = np.flatnonzero(starts)
    if not spec.sequence_columns and bool(((numbers[1:] > numbers[:-1]) | starts[1:]).all()):
        return GroupedRows(rows, firsts)
    levels: list[npt.NDArray[Any]] = [~is_retract(part.column(VALUE_KIND)), numbers]
    for name in reversed(spec.sequence_columns):
        levels.append(_priority(part.column(name), spec.sequence_descending))
    return GroupedRows(rows[np.lexsort([*levels, group])], firsts)


def ranks(columns: list[pa.ChunkedArray], limit: int = 2**62) -> Indices:
    """Return integers from 0 up that compare as the rows of one or several columns; NULL is the smallest value.

    The integers are dense only if they would otherwise reach ``limit``, which must exceed the number of rows.
    """
    if len(columns) == 1:
        valid = columns[0].is_valid().to_numpy()
        keys = order_keys([columns[0].drop_null()])
        if len(keys) and keys.dtype.kind == "u":
            smallest = keys.min()
            if int(keys.max()) - int(smallest) + 1 < limit:
                result = np.zeros(len(valid), dtype=np.int64)
                result[valid] = (keys - smallest + np.uint64(1)).astype(np.int64)
                return result
    return np.unique(order_keys(columns), return_inverse=True)[1].astype(np.int64).reshape(-1)


def _priority(column: pa.ChunkedArray, descending: bool) -> Indices:
    """Return ranks of the values of one sequence field: a higher rank wins; NULL has the lowest."""
    priority = ranks([column])
    if descending:
        priority = -priority
    valid = column.is_valid().to_numpy()
    return np.where(valid, priority, np.iinfo(np.int64).min)
