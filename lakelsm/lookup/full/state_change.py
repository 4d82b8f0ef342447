"""The changes between two snapshots (`changed_rows`), and their application to a full cache (`StateChange`).

Rows whose keys changed become dead. Their new rows form a new generation.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from lakelsm.format.data_file.key_value_file import conform
from lakelsm.format.data_file.vector_location import VectorLocation, positions_within, read_vectors
from lakelsm.format.row_kinds import DELETE, INSERT, is_retract
from lakelsm.format.snapshot import Snapshot
from lakelsm.lookup.cache import Longs
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.full.cache_state import CacheState
from lakelsm.lookup.full.generation import CacheLayout, Generation, index_segments, write_segment
from lakelsm.merge.functions.value_codes import differs
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.merge.merge_unit import MergeUnit, RunFile
from lakelsm.merge.run_reader import RunReader
from lakelsm.plan.changelog_plan import DifferenceUnit, plan_difference
from lakelsm.plan.newest_rows import plan_newest_rows
from lakelsm.plan.shown_rows_change import ShownFile, plan_shown_rows, shows_rows_of_files
from lakelsm.predicate.evaluation import matching
from lakelsm.predicate.predicate import Predicate
from lakelsm.read.changelog_tasks import Differences, MergedChanges
from lakelsm.read.stored_rows import TASK_MEMORY
from lakelsm.runner.local_runner import LocalRunner
from lakelsm.schema.system_columns import VALUE_KIND
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import DataField, to_arrow

#: Maximum of cache generations. A miss takes 2 us in each, or 0.3 us with a filter in memory; a refresh merges the
#: youngest generations if there are more.
_MAX_GENERATIONS = 5
#: If there are too many generations, one is merged with the younger ones if these have more than this share of its rows.
_MERGED_SHARE = 0.5
#: If the changed keys have more bytes than this, they are not reported one by one.
_MAX_KEY_BYTES = 64 << 20
_KEYS_AT_ONCE = 1 << 16
#: The divisor of a task's memory that gives the size of a scan's batches.
_SCAN_SHARE = 16

_Unit: TypeAlias = MergeUnit | DifferenceUnit | ShownFile


def changes_schema(fields: Sequence[DataField]) -> pa.Schema:
    """Return the columns of changes: the row kind, then those of the table. A retraction may have only the key."""
    columns = [(field.name, to_arrow(field.type)) for field in fields]
    return pa.schema([pa.field(VALUE_KIND, pa.int8(), False), *(pa.field(*column) for column in columns)])


def changed_rows(
    store: TableStore, before: Snapshot, after: Snapshot, names: Sequence[str], only: Collection[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the changes from an existing snapshot to an existing newer one, as rows of `changes_schema`.

    ``names`` are the wanted columns, with the primary key; ``only`` are the buckets to compare (None: all). An added row
    is the present row of its key. A retraction has at least the primary key, and means that the earlier row of the key
    is deleted. A key has at most one added row. Unchanged rows may be included.
    """
    if shows_rows_of_files(store.options):
        units: Sequence[_Unit] = plan_shown_rows(store, before, after, only)
    else:
        newest = plan_newest_rows(store, before, after, only)
        units = plan_difference(store, before, after, None, only).compared if newest is None else newest
    if not units:
        return
    spec = MergeSpec.of(store.schema, store.options).of_columns(names)
    reader = RunReader(
        store.file_io,
        store.schema,
        schemas=store.schemas_of({file.schema_id for unit in units for file in _files(unit)}),
        columns=tuple(dict.fromkeys((*names, *spec.read_columns))),
        memory_bytes=TASK_MEMORY,
    )
    task = ChangedRowsTask(reader, spec, changes_schema([store.schema.field(name) for name in names]))
    yield from LocalRunner().batches(units, task, task.schema, store.paths)


def _files(unit: _Unit) -> Sequence[RunFile]:
    if isinstance(unit, ShownFile):
        return (unit.file,)
    return unit.files if isinstance(unit, MergeUnit) else unit.unit.files


