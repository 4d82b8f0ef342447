"""What changed between two snapshots (`changed_rows`), and the state of a full cache after that (`StateChange`).

Rows whose keys changed die, and their new rows are a generation of their own.
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

#: Maximum of cache generations. A miss searches each, in 2 us, or 0.3 us if a filter in memory decides; a
#: refresh merges the youngest ones beyond.
_MAX_GENERATIONS = 5
#: Where there are too many, one is written again with the younger ones if these have more than this share of its rows.
_MERGED_SHARE = 0.5
#: Changed keys beyond these bytes are not reported individually.
_MAX_KEY_BYTES = 64 << 20
_KEYS_AT_ONCE = 1 << 16
#: The share of a task's memory that a batch of a scan may have.
_SCAN_SHARE = 16

_Unit: TypeAlias = MergeUnit | DifferenceUnit | ShownFile


def changes_schema(fields: Sequence[DataField]) -> pa.Schema:
    """The columns of changes: the kind of the row, then those of the table, all but the key NULL in a retraction."""
    columns = [(field.name, to_arrow(field.type)) for field in fields]
    return pa.schema([pa.field(VALUE_KIND, pa.int8(), False), *(pa.field(*column) for column in columns)])


def changed_rows(
    store: TableStore, before: Snapshot, after: Snapshot, names: Sequence[str], only: Collection[int] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield what changed from one snapshot to a newer one, both of which exist, as rows of `changes_schema`.

    ``names`` are the wanted columns, with the primary key; ``only`` has the buckets looked at (None: all). A row that is
    added is the one that its key has now; a retraction has the primary key at least, and means that the row which the key
    had is deleted. A key has at most one added row. Unchanged rows may be included.
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
    """Yields the changes of one unit, of ``schema``."""

    reader: RunReader
    spec: MergeSpec
    schema: pa.Schema

    @property
    def memory_bytes(self) -> int:
        """What the work on one unit holds at most."""
        return self.reader.memory_bytes

    def __call__(self, unit: _Unit) -> Iterator[pa.RecordBatch]:
        """Yield the changes."""
        if isinstance(unit, MergeUnit):
            yield from MergedChanges(self.reader, self.spec, self.schema)([unit])
        elif isinstance(unit, DifferenceUnit):
            yield from Differences(self.reader, self.spec, self.schema)([unit])
        elif not unit.has:
            yield from self._rows(unit.file, self._masked_rows(unit.file, unit.before), DELETE)
        elif not unit.had:
            yield from self._rows(unit.file, self._masked_rows(unit.file, unit.file.vector), INSERT)
        else:
            before, now = (self._masked_rows(unit.file, vector) for vector in (unit.before, unit.file.vector))
            every = BitMap(range(unit.file.row_count))
            yield from self._rows(unit.file, every - (now - before), DELETE)
            yield from self._rows(unit.file, every - (before - now), INSERT)

    def _masked_rows(self, file: RunFile, vector: VectorLocation | None) -> BitMap:
        if vector is None:
            return BitMap()
        (masked,) = read_vectors(self.reader.file_io.filesystem(), [(vector, file.row_count)])
        return masked

    def _rows(self, file: RunFile, masked: BitMap, kind: int) -> Iterator[pa.RecordBatch]:
        """The rows of a file but the hidden ones, all of one kind; of deleted rows only the keys."""
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
    """Applies changes (`changed_rows`) to a state, which does not change.

    ``predicate``: rows that do not match are not in the cache. Memory: a batch of changes, the keys that changed, and
    three bitmaps of the rows of the state.
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
        """The state of a newer snapshot, of this name, with which the names of its new files begin."""
        segment = write_segment(self.directory, f"{name}.rows", self.layout, self._new_rows(changes))
        generations = []
        for at, generation in enumerate(self.state.generations):
            dead = self._deleted[at] - self._unchanged[at]  # Not those that came again as they were.
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
        """The keys of rows that died or are new, each once, without NULLs, after `applied`; None if too many."""
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
        """The rows to write, while those that they replace are noted."""
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
        """Note the rows that some changes delete; return which of these are new rows different from the earlier ones."""
        changed: npt.NDArray[np.bool_] = added.copy()
        left, missing = np.arange(len(rows)), np.ones(len(rows), dtype=bool)
        for at, generation in enumerate(self.state.generations):
            probes, found = generation.row_indexes(0, rows if not at else rows.take(pa.array(left)))
            if not len(found):
                continue
            probes = left[probes]
            missing[probes] = False  # A key has one row in all generations.
            left = np.flatnonzero(missing)
            same = added[probes]
            same[same] = self._are_equal(generation, found[same], rows, probes[same])
            changed[probes[same]] = False
            self._unchanged[at].update(_bitmap_values(found[same]))
            self._deleted[at].update(_bitmap_values(found[~same]))
            if len(self.layout.keys) == 1:  # The key is that of the new row, which is reported.
                self._reported[at].update(_bitmap_values(found[added[probes] & ~same]))
        return changed

    def _are_equal(self, generation: Generation, old: Longs, rows: pa.Table, new: Longs) -> npt.NDArray[np.bool_]:
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
        """The columns, those first that are likely to differ and cheap to compare."""
        keys = {field.name for field in self.layout.keys[0]}

        schema = self.layout.schema
        return sorted(schema.names, key=lambda name: (name in keys, not pa.types.is_primitive(schema.field(name).type)))

    def _merged(self, generations: Sequence[Generation], name: str) -> list[Generation]:
        """The same rows in few generations, none of which is half dead."""
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
    """The numbers of rows, ascending."""
    return np.frombuffer(rows.to_array(), np.uint32).astype(np.int64)


def _bitmap_values(rows: Longs) -> array[int]:
    """Numbers of rows as bitmaps take them."""
    return array("I", rows.astype(np.uint32).tobytes())


def _runs_to_merge(generations: Sequence[Generation]) -> list[list[Generation]]:
    """Generations, oldest first, as those that stay alone and, where they are too many, those to be written again as one.

    These are the youngest ones, back to the oldest that has less than twice the live rows of all younger ones: so the
    large ones are seldom copied.
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
