"""What happens to one column of each contested key: its rows as events that a function folds into one value."""

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

#: What a row does: aggregate in order, aggregate before the present value (an older row of a sequence group), retract,
#: nothing.
ADD, REVERSED, RETRACT, SKIP = 0, 1, 2, 3
#: In `Items` alone: the accumulator starts with the value.
SEED = 4

Ops = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Events:
    """Events of a column: position ``i`` of ``groups`` does ``ops[i]``.

    The accumulator starts with the value of position ``seeds[g]`` (-1: with NULL); what comes before a seed in ``ops``
    counts only for functions that remember whether they have seen a row. For them ``restarts`` has the earlier seeds
    as well, if there can be any.
    """

    groups: GroupedRows
    ops: Ops
    seeds: Indices
    restarts: Mask | None = None

    @cached_property
    def live(self) -> Ops:
        """``ops``, SKIP before the seed of the group."""
        return np.where(self.groups.positions < self.seeds[self.groups.ids], SKIP, self.ops).astype(np.int8)

    @cached_property
    def seeded(self) -> Mask:
        """The positions that are seeds."""
        mask = np.zeros(len(self.ops), dtype=bool)
        mask[self.seeds[self.seeds >= 0]] = True
        return mask

    @property
    def added(self) -> Mask:
        """Positions that aggregate, in whichever direction, and those that seed."""
        mask: Mask = (self.live == ADD) | (self.live == REVERSED) | self.seeded
        return mask

    def without_retractions(self) -> Events:
        """The same events, retractions ignored."""
        return replace(self, ops=np.where(self.ops == RETRACT, SKIP, self.ops).astype(np.int8))

    def refuse_retractions(self, rule: ColumnRule) -> None:
        """Raises InvalidInputError for a retraction, which the function of the column cannot undo."""
        if (self.ops == RETRACT).any():
            raise retraction_refused(rule)


@dataclass(frozen=True)
class Items:
    """What a fold goes through, group by group: position ``positions[i]`` does ``ops[i]`` (never SKIP).

    ``firsts`` has the first item of each group that has one, ``sizes`` how many it has, ``owners`` which group it is.
    """

    positions: Indices
    ops: Ops
    firsts: Indices
    sizes: Indices
    _: KW_ONLY
    owners: Indices

    @staticmethod
    def of(events: Events, counted: Mask | None = None) -> Items:
        """The items of a column at positions where ``counted`` holds. A seed comes before what its row does."""
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
    """The values of a column at the positions of ``groups``, read where a function needs them."""

    column: pa.ChunkedArray
    groups: GroupedRows

    @cached_property
    def valid(self) -> Mask:
        """Which positions hold a value."""
        if self.column.null_count == 0:
            return np.ones(len(self.groups.rows), dtype=bool)
        mask: Mask = self.column.is_valid().to_numpy()[self.groups.rows]
        return mask

    def at(self, positions: Indices) -> pa.Array:
        """The values of some positions as one array; NULL for position -1."""
        absent = positions < 0
        places = pa.array(self.groups.rows[positions], mask=absent if absent.any() else None)
        taken = self.column.take(places).combine_chunks()
        return taken if isinstance(taken, pa.Array) else pa.concat_arrays(taken.chunks)


#: The result of a function: for each group the position of the row whose value it is (-1: NULL), or the values.
Result: TypeAlias = Indices | pa.Array


def retraction_refused(rule: ColumnRule) -> InvalidInputError:
    """The error of a retraction that the column's function cannot take."""
    return InvalidInputError(
        f"aggregate function '{rule.function}' of column '{rule.name}' cannot retract a value (a row of kind -U or -D); "
        f"set 'fields.{rule.name}.ignore-retract' = 'true' or 'ignore-delete' = 'true', or write no such rows"
    )
