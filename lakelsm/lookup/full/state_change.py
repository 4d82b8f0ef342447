"""The next state of a full cache: rows whose keys changed die, and their new rows are a generation of their own."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from lakelsm.format.row_kinds import is_retract
from lakelsm.format.snapshot import Snapshot
from lakelsm.lookup.cache import Longs
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.full.cache_state import CacheState
from lakelsm.lookup.full.generation import CacheLayout, Generation, index_segments, write_segment
from lakelsm.merge.functions.value_codes import differs
from lakelsm.predicate.evaluation import matching
from lakelsm.predicate.predicate import Predicate
from lakelsm.schema.system_columns import VALUE_KIND

#: Generations that a lookup asks at most. A miss asks each, in 2 us, or 0.3 us where a filter in memory tells it; a
#: refresh merges the youngest ones beyond.
_MOST_GENERATIONS = 5
#: Where there are too many, one is written again with the younger ones if these have more than this share of its rows.
_MERGED_SHARE = 0.5
#: Changed keys beyond these bytes are not told one by one.
_MOST_KEY_BYTES = 64 << 20
_KEYS_AT_ONCE = 1 << 16


class StateChange:
    """Applies changes (`lakelsm.lookup.full.changed_rows`) to a state, which stays as it is.

    ``predicate``: rows that do not match are none of the cache. Memory: a batch of changes, the keys that changed, and
    three bitmaps of the rows of the state.
    """

    def __init__(
        self, state: CacheState, layout: CacheLayout, directory: CacheDirectory, predicate: Predicate | None = None
    ) -> None:
        self.state = state
        self.layout = layout
        self.directory = directory
        self.predicate = predicate
        self._killed, self._kept, self._told = ([BitMap() for _ in state.generations] for _ in range(3))
        self._key_schema = pa.schema([layout.schema.field(field.name) for field in layout.keys[-1]])
        self._keys, self._key_bytes = [self._key_schema.empty_table()], 0

    def applied(self, changes: Iterable[pa.RecordBatch], snapshot: Snapshot, name: str) -> CacheState:
        """The state of a newer snapshot, of this name, with which the names of its new files begin."""
        segment = write_segment(self.directory, f"{name}.rows", self.layout, self._new_rows(changes))
        generations = []
        for at, generation in enumerate(self.state.generations):
            dead = self._killed[at] - self._kept[at]  # Not those that came again as they were.
            if dead:
                self._add_dead(generation, _places(dead - self._told[at]))
                generation = generation.without(self.directory, f"{name}.{at}.dead", _places(dead))
            if generation.live_rows:
                generations.append(generation)
        if segment.rows:
            generations.append(index_segments(self.directory, name, self.layout, [segment]))
        return CacheState(name, snapshot, tuple(self._merged(generations, name)), content=self.state.content)

    @property
    def changed(self) -> pa.Table | None:
        """The keys of rows that died or are new, each once, without NULLs, after `applied`; None: they are too many."""
        if self._key_bytes > _MOST_KEY_BYTES:
            return None
        keys = pa.concat_tables(self._keys).drop_null()
        is_once = len(self.layout.keys) == 1
        return keys if is_once else keys.group_by(self._key_schema.names, use_threads=False).aggregate([])

    def _add_keys(self, rows: pa.Table) -> None:
        if self._key_bytes <= _MOST_KEY_BYTES:
            self._keys.append(rows.select(self._key_schema.names).cast(self._key_schema).combine_chunks())
            self._key_bytes += self._keys[-1].nbytes

    def _add_dead(self, generation: Generation, rows: Longs) -> None:
        for start in range(0, len(rows), _KEYS_AT_ONCE):
            self._add_keys(generation.rows.take(rows[start : start + _KEYS_AT_ONCE], self._key_schema.names))

    def _new_rows(self, changes: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """The rows to write, while those that they replace are noted."""
        for batch in changes:
            rows = pa.Table.from_batches([batch])
            added = ~is_retract(rows.column(VALUE_KIND))
            if self.predicate is not None:
                added &= matching(self.predicate, rows).to_numpy(zero_copy_only=False)
            new = rows.select(self.layout.schema.names)
            changed = self._replaced(new, added)
            if not changed.all():
                new = new.filter(pa.array(changed))
            if len(new):
                self._add_keys(new)
                yield new

    def _replaced(self, rows: pa.Table, added: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Note the rows that die by some changes; tell which of these are new rows, other than the ones that were."""
        changed: npt.NDArray[np.bool_] = added.copy()
        left, missing = np.arange(len(rows)), np.ones(len(rows), dtype=bool)
        for at, generation in enumerate(self.state.generations):
            probes, found = generation.places(0, rows if not at else rows.take(pa.array(left)))
            if not len(found):
                continue
            probes = left[probes]
            missing[probes] = False  # A key has one row in all generations.
            left = np.flatnonzero(missing)
            same = added[probes]
            same[same] = self._are_same(generation, found[same], rows, probes[same])
            changed[probes[same]] = False
            self._kept[at].update(_numbers(found[same]))
            self._killed[at].update(_numbers(found[~same]))
            if len(self.layout.keys) == 1:  # The key is the new row's, which is told.
                self._told[at].update(_numbers(found[added[probes] & ~same]))
        return changed

    def _are_same(self, generation: Generation, old: Longs, rows: pa.Table, new: Longs) -> npt.NDArray[np.bool_]:
        """Which rows of a generation are as the new ones; values are taken of rows that are the same so far alone."""
        left = np.arange(len(old))
        for name in self._compared:
            if not len(left):
                break
            was, now = generation.rows.take(old[left], [name]), rows.select([name]).take(pa.array(new[left]))
            left = left[~differs(was, now, [name])]
        same: npt.NDArray[np.bool_] = np.zeros(len(old), dtype=bool)
        same[left] = True
        return same

    @cached_property
    def _compared(self) -> list[str]:
        """The columns, those first that are likely to tell and cheap to compare."""
        keys = {field.name for field in self.layout.keys[0]}

        schema = self.layout.schema
        return sorted(schema.names, key=lambda name: (name in keys, not pa.types.is_primitive(schema.field(name).type)))

    def _merged(self, generations: Sequence[Generation], name: str) -> list[Generation]:
        """The same rows in few generations, none of which is half dead."""
        merged: list[Generation] = []
        for place, run in enumerate(_runs_to_merge(generations)):
            if len(run) == 1 and run[0].files.dead_rows <= run[0].files.rows // 2:
                merged += run
                continue
            own = f"{name}.{place}.merged"
            live = (rows for generation in run for rows in generation.live())
            segment = write_segment(self.directory, f"{own}.rows", self.layout, live)
            merged.append(index_segments(self.directory, own, self.layout, [segment]))
        return merged


def _places(rows: BitMap) -> Longs:
    """The numbers of rows, ascending."""
    return np.frombuffer(rows.to_array(), np.uint32).astype(np.int64)


def _numbers(rows: Longs) -> array[int]:
    """Numbers of rows as bitmaps take them."""
    return array("I", rows.astype(np.uint32).tobytes())


def _runs_to_merge(generations: Sequence[Generation]) -> list[list[Generation]]:
    """Generations, oldest first, as those that stay alone and, where they are too many, those to be written again as one.

    These are the youngest ones, back to the oldest that has less than twice the live rows of all younger ones: so the
    large ones are seldom copied.
    """
    alone = [[generation] for generation in generations]
    if len(generations) <= _MOST_GENERATIONS:
        return alone
    first, younger = len(generations) - 2, generations[-1].live_rows
    for at in range(len(generations) - 2, -1, -1):
        if younger > generations[at].live_rows * _MERGED_SHARE:
            first = at
        younger += generations[at].live_rows
    first = min(first, _MOST_GENERATIONS - 1)
    return [*alone[:first], list(generations[first:])]
