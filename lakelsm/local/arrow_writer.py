"""Writes Arrow rows to level-0 files: assigns buckets and sorts in this process, then runs tasks that merge and write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from lakelsm.format.data_file.key_value_file import row_schema
from lakelsm.format.manifest import ManifestEntry
from lakelsm.local.bucket_codes import BucketCodes
from lakelsm.local.row_sorter import RowSorter, SortedRows
from lakelsm.local.scratch_runs import ScratchSpace
from lakelsm.merge.run_reader import RunReader
from lakelsm.plan.merge_units import MergeUnits
from lakelsm.runner.runner import Runner
from lakelsm.runner.task_messages import TaskMessages
from lakelsm.schema.system_columns import BUCKET
from lakelsm.snapshots.table_store import TableStore
from lakelsm.write.level0_task import Level0Job

#: Bytes of rows for one task.
_UNIT_BYTES = 8 << 20


@dataclass(frozen=True)
class _WriteUnit:
    """Rows of some buckets, for one task."""

    rows: tuple[tuple[int, SortedRows], ...]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, each with its bucket."""
        for bucket, rows in self.rows:
            for table in rows.tables():
                buckets = pa.array(np.full(len(table), bucket, np.int32))
                yield from table.append_column(BUCKET, buckets).to_batches()


class ArrowWriter:
    """Writes rows that `prepare_arrow` returned."""

    def __init__(self, runner: Runner, store: TableStore) -> None:
        self.runner = runner
        self._store = store

    def write(self, rows: Iterator[pa.RecordBatch], job: Level0Job) -> TaskMessages:
        """See `RowWriter.write`."""
        schema, options = self._store.schema, self._store.options
        codes = BucketCodes(schema, options, job.file_io, job.hash_indexes)
        with ScratchSpace(row_schema(schema.fields), options.write_buffer_spill_max_disk_size) as scratch:
            sorter = RowSorter(schema.trimmed_primary_keys, options.write_buffer_size, scratch)
            for batch in rows:
                sorter.add(batch, codes.of(batch))
            units = list(_units(sorter.sorted(), codes.buckets))
            return self.runner.messages(units, partial(_written, job), job.paths, job.names)

    def written_rows(self, entries: Sequence[ManifestEntry]) -> Iterator[pa.RecordBatch]:
        """See `RowWriter.written_rows`."""
        schema = self._store.schema
        reader = RunReader(
            self._store.file_io,
            schema,
            schemas={schema.id: schema},
            columns=tuple(schema.field_names),
            memory_bytes=_UNIT_BYTES,
        )
        files = MergeUnits(self._store, entries)
        for entry in entries:
            for _, rows in reader.open_file(files.file_of(entry)).batches(lambda: _UNIT_BYTES):
                yield from rows.combine_chunks().to_batches()


def _written(job: Level0Job, unit: _WriteUnit) -> Iterator[pa.RecordBatch]:
    return job(unit.batches())


def _units(sorted_rows: Sequence[SortedRows], buckets: Sequence[int]) -> Iterator[_WriteUnit]:
    """Yield the rows of all buckets; small buckets share a unit."""
    pending: list[tuple[int, SortedRows]] = []
    for rows in sorted_rows:
        pending.append((buckets[rows.code], rows))
        if sum(each.size for _, each in pending) >= _UNIT_BYTES:
            yield _WriteUnit(tuple(pending))
            pending = []
    if pending:
        yield _WriteUnit(tuple(pending))