@dataclass(frozen=True)
class ChangedRowsTask:
    """Yields the changes of one unit, with the columns of ``schema``."""

    reader: RunReader
    spec: MergeSpec
    schema: pa.Schema

    @property
    def memory_bytes(self) -> int:
        """The maximum memory of the task for one unit, in bytes."""
        return self.reader.memory_bytes

    def __call__(self, unit: _Unit) -> Iterator[pa.RecordBatch]:
        """Yield the changes of a unit."""
        if isinstance(unit, MergeUnit):
            yield from MergedChanges(self.reader, self.spec, self.schema)([unit])
        elif isinstance(unit, DifferenceUnit):
            yield from Differences(self.reader, self.spec, self.schema)([unit])
        elif not unit.in_after:
            yield from self._rows(unit.file, self._masked_rows(unit.file, unit.vector_before), DELETE)
        elif not unit.in_before:
            yield from self._rows(unit.file, self._masked_rows(unit.file, unit.file.vector), INSERT)
        else:
            before, now = (self._masked_rows(unit.file, vector) for vector in (unit.vector_before, unit.file.vector))
            every = BitMap(range(unit.file.row_count))
            yield from self._rows(unit.file, every - (now - before), DELETE)
            yield from self._rows(unit.file, every - (before - now), INSERT)

    def _masked_rows(self, file: RunFile, vector: VectorLocation | None) -> BitMap:
        if vector is None:
            return BitMap()
        (masked,) = read_vectors(self.reader.file_io.filesystem(), [(vector, file.row_count)])
        return masked

    def _rows(self, file: RunFile, masked: BitMap, kind: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file that are not masked, all of one kind; of deleted rows only the keys."""
        if len(masked) == file.row_count:
            return
        names = self.schema.names[1:] if kind == INSERT else self.reader.schema.primary_keys
        reader = replace(self.reader, columns=tuple(names))
        for start, rows in reader.open_file(file, system=False).batches(lambda: self.memory_bytes // _SCAN_SHARE):
            found = positions_within(masked, start, start + len(rows))
            if len(found) == len(rows):
                continue
            if len(found):
                is_shown = np.ones(len(rows), dtype=bool)
                is_shown[found - start] = False
                rows = rows.filter(pa.array(is_shown))
            columns = {VALUE_KIND: pa.array(np.full(len(rows), kind, dtype=np.int8))}
            for field in self.schema.remove(0):
                has = field.name in rows.column_names
                columns[field.name] = rows.column(field.name) if has else pa.nulls(len(rows), field.type)
            yield from conform(pa.table(columns), self.schema).combine_chunks().to_batches()


class StateChange:
    """Applies changes (`changed_rows`) to a state, and makes a new state.

    ``predicate``: the cache has only rows that match. Memory: a batch of changes, the changed keys, and three bitmaps of
    the rows of the state.
    """

    def __init__(
        self, state: CacheState, layout: CacheLayout, directory: CacheDirectory, predicate: Predicate | None = None
    ) -> None:
        self.state = state
        self.layout = layout
        self.directory = directory
        self.predicate = predicate
        self._deleted, self._unchanged, self._reported = ([BitMap() for _ in state.generations] for _ in range(3))
        self._key_schema = pa.schema([layout.schema.field(field.name) for field in layout.keys[-1]])
        self._keys, self._key_bytes = [self._key_schema.empty_table()], 0

    def applied(self, changes: Iterable[pa.RecordBatch], snapshot: Snapshot, name: str) -> CacheState:
        """Return the state of a newer snapshot. ``name`` is its name, and the prefix of its new files' names."""
        segment = write_segment(self.directory, f"{name}.rows", self.layout, self._new_rows(changes))
        generations = []
        for at, generation in enumerate(self.state.generations):
            dead = self._deleted[at] - self._unchanged[at]  # Deleted and added again unchanged: not dead.
            if dead:
                self._add_dead(generation, _row_indexes(dead - self._reported[at]))
                generation = generation.without(self.directory, f"{name}.{at}.dead", _row_indexes(dead))
            if generation.live_rows:
                generations.append(generation)
        if segment.rows:
            generations.append(index_segments(self.directory, name, self.layout, [segment]))
        return CacheState(name, snapshot, tuple(self._merged(generations, name)), content=self.state.content)

    @property
    def changed(self) -> pa.Table | None:
        """The keys of deleted and new rows, each once, without NULLs, after `applied`; None if there are too many."""
        if self._key_bytes > _MAX_KEY_BYTES:
            return None
        keys = pa.concat_tables(self._keys).drop_null()
        is_once = len(self.layout.keys) == 1
        return keys if is_once else keys.group_by(self._key_schema.names, use_threads=False).aggregate([])

    def _add_keys(self, rows: pa.Table) -> None:
        if self._key_bytes <= _MAX_KEY_BYTES:
            self._keys.append(rows.select(self._key_schema.names).cast(self._key_schema).combine_chunks())
            self._key_bytes += self._keys[-1].nbytes

    def _add_dead(self, generation: Generation, rows: Longs) -> None:
        for start in range(0, len(rows), _KEYS_AT_ONCE):
            self._add_keys(generation.rows.take(rows[start : start + _KEYS_AT_ONCE], self._key_schema.names))

    def _new_rows(self, changes: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Yield the rows to write, and note the rows that they replace."""
        for batch in changes:
            rows = pa.Table.from_batches([batch])
            added = ~is_retract(rows.column(VALUE_KIND))
            if self.predicate is not None:
                added &= matching(self.predicate, rows).to_numpy(zero_copy_only=False)
            new = rows.select(self.layout.schema.names)
            changed = self._note_replaced(new, added)
            if not changed.all():
                new = new.filter(pa.array(changed))
            if len(new):
                self._add_keys(new)
                yield new

    def _note_replaced(self, rows: pa.Table, added: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Note the rows that changes delete; return which changes are rows unlike the earlier row of their key."""
        changed: npt.NDArray[np.bool_] = added.copy()
        left, missing = np.arange(len(rows)), np.ones(len(rows), dtype=bool)
        for at, generation in enumerate(self.state.generations):
            probes, found = generation.row_indexes(0, rows if not at else rows.take(pa.array(left)))
            if not len(found):
                continue
            probes = left[probes]
            missing[probes] = False  # All generations together have one row of a key.
            left = np.flatnonzero(missing)
            same = added[probes]
            same[same] = self._are_equal(generation, found[same], rows, probes[same])
            changed[probes[same]] = False
            self._unchanged[at].update(_bitmap_values(found[same]))
            self._deleted[at].update(_bitmap_values(found[~same]))
            if len(self.layout.keys) == 1:  # The key of the new row is the same, and is reported.
                self._reported[at].update(_bitmap_values(found[added[probes] & ~same]))
        return changed

    def _are_equal(self, generation: Generation, old: Longs, rows: pa.Table, new: Longs) -> npt.NDArray[np.bool_]:
        """Return which rows of a generation equal the new rows; each column is read only for rows still equal so far."""
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
        """The columns; those that are likely to differ and cheap to compare come first."""
        keys = {field.name for field in self.layout.keys[0]}

        schema = self.layout.schema
        return sorted(schema.names, key=lambda name: (name in keys, not pa.types.is_primitive(schema.field(name).type)))

    def _merged(self, generations: Sequence[Generation], name: str) -> list[Generation]:
        """Return the same rows in a bounded number of generations, each with at least half of its rows live."""
        merged: list[Generation] = []
        for number, run in enumerate(_runs_to_merge(generations)):
            if len(run) == 1 and run[0].files.dead_rows <= run[0].files.rows // 2:
                merged += run
                continue
            own = f"{name}.{number}.merged"
            live = (rows for generation in run for rows in generation.live())
            segment = write_segment(self.directory, f"{own}.rows", self.layout, live)
            merged.append(index_segments(self.directory, own, self.layout, [segment]))
        return merged


def _row_indexes(rows: BitMap) -> Longs:
    """Return the row indexes of a bitmap, ascending."""
    return np.frombuffer(rows.to_array(), np.uint32).astype(np.int64)


def _bitmap_values(rows: Longs) -> array[int]:
    """Return row indexes in the form that bitmaps take."""
    return array("I", rows.astype(np.uint32).tobytes())


def _runs_to_merge(generations: Sequence[Generation]) -> list[list[Generation]]:
    """Group generations, oldest first: those that stay as they are, and, if there are too many, those to merge into one.

    The merged ones are the youngest, back to the oldest that has less than twice the live rows of all younger ones: so
    large generations are seldom copied.
    """
    alone = [[generation] for generation in generations]
    if len(generations) <= _MAX_GENERATIONS:
        return alone
    first, younger = len(generations) - 2, generations[-1].live_rows
    for at in range(len(generations) - 2, -1, -1):
        if younger > generations[at].live_rows * _MERGED_SHARE:
            first = at
        younger += generations[at].live_rows
    first = min(first, _MAX_GENERATIONS - 1)
    return [*alone[:first], list(generations[first:])]
