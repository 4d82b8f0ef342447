"""The writer of a table: each task writes level-0 files of its own rows, and one commit publishes all of them.

Spark creates the writer once, and sends it as a pickle to the tasks and to the process that commits. It gives no
control over which task gets a row, so a key may be in several tasks. Each task has a range of sequence numbers, in the
order of Spark's partitions: of the rows of a key, the last row of the highest partition wins.

The process that commits reads and writes the files of the tasks again if others have taken the sequence numbers since
the writer was created, and if buckets are dynamic: one process assigns the buckets of new keys, because two tasks could
give a key two of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from lakelsm.commit.attempt_files import AttemptFiles, written_directories
from lakelsm.data_source.spark_rows import arrow_form
from lakelsm.data_source.write_options import WriteOptions
from lakelsm.environment import SYSTEM
from lakelsm.format.file_names import AttemptNames
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.snapshot import CommitKind
from lakelsm.local.arrow_writer import ArrowWriter
from lakelsm.local.local_engine import LocalEngine
from lakelsm.runner.task_messages import TaskMessages
from lakelsm.snapshots.inheritance import latest_watermark
from lakelsm.snapshots.table_store import TableStore
from lakelsm.table.writable_table import known_batch, publish_batch
from lakelsm.write.batch_write import BatchResult, BatchWriter, level0_job
from lakelsm.write.level0_task import Level0Job

#: Sequence numbers of one task. A task has fewer rows.
_TASK_NUMBERS = 1 << 32
#: Seconds before each deletion of an aborted job's files: other tasks may run until Spark kills them, after 2 seconds.
_ABORT_PAUSES = (0.0, 1.0, 2.0)


@dataclass
class FilesMessage(WriterCommitMessage):
    """The files that one task wrote. ``partition`` is its number."""

    partition: int
    files: TaskMessages


class TableWriter(DataSourceArrowWriter):
    """Writes rows with the columns of ``schema``. ``overwrite``: they replace all rows of the table."""

    def __init__(self, options: WriteOptions, schema: StructType, *, overwrite: bool) -> None:
        self._overwrite = overwrite
        self._form = arrow_form(schema)
        self._store = store = options.location.opened()._store().for_writes()
        self._rows(iter(()))  # Raises for wrong columns before a task runs.
        self._user, self._identifier, earlier = known_batch(store, options.commit_user, options.batch_id)
        self._is_committed = earlier is not None
        kind, names = CommitKind.OVERWRITE if overwrite else CommitKind.APPEND, AttemptNames.new(SYSTEM.new_uuid)
        base = store.snapshots.latest()
        with store.while_changed(base):
            job = level0_job(store, base, kind, names)
        # Buckets of tasks are provisional if they are dynamic, so the tasks do not read the indexes of keys.
        self._job = job if job.hash_indexes is None else replace(job, hash_indexes={})

    def write(self, iterator: Iterator[pa.RecordBatch]) -> FilesMessage:
        """Write the rows of a task. If it raises, it deletes its files."""
        context = TaskContext.get()
        partition = 0 if context is None else context.partitionId()
        if self._is_committed:
            return FilesMessage(partition, TaskMessages())
        job = replace(self._job, first_sequence=self._job.first_sequence + partition * _TASK_NUMBERS)
        writer = ArrowWriter(LocalEngine().runner, self._store)
        return FilesMessage(partition, writer.write(self._rows(iterator), job))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Publish the files of all tasks as one snapshot, then compact as `Table.write` does.

        If it raises, it deletes the files, unless a snapshot may name them.
        """
        if self._is_committed:
            return
        found = TaskMessages()
        for message in sorted((each for each in messages if isinstance(each, FilesMessage)), key=_partition):
            found.add(message.files)
        engine = _TaskFilesEngine(_TaskFiles(self._store, self._job, found))
        publish_batch(engine, self._store, partial(self._publish, engine.files), self._user, self._identifier)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete the files of all tasks.

        Spark also calls it after a failed commit. Then each task has a message, and `commit` has deleted what no
        snapshot can name.
        """
        if not any(message is None for message in messages):
            return
        for pause in _ABORT_PAUSES:
            SYSTEM.sleep(pause)
            with AttemptFiles(self._store, self._job.names, partial(written_directories, self._store)):
                pass

    def _rows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return rows of Spark in the form of the table's writer. Checks their columns immediately."""
        form = self._form

        def cast() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                columns = [array.cast(kind) for array, kind in zip(batch.columns, form.types)]
                yield pa.RecordBatch.from_arrays(columns, schema=form)

        return LocalEngine().prepared_rows(self._store, pa.RecordBatchReader.from_batches(form, cast()))

    def _publish(self, files: _TaskFiles, writer: BatchWriter[Any], user: str, identifier: int) -> BatchResult:
        results: list[BatchResult] = []

        def publish() -> Any:
            rows = files.written_rows(files.entries)
            if self._overwrite:
                results.append(writer.overwrite(rows, _all_partitions, user, identifier))
            else:
                results.append(writer.append(rows, user, identifier))
            outcome = results[0].outcome
            return replace(outcome, files_published=False) if files.are_rewritten else outcome

        with AttemptFiles(self._store, self._job.names, partial(written_directories, self._store)) as attempt:
            attempt.record_written(files.entries, has_indexes=files.are_provisional)
            attempt.commit(publish)
        return results[0]


def _all_partitions(written: set[bytes]) -> None:
    """Return that an overwrite replaces the whole table."""


def _partition(message: FilesMessage) -> int:
    return message.partition


class _TaskFiles:
    """A `RowWriter` whose rows are in files already; it writes them again only with other sequence numbers."""

    def __init__(self, store: TableStore, job: Level0Job, written: TaskMessages) -> None:
        self.runner = LocalEngine().runner
        self.are_rewritten = False
        #: Whether the buckets of the tasks' files are not those of the rows.
        self.are_provisional = store.options.bucket < 1
        self._writer = ArrowWriter(self.runner, store)
        self._first_sequence = job.first_sequence
        self._written = written

    @property
    def entries(self) -> list[ManifestEntry]:
        """The files with all rows."""
        return self._written.changelog_entries or self._written.entries

    def write(self, rows: Iterator[pa.RecordBatch], job: Level0Job) -> TaskMessages:
        """See `RowWriter.write`."""
        if not (self.are_rewritten or self.are_provisional) and job.first_sequence == self._first_sequence:
            return self._written
        self.are_rewritten = True
        again = self._writer.write(rows, job)
        # The tasks' files do not have the rows that the tasks ignored.
        again.ignored_rows += self._written.ignored_rows
        again.ignored_deletes += self._written.ignored_deletes
        again.watermark = latest_watermark(again.watermark, self._written.watermark)
        return again

    def written_rows(self, entries: Sequence[ManifestEntry]) -> Iterator[pa.RecordBatch]:
        """See `RowWriter.written_rows`."""
        return self._writer.written_rows(entries)


class _TaskFilesEngine(LocalEngine):
    """The local engine with the writer of one batch."""

    def __init__(self, files: _TaskFiles) -> None:
        self.files = files

    def writer(self, store: TableStore) -> Any:
        """See `Engine.writer`."""
        return self.files
