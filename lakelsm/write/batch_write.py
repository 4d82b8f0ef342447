"""Writes one batch: plan on the newest snapshot, write level-0 files in tasks, commit. A lost race repeats the work."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Generic, Protocol, TypeAlias, TypeVar

from lakelsm.commit.attempt_files import AttemptFiles, written_directories
from lakelsm.commit.commit_message import CommitMessage, CommitOutcome, ReplacedPartitions
from lakelsm.commit.committer import Committer
from lakelsm.environment import SYSTEM, Environment
from lakelsm.errors import (
    BucketAssignConflictError,
    CommitConflictError,
    RowsChangedError,
    SequenceConflictError,
)
from lakelsm.format.data_file.key_value_file import FileLayout
from lakelsm.format.file_names import AttemptNames
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from lakelsm.merge.batch_check import dropped_kinds
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.operation_log import log_step
from lakelsm.options import ChangelogProducer
from lakelsm.plan.bucket_count import check_bucket_count
from lakelsm.plan.overwrite_plan import upgraded_for_overwrite
from lakelsm.runner.runner import Runner
from lakelsm.runner.task_messages import TaskMessages
from lakelsm.snapshots.hash_indexes import hash_indexes
from lakelsm.snapshots.sequence_base import table_max_sequence
from lakelsm.snapshots.table_store import TableStore
from lakelsm.write.event_time import EventTimeColumn
from lakelsm.write.level0_task import Level0Job
from lakelsm.write.written_keys import others_wrote_keys

_LOG = logging.getLogger("lakelsm.write")

_DYNAMIC = -1
#: A writing task merges its rows in parts of about this many bytes.
_BATCH_BYTES = 16 << 20
#: The maximum number of attempts of a batch if other commits change the same buckets.
_MAX_REDO = 50
#: The sequence numbers that a repeated batch leaves to concurrent writers. If they commit first again, their numbers are
#: below its own, so there is no second conflict.
_ROOM = 1 << 32

#: Prepared rows of a batch: the table's columns, `VALUE_KIND`, and `SEQUENCE_NUMBER` with their order.
Rows = TypeVar("Rows")

#: Computes the rows of a batch from a snapshot.
ChangedRows: TypeAlias = Callable[[Snapshot | None], Rows]


class RowWriter(Protocol[Rows]):
    """Writes the rows of an engine to a table."""

    @property
    def runner(self) -> Runner:
        """The runner of its tasks."""

    def write(self, rows: Rows, job: Level0Job) -> TaskMessages:
        """Add the bucket of each row, group and sort the rows by key, and let ``job`` write them.

        If it raises, no task is running any more.
        """

    def written_rows(self, entries: Sequence[ManifestEntry]) -> Rows:
        """Return the rows of level-0 or changelog files of this writer, prepared to be written again."""


@dataclass(frozen=True)
class BatchResult:
    """The result of a batch. ``entries`` are the level-0 files; empty if it was committed before.

    ``ignored_rows``, ``ignored_deletes`` and ``row_kinds`` count rows of the batch as in `TaskMessages`; 0 and () if it
    was committed before.
    """

    outcome: CommitOutcome
    entries: tuple[ManifestEntry, ...]
    _: KW_ONLY
    ignored_rows: int = 0
    ignored_deletes: int = 0
    row_kinds: tuple[int, ...] = ()


class BatchWriter(Generic[Rows]):
    """Writes one batch of prepared rows to a table. ``query_id`` is the streaming query of the batch, if any."""

    def __init__(
        self,
        writer: RowWriter[Rows],
        store: TableStore,
        step: Callable[[str], None] | None = None,
        environment: Environment = SYSTEM,
        *,
        query_id: str | None = None,
    ) -> None:
        self._writer = writer
        self._store = store
        self._step = step or (lambda name: None)
        self._environment = environment
        self._query_id = query_id

    def append(
        self,
        rows: Rows,
        commit_user: str,
        identifier: int = BATCH_COMMIT_IDENTIFIER,
        *,
        event_time: EventTimeColumn | None = None,
    ) -> BatchResult:
        """Add the rows as level-0 files. ``event_time`` is the column that gives the snapshot its watermark."""
        return self._write(lambda base: rows, CommitKind.APPEND, commit_user, identifier, event_time=event_time)

    def change(
        self,
        operation: str,
        rows: ChangedRows[Rows],
        commit_user: str,
        identifier: int = BATCH_COMMIT_IDENTIFIER,
    ) -> BatchResult:
        """Add the rows of a DELETE, UPDATE or MERGE. They are computed again if another commit writes their keys."""
        return self._write(rows, CommitKind.APPEND, commit_user, identifier, operation=operation)

    def overwrite(
        self,
        rows: Rows,
        partitions: Callable[[set[bytes]], ReplacedPartitions | None],
        commit_user: str,
        identifier: int = BATCH_COMMIT_IDENTIFIER,
        *,
        event_time: EventTimeColumn | None = None,
    ) -> BatchResult:
        """Replace partitions by the rows. ``partitions`` returns the filter, given the partitions that were written.

        ``event_time`` is as in `append`.
        """
        kind = CommitKind.OVERWRITE
        return self._write(lambda base: rows, kind, commit_user, identifier, partitions, event_time=event_time)

    def _write(
        self,
        rows_of: ChangedRows[Rows],
        kind: CommitKind,
        commit_user: str,
        identifier: int,
        partitions: Callable[[set[bytes]], ReplacedPartitions | None] | None = None,
        operation: str | None = None,
        event_time: EventTimeColumn | None = None,
    ) -> BatchResult:
        room = 0
        first: TaskMessages | None = None
        changed = operation is not None
        with ExitStack() as attempts:
            for _ in range(_MAX_REDO):
                base = self._store.snapshots.latest()
                # The files of a failed attempt may be the input of the next one, so all are deleted at the end.
                files = attempts.enter_context(self._new_files())
                try:
                    with self._store.while_changed(base):
                        written = self._execute(rows_of(base), base, room, kind, files.names, event_time)
                        # A later attempt reads the files of the first, without the rows that the first one ignored or
                        # replaced by others of the batch.
                        first = written if first is None or changed else first
                        entries = [*written.entries, *written.changelog_entries]
                        files.record_written(entries, has_indexes=bool(written.index_entries))
                        log_step(_LOG, "Table %s: %d files of a batch are written", self._store.name, len(entries))
                        self._step("data-files-written")
                        message = replace(self._message(written, base, partitions), watermark=first.watermark)
                        if base is not None and changed:
                            message = replace(message, rows_as_of=base.id)
                        commit = partial(self._commit, kind, message, commit_user, identifier, operation)
                        outcome = files.commit(commit)
                except (SequenceConflictError, BucketAssignConflictError, RowsChangedError) as lost:
                    log_step(_LOG, "Table %s: a batch is written again: %s", self._store.name, lost)
                    # The written files are the complete, merged batch: they are the input of the next attempt, unless
                    # the rows were computed from rows that may have changed.
                    if not changed:
                        rows_of = self._written_again(written.changelog_entries or written.entries)
                    room = _ROOM
                    continue
                if outcome.already_committed and not outcome.files_published:
                    return BatchResult(outcome, ())
                published = tuple(written.entries) if outcome.files_published else ()
                return BatchResult(
                    outcome,
                    published,
                    ignored_rows=first.ignored_rows,
                    ignored_deletes=first.ignored_deletes,
                    row_kinds=first.row_kinds,
                )
        raise self._always_later()

    def _written_again(self, entries: Sequence[ManifestEntry]) -> ChangedRows[Rows]:
        """Return the function that reads the rows of these files again. Changelog files have all rows of a batch."""
        return lambda base: self._writer.written_rows(entries)

    def _new_files(self) -> AttemptFiles:
        names = AttemptNames.new(self._environment.new_uuid)
        return AttemptFiles(self._store, names, partial(written_directories, self._store))

    def _commit(
        self, kind: CommitKind, message: CommitMessage, commit_user: str, identifier: int, operation: str | None
    ) -> CommitOutcome:
        """Commit a message. Repeats it if others wrote in the range of the keys that were read, but not these keys."""
        for _ in range(_MAX_REDO):
            try:
                committer = Committer(self._store, self._step, self._environment)
                return committer.commit(
                    kind, message, commit_user, identifier, query_id=self._query_id, operation=operation
                )
            except RowsChangedError:
                known, newest = message.rows_as_of, self._store.snapshots.latest_id()
                if known is None or newest is None or newest <= known:
                    raise
                if others_wrote_keys(self._writer.runner, self._store, message.entries, known, newest):
                    raise
                message = replace(message, rows_as_of=newest)
                log_step(_LOG, "Table %s: the rows are unchanged up to snapshot %d", self._store.name, newest)
        raise self._always_later()

    def _always_later(self) -> CommitConflictError:
        return CommitConflictError(
            f"Table {self._store.name}: other writers committed to the same buckets {_MAX_REDO} times in a row. "
            "Nothing is committed; run the batch again."
        )

    def _message(
        self,
        written: TaskMessages,
        base: Snapshot | None,
        partitions: Callable[[set[bytes]], ReplacedPartitions | None] | None,
    ) -> CommitMessage:
        touched = {entry.partition for entry in written.entries}
        found = check_bucket_count(self._store, base, touched) if partitions is None else None
        return CommitMessage(
            entries=upgraded_for_overwrite(self._store, written.entries) if partitions else written.entries,
            changelog_entries=written.changelog_entries,
            index_adds=written.index_entries,
            base_snapshot_id=None if base is None else base.id,
            base_fingerprint=None if base is None else base.fingerprint,
            base_total_buckets=found,
            overwrite_partitions=partitions(touched) if partitions else None,
        )

    def _execute(
        self,
        rows: Rows,
        base: Snapshot | None,
        room: int,
        kind: CommitKind,
        names: AttemptNames,
        event_time: EventTimeColumn | None,
    ) -> TaskMessages:
        """Write the rows to level-0 files; nothing is visible yet."""
        environment = self._environment
        job = level0_job(self._store, base, kind, names, room=room, event_time=event_time, environment=environment)
        return self._writer.write(rows, job)


def level0_job(
    store: TableStore,
    base: Snapshot | None,
    kind: CommitKind,
    names: AttemptNames,
    *,
    room: int = 0,
    event_time: EventTimeColumn | None = None,
    environment: Environment = SYSTEM,
) -> Level0Job:
    """Return the job of the tasks that write a batch to level-0 files, based on a snapshot.

    ``room`` sequence numbers are skipped before the first one. An OVERWRITE replaces partitions and the index of their
    keys, so keys get new dynamic buckets. It has no changelog, as in Paimon.
    """
    options = store.options
    replaces = kind is CommitKind.OVERWRITE
    indexes = hash_indexes(store, None if replaces else base) if options.bucket == _DYNAMIC else None
    layout = FileLayout.of(store.schema, options)
    keeps_input = options.changelog_producer is ChangelogProducer.INPUT and not replaces
    return Level0Job(
        file_io=store.file_io,
        paths=store.paths,
        layout=layout,
        spec=MergeSpec.of(store.schema, options),
        first_sequence=table_max_sequence(store.file_io, store.paths, base) + 1 + room,
        total_buckets=options.bucket,
        partition_default_name=options.partition_default_name,
        partition_legacy_name=options.partition_legacy_name,
        batch_bytes=_BATCH_BYTES,
        hash_indexes=indexes,
        changelog_layout=layout.for_changelog(options) if keeps_input else None,
        dropped_kinds=dropped_kinds(options),
        event_time=event_time,
        names=names,
        environment=environment,
    )
