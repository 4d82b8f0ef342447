"""What changed between two snapshots: the keys whose rows may be others, each with its new row or without one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
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
from lakelsm.runner.runner import Runner
from lakelsm.schema.system_columns import VALUE_KIND
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import DataField, to_arrow

#: The share of a task's memory that a batch of a scan may have.
_SCAN_SHARE = 16

_Unit: TypeAlias = MergeUnit | DifferenceUnit | ShownFile


def changes_schema(fields: Sequence[DataField]) -> pa.Schema:
    """The columns of changes: the kind of the row, then those of the table, any of which a retraction may lack."""
    columns = [(field.name, to_arrow(field.type)) for field in fields]
    return pa.schema([pa.field(VALUE_KIND, pa.int8(), False), *(pa.field(*column) for column in columns)])


@dataclass(frozen=True)
class ChangedRows:
    """The work of finding what changed: ``units`` for ``task``, which yields rows of ``schema`` (`changes_schema`).

    A row that is added is the one that its key has now; a retraction has the primary key at least, and says that the row
    which the key had is gone. A key comes with one added row at most. Rows may come that have not changed.
    """

    units: tuple[_Unit, ...]
    task: ChangesTask
    schema: pa.Schema

    @staticmethod
    def between(
        store: TableStore, before: Snapshot, after: Snapshot, names: Sequence[str], only: Collection[int] | None = None
    ) -> ChangedRows:
        """Plan what changed from one snapshot to a newer one, both of which exist.

        ``names`` are the wanted columns, with the primary key; ``only`` has the buckets looked at (None: all).
        """
        units: tuple[_Unit, ...] | None
        if shows_rows_of_files(store.options):
            units = plan_shown_rows(store, before, after, only)
        else:
            units = plan_newest_rows(store, before, after, only)
        if units is None:
            units = plan_difference(store, before, after, None, only).compared
        spec = MergeSpec.of(store.schema, store.options).of_columns(names)
        reader = RunReader(
            store.file_io,
            store.schema,
            schemas=store.schemas_of({file.schema_id for unit in units for file in _files(unit)}),
            columns=tuple(dict.fromkeys((*names, *spec.read_columns))),
            memory_bytes=TASK_MEMORY,
        )
        schema = changes_schema([store.schema.field(name) for name in names])
        return ChangedRows(units, ChangesTask(reader, spec, schema), schema)

    def batches(self, runner: Runner, store: TableStore) -> Iterator[pa.RecordBatch]:
        """Yield the changes."""
        if self.units:
            yield from runner.batches(self.units, self.task, self.schema, store.paths)


def _files(unit: _Unit) -> Sequence[RunFile]:
    if isinstance(unit, ShownFile):
        return (unit.file,)
    return unit.files if isinstance(unit, MergeUnit) else unit.unit.files


@dataclass(frozen=True)
class ChangesTask:
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
        else:
            yield from self._shown(unit)

    def _shown(self, unit: ShownFile) -> Iterator[pa.RecordBatch]:
        file = unit.file
        before = self._masked(unit.before, file.row_count)
        if not unit.has:
            yield from self._rows(unit, before, DELETE)
            return
        now = self._masked(file.vector, file.row_count)
        if not unit.had:
            yield from self._rows(unit, now, INSERT)
            return
        every = BitMap(range(file.row_count))
        for shown, kind in ((now - before, DELETE), (before - now, INSERT)):
            if shown:
                yield from self._rows(unit, every - shown, kind)

    def _masked(self, vector: VectorPlace | None, rows: int) -> BitMap:
        if vector is None:
            return BitMap()
        (masked,) = read_vectors(self.reader.file_io.filesystem(), [(vector, rows)])
        return masked

    def _rows(self, unit: ShownFile, hidden: BitMap, kind: int) -> Iterator[pa.RecordBatch]:
        """The rows of a file but the hidden ones, all of one kind; of rows that are gone their keys alone."""
        keys = self.reader.schema.primary_keys
        names = self.schema.names[1:] if kind == INSERT else keys
        reader = RunReader(
            self.reader.file_io,
            self.reader.schema,
            schemas=self.reader.schemas,
            columns=tuple(names),
            memory_bytes=self.reader.memory_bytes,
        )
        for start, rows in reader.open_file(unit.file, system=False).batches(self._allowance):
            found = positions_within(hidden, start, start + len(rows))
            if len(found) == len(rows):
                continue
            if len(found):
                shown = np.ones(len(rows), dtype=bool)
                shown[found - start] = False
                rows = rows.filter(pa.array(shown))
            columns = {VALUE_KIND: pa.array(np.full(len(rows), kind, dtype=np.int8))}
            for field in self.schema.remove(0):
                has = field.name in rows.column_names
                columns[field.name] = rows.column(field.name) if has else pa.nulls(len(rows), field.type)
            yield from conform(pa.table(columns), self.schema).combine_chunks().to_batches()

    def _allowance(self) -> int:
        return self.reader.memory_bytes // _SCAN_SHARE


__all__ = ["ChangedRows", "changes_schema"]
