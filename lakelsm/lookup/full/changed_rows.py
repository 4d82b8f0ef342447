"""What changed between two snapshots: the keys whose rows may be others, each with its new row or without one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lakelsm.format.data_file.key_value_file import conform
from lakelsm.format.data_file.vector_place import VectorPlace, positions_within, read_vectors
from lakelsm.format.row_kinds import DELETE, INSERT
from lakelsm.format.snapshot import Snapshot
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.merge.merge_unit import MergeUnit, RunFile
from lakelsm.merge.run_reader import RunReader
from lakelsm.plan.changelog_plan import DifferenceUnit, plan_difference
from lakelsm.plan.newest_rows import plan_newest_rows
from lakelsm.plan.shown_rows_change import ShownFile, plan_shown_rows, shows_rows_of_files
from lakelsm.read.changelog_tasks import Differences, MergedChanges
from lakelsm.read.stored_rows import TASK_MEMORY
from lakelsm.runner.local_runner import LocalRunner
from lakelsm.schema.system_columns import VALUE_KIND
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import DataField, to_arrow

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
    added is the one that its key has now; a retraction has the primary key at least, and says that the row which the key
    had is gone. A key comes with one added row at most. Rows may come that have not changed.
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
            yield from self._rows(unit.file, self._masked(unit.file, unit.before), DELETE)
        elif not unit.had:
            yield from self._rows(unit.file, self._masked(unit.file, unit.file.vector), INSERT)
        else:
            before, now = (self._masked(unit.file, vector) for vector in (unit.before, unit.file.vector))
            every = BitMap(range(unit.file.row_count))
            yield from self._rows(unit.file, every - (now - before), DELETE)
            yield from self._rows(unit.file, every - (before - now), INSERT)

    def _masked(self, file: RunFile, vector: VectorPlace | None) -> BitMap:
        if vector is None:
            return BitMap()
        (masked,) = read_vectors(self.reader.file_io.filesystem(), [(vector, file.row_count)])
        return masked

    def _rows(self, file: RunFile, hidden: BitMap, kind: int) -> Iterator[pa.RecordBatch]:
        """The rows of a file but the hidden ones, all of one kind; of rows that are gone their keys alone."""
        if len(hidden) == file.row_count:
            return
        names = self.schema.names[1:] if kind == INSERT else self.reader.schema.primary_keys
        reader = replace(self.reader, columns=tuple(names))
        for start, rows in reader.open_file(file, system=False).batches(lambda: self.memory_bytes // _SCAN_SHARE):
            found = positions_within(hidden, start, start + len(rows))
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
