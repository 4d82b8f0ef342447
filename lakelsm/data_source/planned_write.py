"""One write of the data source, planned on a snapshot: tasks write level-0 files, and one commit publishes all of them.

Spark gives no control over which task gets a row, so a key may be in several tasks. Each task has a range of sequence
numbers, in the order of Spark's partitions: of the rows of a key, the last row of the highest partition wins.

The process that commits reads and writes the files of the tasks again if others have taken the sequence numbers since
the write was planned, and if buckets are dynamic: one process assigns the buckets of new keys, because two tasks could
give a key two of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from lakelsm.commit.attempt_files import AttemptFiles, written_directories
from lakelsm.commit.commit_message import CommitOutcome
from lakelsm.data_source.spark_rows import arrow_form
from lakelsm.data_source.write_options import WriteOptions
from lakelsm.environment import SYSTEM
from lakelsm.errors import CommitConflictError, InvalidInputError
from lakelsm.format.file_names import AttemptNames
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.snapshot import CommitKind
from lakelsm.local.arrow_writer import ArrowWriter
from lakelsm.local.local_engine import LocalEngine
from lakelsm.runner.task_messages import TaskMessages
from lakelsm.schema.identifiers import match
from lakelsm.snapshots.inheritance import latest_watermark
from lakelsm.snapshots.table_store import TableStore
from lakelsm.spark.shared_disk import check_shared_disk
from lakelsm.table.writable_table import publish_batch, warn_consumers
from lakelsm.write.batch_write import BatchResult, BatchWriter, level0_job
from lakelsm.write.level0_task import Level0Job

#: Seconds before each deletion of an aborted job's files: other tasks may run until Spark kills them, after 2 seconds.
_ABORT_PAUSES = (0.0, 1.0, 2.0)


@dataclass
class FilesMessage(WriterCommitMessage):
    """The files that one task wrote. ``partition`` is its number."""

    partition: int
    files: TaskMessages


@dataclass(frozen=True)
class PlannedWrite:
    """What the tasks of a write and its commit need; pickled once for all tasks.

    ``form`` has the columns that Spark passes; ``row_kind`` is the one with row kinds, if any. A task has
    ``task_numbers`` sequence numbers for each bucket.
    """

    store: TableStore
    form: pa.Schema
    job: Level0Job
    _: KW_ONLY
    overwrite: bool
    row_kind: str | None
    task_numbers: int

    @staticmethod
    def of(options: WriteOptions, schema: StructType, *, overwrite: bool, task_numbers: int) -> PlannedWrite:
        """Plan a write of rows with the columns of ``schema`` on the newest snapshot.

        ``overwrite``: they replace all rows of the table. Raises InvalidInputError for wrong columns.
        """
        if overwrite and options.row_kind is not None:
            raise InvalidInputError(
                "option 'row-kind': rows that replace the table have no row kinds. Leave it out, or append the rows."
            )
        if options.row_kind is not None and match(options.row_kind, schema.names) is None:
            raise InvalidInputError(
                f"option 'row-kind': column {options.row_kind!r} is not in the frame. Columns: {', '.join(schema.names)}."
            )
        store, form = options.location.opened()._store().for_writes(), arrow_form(schema)
        _prepared(store, form, options.row_kind, iter(()))
        event_time = None if options.event_time is None else options.event_time.in_table(store)
        kind, names = CommitKind.OVERWRITE if overwrite else CommitKind.APPEND, AttemptNames.new(SYSTEM.new_uuid)
        base = store.snapshots.latest()
        with store.while_changed(base):
            job = level0_job(store, base, kind, names, event_time=event_time)
        # Buckets of tasks are provisional if they are dynamic, so the tasks do not read the indexes of keys.
        provisional = job if job.hash_indexes is None else replace(job, hash_indexes={})
        return PlannedWrite(
            store, form, provisional, overwrite=overwrite, row_kind=options.row_kind, task_numbers=task_numbers
        )

    def write(self, rows: Iterator[pa.RecordBatch]) -> FilesMessage:
        """Write the rows of a task. If it raises, it deletes its files."""
        check_shared_disk(self.store.paths.root)
        context = TaskContext.get()
        partition = 0 if context is None else context.partitionId()
        job = replace(self.job, first_sequence=self._first_sequence(partition))
        writer = ArrowWriter(LocalEngine().runner, self.store)
        return FilesMessage(partition, writer.write(_prepared(self.store, self.form, self.row_kind, rows), job))

    def publish(
        self,
        messages: Iterable[FilesMessage],
        user: str,
        identifier: int,
        *,
        query_id: str | None = None,
        compact_every: int | None = None,
    ) -> None:
        """Publish the files of all tasks as one snapshot, then compact as `Table.write` does.

        ``query_id`` and ``compact_every`` are those of a stream, as in `publish_batch`. If it raises, it deletes the
        files, unless a snapshot may name them.
        """
        engine = _TaskFilesEngine(_TaskFiles(self.store, self.job, sorted(messages, key=_partition)))
        publish = partial(self._publish, engine.files)
        result = publish_batch(
            engine, self.store, publish, user, identifier, query_id=query_id, compact_every=compact_every
        )
        if self.overwrite and result.snapshot_id is not None and not result.already_committed:
            warn_consumers(self.store, result.snapshot_id)

    def delete_files(self) -> None:
        """Delete the files of all tasks, of which some may run for a short time. REQUIRES: `publish` was not called."""
        for pause in _ABORT_PAUSES:
            SYSTEM.sleep(pause)
            with AttemptFiles(self.store, self.job.names, partial(written_directories, self.store)):
                pass

    def _publish(self, files: _TaskFiles, writer: BatchWriter[Any], user: str, identifier: int) -> BatchResult:
        results: list[BatchResult] = []

        def publish() -> CommitOutcome:
            rows = files.written_rows(files.entries)
            if self.overwrite:
                results.append(writer.overwrite(rows, _all_partitions, user, identifier))
            else:
                results.append(writer.append(rows, user, identifier))
            outcome = results[0].outcome
            return replace(outcome, files_published=False) if files.are_rewritten else outcome

        with AttemptFiles(self.store, self.job.names, partial(written_directories, self.store)) as attempt:
            attempt.record_written(files.entries, has_indexes=files.are_provisional)
            self._check_numbers(files.messages)
            if self.store.is_recreated():
                raise CommitConflictError(
                    f"Table {self.store.name}: it was dropped, or created again, while its rows were written. Nothing is "
                    "committed; write them again."
                )
            attempt.commit(publish)
        return results[0]

    def _first_sequence(self, partition: int) -> int:
        return self.job.first_sequence + partition * self.task_numbers

    def _check_numbers(self, messages: Iterable[FilesMessage]) -> None:
        """Raise InvalidInputError if a task used sequence numbers of the next one."""
        for message in messages:
            entries = (*message.files.entries, *message.files.changelog_entries)
            if any(entry.file.max_sequence_number >= self._first_sequence(message.partition + 1) for entry in entries):
                raise InvalidInputError(
                    f"Table {self.store.name}: partition {message.partition} of the frame has more than "
                    f"{self.task_numbers:,} rows of one bucket. Repartition the frame, or write fewer rows at a time."
                )


def _prepared(
    store: TableStore, form: pa.Schema, row_kind: str | None, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Return rows of Spark in the form of the table's writer. Checks their columns immediately."""

    def cast() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = [array.cast(kind) for array, kind in zip(batch.columns, form.types)]
            yield pa.RecordBatch.from_arrays(columns, schema=form)

    return LocalEngine().prepared_rows(store, pa.RecordBatchReader.from_batches(form, cast()), row_kind)


def _all_partitions(written: set[bytes]) -> None:
    """Return that an overwrite replaces the whole table."""


def _partition(message: FilesMessage) -> int:
    return message.partition


class _TaskFiles:
    """A `RowWriter` whose rows are in files already; it writes them again only with other sequence numbers."""

    def __init__(self, store: TableStore, job: Level0Job, messages: Sequence[FilesMessage]) -> None:
        self.runner = LocalEngine().runner
        self.are_rewritten = False
        #: Whether the buckets of the tasks' files are not those of the rows.
        self.are_provisional = store.options.bucket < 1
        self.messages = messages
        self._writer = ArrowWriter(self.runner, store)
        self._first_sequence = job.first_sequence
        self._written = TaskMessages()
        for message in messages:
            self._written.add(message.files)

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
