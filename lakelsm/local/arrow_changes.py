"""A planned incremental read as record batches, in this process, in the order of the snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.errors import CorruptTableError
from lakelsm.format.data_file.key_value_file import row_schema
from lakelsm.format.row_kinds import ROW_KINDS
from lakelsm.local.output_rows import output_rows, output_schema
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.merge.merge_unit import MergeUnit, RunFile
from lakelsm.merge.run_reader import RunReader
from lakelsm.plan.changelog_plan import ChangelogPlan, DifferenceUnit
from lakelsm.predicate.evaluation import matching
from lakelsm.predicate.predicate import Predicate
from lakelsm.read.changelog_tasks import POSITION_COLUMNS, Differences, MergedChanges
from lakelsm.read.stored_rows import TASK_MEMORY
from lakelsm.runner.runner import Runner
from lakelsm.schema.system_columns import SEQUENCE_NUMBER, VALUE_KIND
from lakelsm.snapshots.table_store import TableStore

#: Bytes of a file's rows in memory at a time.
_SCAN_BYTES = 16 << 20


@dataclass(frozen=True)
class ScannedChanges:
    """A file with changes of one snapshot (None: unknown)."""

    snapshot: int | None
    file: RunFile


_Unit: TypeAlias = ScannedChanges | MergeUnit | DifferenceUnit


@dataclass(frozen=True)
class ChangesTask:
    """Yields the matching changes of one unit in the form for users, with the columns of ``schema``."""

    reader: RunReader
    spec: MergeSpec
    schema: pa.Schema
    _: KW_ONLY
    predicate: Predicate | None
    positions: bool
    timestamps: str = "ns"

    @property
    def memory_bytes(self) -> int:
        """The maximum memory of one unit, in bytes."""
        return self.reader.memory_bytes

    def __call__(self, unit: _Unit) -> Iterator[pa.RecordBatch]:
        """Yield the changes of a unit that match."""
        stored = row_schema(self.reader.schema.fields)
        if isinstance(unit, ScannedChanges):
            for rows in file_changes(self.reader, unit.file):
                yield from self._shown(rows, unit.snapshot)
            return
        if isinstance(unit, MergeUnit):
            found = MergedChanges(self.reader, self.spec, stored)([unit])
        else:
            found = Differences(self.reader, self.spec, stored)([unit])
        for batch in found:
            yield from self._shown(pa.Table.from_batches([batch]), None)

    def _shown(self, rows: pa.Table, snapshot: int | None) -> Iterator[pa.RecordBatch]:
        if self.predicate is not None:
            rows = rows.filter(matching(self.predicate, rows))
        if not len(rows):
            return
        columns = [pa.array(ROW_KINDS).take(rows.column(VALUE_KIND).combine_chunks())]
        shown = output_schema(self.reader.schema.fields, all_nullable=True, timestamps=self.timestamps)
        columns += output_rows(rows, shown).columns
        if self.positions:
            columns += [pa.repeat(pa.scalar(snapshot, pa.int64()), len(rows)), rows.column(SEQUENCE_NUMBER)]
        yield from pa.Table.from_arrays(columns, schema=self.schema).to_batches()


def file_changes(reader: RunReader, file: RunFile) -> Iterator[pa.Table]:
    """Yield the rows of a file with changes, with their system columns. Raises CorruptTableError for an unknown kind."""
    for _, rows in reader.open_file(file).batches(_allowance):
        _check_kinds(file, rows)
        yield rows


def _check_kinds(file: RunFile, rows: pa.Table) -> None:
    kinds = pc.min_max(rows.column(VALUE_KIND))
    if len(rows) and not 0 <= kinds["min"].as_py() <= kinds["max"].as_py() < len(ROW_KINDS):
        raise CorruptTableError(f"Data file {file.path} has a row of an unknown kind: it was damaged or replaced.")


def _allowance() -> int:
    return _SCAN_BYTES


def changes_schema(store: TableStore, kind_column: str, positions: bool, timestamps: str) -> pa.Schema:
    """Return the columns of changes for users, all nullable: a retraction may have nothing but its key."""
    last = [pa.field(name, pa.int64()) for name in POSITION_COLUMNS] if positions else []
    kind = pa.field(kind_column, pa.string(), False)
    return pa.schema([kind, *output_schema(store.schema.fields, all_nullable=True, timestamps=timestamps), *last])


def changes_reader(
    runner: Runner,
    store: TableStore,
    plan: ChangelogPlan,
    predicate: Predicate | None = None,
    *,
    kind_column: str,
    positions: bool,
    timestamps: str = "ns",
) -> pa.RecordBatchReader:
    """Return the changes of a plan that match the predicate, if any: their kind, the table's columns, then positions.

    The changes of a key are in their order. ``timestamps`` is the form of TIMESTAMP(7..9) (`TIMESTAMP_FORMS`).
    """
    schema = changes_schema(store, kind_column, positions, timestamps)
    units: list[_Unit] = [ScannedChanges(snapshot, file) for snapshot, files in plan.scanned for file in files]
    units += [*plan.merged, *plan.compared]
    files = [file for _, files in plan.scanned for file in files]
    merged = [*plan.merged, *(compared.unit for compared in plan.compared)]
    schemas = store.schemas_of(file.schema_id for file in (*files, *(file for unit in merged for file in unit.files)))
    reader = RunReader(
        store.file_io,
        store.schema,
        schemas=schemas,
        columns=store.schema.field_names,
        memory_bytes=TASK_MEMORY,
    )
    spec = MergeSpec.of(store.schema, store.options)
    task = ChangesTask(reader, spec, schema, predicate=predicate, positions=positions, timestamps=timestamps)

    def batches() -> Iterator[pa.RecordBatch]:
        with store.while_read(*plan.ends, changes=not plan.reads_states):
            yield from runner.batches(units, task, schema, store.paths)

    return pa.RecordBatchReader.from_batches(schema, batches())
