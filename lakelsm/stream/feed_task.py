"""The task that reads one part of a batch of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass

import pyarrow as pa

from lakelsm.format.data_file.key_value_file import row_schema
from lakelsm.format.row_kinds import ROW_KINDS, is_retract
from lakelsm.format.snapshot import Snapshot
from lakelsm.local.arrow_changes import file_changes
from lakelsm.local.arrow_scan import ArrowScan
from lakelsm.local.output_rows import output_rows
from lakelsm.local.scan_task import ScanTask
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.merge.merge_unit import MergeUnit, RunFile
from lakelsm.merge.run_reader import RunReader
from lakelsm.plan.read_plan import ReadPlan
from lakelsm.predicate.evaluation import matching
from lakelsm.predicate.predicate import Predicate, columns
from lakelsm.read.changelog_tasks import POSITION_COLUMNS, Differences
from lakelsm.read.stored_rows import TASK_MEMORY
from lakelsm.schema.system_columns import SEQUENCE_NUMBER, VALUE_KIND
from lakelsm.snapshots.table_store import TableStore
from lakelsm.stream.feed_part import FeedPart, FeedUnit, FileChanges, LoadedRows, OverwriteChanges

_INSERT = ROW_KINDS[0]


@dataclass(frozen=True)
class FeedTask:
    """Yields the matching rows of a part, with the columns of ``schema``.

    ``schema`` has the kind of the row first if ``has_kinds``, else only rows of kinds +I and +U are yielded, and the
    position at last if ``has_positions``. The sequence number of a loaded row is NULL.
    """

    store: TableStore
    schema: pa.Schema
    _: KW_ONLY
    scan: ScanTask
    reader: RunReader
    differences: Differences
    predicate: Predicate | None
    has_kinds: bool
    has_positions: bool

    @property
    def memory_bytes(self) -> int:
        """The maximum memory of one part, in bytes."""
        return self.reader.memory_bytes

    def __call__(self, part: FeedPart) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part. Raises SnapshotNotFoundError if a snapshot that it reads is deleted during it."""
        for unit in part.units:
            yield from self._of_unit(unit)

    def _of_unit(self, unit: FeedUnit) -> Iterator[pa.RecordBatch]:
        if isinstance(unit, LoadedRows):
            with self.store.while_read(unit.snapshot):
                for batch in self.scan(unit.unit):
                    rows = batch.num_rows
                    kinds, sequences = pa.repeat(_INSERT, rows), pa.nulls(rows, pa.int64())
                    yield self._batch(batch.columns, kinds, sequences, unit.snapshot)
        elif isinstance(unit, FileChanges):
            with self.store.while_read(unit.snapshot, changes=True):
                for rows in file_changes(self.reader, unit.file):
                    yield from self._changes(rows, unit.snapshot)
        else:
            with self.store.while_read(unit.before, unit.snapshot):
                for batch in self.differences([unit.unit]):
                    yield from self._changes(pa.Table.from_batches([batch]), unit.snapshot)

    def _changes(self, rows: pa.Table, snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
        if not self.has_kinds:
            rows = rows.filter(pa.array(~is_retract(rows.column(VALUE_KIND))))
        if self.predicate is not None:
            rows = rows.filter(matching(self.predicate, rows))
        if not len(rows):
            return
        shown = output_rows(rows, self.scan.schema)
        found = [column.combine_chunks() for column in shown.columns]
        kinds = pa.array(ROW_KINDS).take(rows.column(VALUE_KIND).combine_chunks())
        yield self._batch(found, kinds, rows.column(SEQUENCE_NUMBER).combine_chunks(), snapshot)

    def _batch(
        self, found: Sequence[pa.Array], kinds: pa.Array, sequences: pa.Array, snapshot: Snapshot
    ) -> pa.RecordBatch:
        """Return rows with the columns of the schema."""
        kind = [kinds] if self.has_kinds else []
        position = [pa.repeat(pa.scalar(snapshot.id, pa.int64()), len(kinds)), sequences] if self.has_positions else []
        return pa.RecordBatch.from_arrays([*kind, *found, *position], schema=self.schema)


def feed_task(
    store: TableStore,
    parts: Sequence[FeedPart],
    schema: pa.Schema,
    *,
    kind_column: str | None,
    positions: bool,
    predicate: Predicate | None,
) -> FeedTask:
    """Return the task for some parts. See `ChangeFeed.task`."""
    names = schema.names[0 if kind_column is None else 1 :]
    names = names[: len(names) - (len(POSITION_COLUMNS) if positions else 0)]
    shown = pa.schema([schema.field(schema.get_field_index(name)) for name in names])
    units = [unit for part in parts for unit in part.units]
    loaded = [unit for unit in units if isinstance(unit, LoadedRows)]
    raw = [unit.unit for unit in loaded if isinstance(unit.unit, RunFile)]
    merged = [file for unit in loaded if isinstance(unit.unit, MergeUnit) for file in unit.unit.files]
    snapshot = loaded[0].snapshot if loaded else None
    plan = ReadPlan(snapshot, raw_files=tuple(raw), merged_files=tuple(merged), units=(), files_live=0)
    changed = [file for unit in units if not isinstance(unit, LoadedRows) for file in _files(unit)]
    schemas = store.schemas_of(file.schema_id for file in changed)
    wanted = set(names) | (set() if predicate is None else columns(predicate))

    def reader(columns: Sequence[str]) -> RunReader:
        return RunReader(
            store.file_io, store.schema, schemas=schemas, columns=tuple(columns), memory_bytes=TASK_MEMORY
        )

    every = store.schema.field_names  # An overwrite changes a row if it changes any column of it.
    spec = MergeSpec.of(store.schema, store.options)
    return FeedTask(
        store,
        schema,
        scan=ArrowScan(store, plan, tuple(names), predicate=predicate).task(shown),
        reader=reader([name for name in every if name in wanted]),
        differences=Differences(reader(every), spec, row_schema(store.schema.fields)),
        predicate=predicate,
        has_kinds=kind_column is not None,
        has_positions=positions,
    )


def _files(unit: FileChanges | OverwriteChanges) -> Sequence[RunFile]:
    return [unit.file] if isinstance(unit, FileChanges) else unit.unit.unit.files
