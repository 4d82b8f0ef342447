"""Events of a column: what each row of a contested key does to the value that a function folds."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.errors import InvalidInputError
from lakelsm.merge.grouped_rows import GroupedRows, Indices, Mask
from lakelsm.merge.key_order import group_starts
from lakelsm.merge.merge_spec import ColumnRule

#: The effect of a row: add the value, add it before the present value (an older row of a sequence group), retract it,
#: or none.
ADD, REVERSED, RETRACT, SKIP = 0, 1, 2, 3
#: Only in `Items`: the accumulator starts with the value.
SEED = 4

Ops = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Events:
    """The events of a column: the row at position ``i`` of ``groups`` has the effect ``ops[i]``.

    The accumulator of group ``g`` starts with the value at position ``seeds[g]``, or with NULL if that is -1. Events
    before a seed count only for functions that remember whether they have seen a row. For these, ``restarts`` also
    selects the earlier seeds, if there can be any.
    """

    groups: GroupedRows
    ops: Ops
    seeds: Indices
    restarts: Mask | None = None

    @cached_property
    def live(self) -> Ops:
        """``ops``, with SKIP before the seed of each group."""
        return np.where(self.groups.positions < self.seeds[self.groups.ids], SKIP, self.ops).astype(np.int8)

    @cached_property
    def seeded(self) -> Mask:
        """A mask of the positions that are seeds."""
        mask = np.zeros(len(self.ops), dtype=bool)
        mask[self.seeds[self.seeds >= 0]] = True
        return mask

    @property
    def added(self) -> Mask:
        """A mask of the positions that add their value, in either direction, or are seeds."""
        mask: Mask = (self.live == ADD) | (self.live == REVERSED) | self.seeded
        return mask

    def without_retractions(self) -> Events:
        """Return the same events without retractions."""
        return replace(self, ops=np.where(self.ops == RETRACT, SKIP, self.ops).astype(np.int8))

    def refuse_retractions(self, rule: ColumnRule) -> None:
        """Raise InvalidInputError if there is a retraction, for a column whose function cannot undo one."""
        if (self.ops == RETRACT).any():
            raise retraction_refused(rule)


@dataclass(frozen=True)
class Items:
    """The steps of a fold, group by group: the row at position ``positions[i]`` has the effect ``ops[i]``, never SKIP.

    For each group that has items, ``firsts`` has the index of the first one, ``sizes`` their number and ``owners`` the
    number of the group.
    """

    positions: Indices
    ops: Ops
    firsts: Indices
    sizes: Indices
    _: KW_ONLY
    owners: Indices

    @staticmethod
    def of(events: Events, counted: Mask | None = None) -> Items:
        """Return the items at positions that ``counted`` selects (None: all). A seed precedes the effect of its row."""
        seeds = events.seeds[events.seeds >= 0]
        acting = np.flatnonzero(events.live != SKIP)
        positions = np.concatenate([seeds, acting])
        ops = np.concatenate([np.full(len(seeds), SEED, np.int8), events.live[acting]])
        order = np.argsort(positions, kind="stable")
        if counted is not None:
            order = order[counted[positions[order]]]
        positions, ops = positions[order], ops[order]
        ids = events.groups.ids[positions]
        firsts = np.flatnonzero(group_starts(ids))
        return Items(positions, ops, firsts, np.diff(firsts, append=len(positions)), owners=ids[firsts])


@dataclass(frozen=True)
class Values:
    """The values of a column at the positions of ``groups``, read when a function needs them."""

    column: pa.ChunkedArray
    groups: GroupedRows

    @cached_property
    def valid(self) -> Mask:
        """A mask of the positions whose value is not NULL."""
        if self.column.null_count == 0:
            return np.ones(len(self.groups.rows), dtype=bool)
        mask: Mask = self.column.is_valid().to_numpy()[self.groups.rows]
        return mask

    def at(self, positions: Indices) -> pa.Array:
        """Return the values at some positions as one array, NULL for position -1."""
        absent = positions < 0
        row_indexes = pa.array(self.groups.rows[positions], mask=absent if absent.any() else None)
        taken = self.column.take(row_indexes).combine_chunks()
        return taken if isinstance(taken, pa.Array) else pa.concat_arrays(taken.chunks)


#: The result of a function: for each group the position of the row that has the value (-1: NULL), or the values.
Result: TypeAlias = Indices | pa.Array


def retraction_refused(rule: ColumnRule) -> InvalidInputError:
    """Return the error for a retraction that the function of the column does not support."""
    return InvalidInputError(
        f"column '{rule.name}': aggregate function '{rule.function}' cannot retract a value (a row of kind -U or -D). "
        f"Set 'fields.{rule.name}.ignore-retract' = 'true' or 'ignore-delete' = 'true', or write no such rows."
    )
