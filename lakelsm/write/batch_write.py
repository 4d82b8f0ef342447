"""One batch: plan on the newest snapshot, write level-0 files in tasks, commit; redo what a race spoiled."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
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
from lakelsm.write.level0_task import Level0Job
from lakelsm.write.written_keys import others_wrote_keys

_LOG = logging.getLogger("lakelsm.write")

_DYNAMIC = -1
#: Rows of a writing task are merged in pieces of about so many bytes.
_BATCH_BYTES = 16 << 20
#: The number of attempts of a batch when other commits change the same buckets.
_MAX_REDO = 50
#: A batch that is redone leaves so many sequence numbers to the writers that come first again, so that it meets them
#: once only: their numbers stay below its own, as their commits come before its own.
_ROOM = 1 << 32

#: Prepared rows of a batch: the table's columns, then `VALUE_KIND` and `SEQUENCE_NUMBER`, which orders them.
Rows = TypeVar("Rows")

#: Rows of a batch as they follow from those of a snapshot.
ChangedRows: TypeAlias = Callable[[Snapshot | None], Rows]


class RowWriter(Protocol[Rows]):
    """Writes the rows of one kind of engine to a table."""

    @property
    def runner(self) -> Runner:
        """What runs its tasks."""

    def write(self, rows: Rows, job: Level0Job) -> TaskMessages:
        """Give each row its bucket, bring the rows of a key together in order, and let ``job`` write them.

        No task runs any more when it raises.
        """

    def written_rows(self, entries: Sequence[ManifestEntry]) -> Rows:
        """The rows of level-0 or changelog files of this writer, prepared to be written again."""


@dataclass(frozen=True)
class BatchResult:
    """What a batch put on the table. ``entries`` are the level-0 files; empty when it was committed before.

    ``ignored_rows`` and ``ignored_deletes`` count rows of the batch as in `TaskMessages`, 0 when it was committed before.
    """

    outcome: CommitOutcome
    entries: tuple[ManifestEntry, ...]
    ignored_rows: int = 0
    ignored_deletes: int = 0


class BatchWriter(Generic[Rows]):
    """Writes one batch of prepared rows to a table."""

    def __init__(
        self,
        writer: RowWriter[Rows],
        store: TableStore,
        step: Callable[[str], None] | None = None,
        environment: Environment = SYSTEM,
    ) -> None:
        self._writer = writer
        self._store = store
        self._step = step or (lambda name: None)
        self._environment = environment

    def append(self, rows: Rows, commit_user: str, identifier: int = BATCH_COMMIT_IDENTIFIER) -> BatchResult:
        """Add the rows as level-0 files."""
        return self._write(lambda base: rows, CommitKind.APPEND, commit_user, identifier)

    def change(
        self,
        operation: str,
        rows: ChangedRows[Rows],
        commit_user: str,
        identifier: int = BATCH_COMMIT_IDENTIFIER,
    ) -> BatchResult:
        """Add the rows of a DELETE or UPDATE, computed from a snapshot, and again if others wrote their keys since."""
        return self._write(rows, CommitKind.APPEND, commit_user, identifier, operation=operation)

    def overwrite(
        self,
        rows: Rows,
        partitions: Callable[[set[bytes]], ReplacedPartitions | None],
        commit_user: str,
        identifier: int = BATCH_COMMIT_IDENTIFIER,
    ) -> BatchResult:
        """Replace partitions by the rows; ``partitions`` makes the filter from the partitions that were written."""
        return self._write(lambda base: rows, CommitKind.OVERWRITE, commit_user, identifier, partitions)

    def _write(
        self,
        rows_of: ChangedRows[Rows],
        kind: CommitKind,
        commit_user: str,
        identifier: int,
        partitions: Callable[[set[bytes]], ReplacedPartitions | None] | None = None,
        operation: str | None = None,
    ) -> BatchResult:
        room = 0
        first: TaskMessages | None = None
        changed = operation is not None
        with ExitStack() as attempts:
            for _ in range(_MAX_REDO):
                base = self._store.snapshots.latest()
                # What a spoiled attempt wrote may be the next one's input, so it goes with the last of them.
                files = attempts.enter_context(self._new_files())
                try:
                    with self._store.while_changed(base):
                        written = self._execute(rows_of(base), base, room, kind, files.names)
                        # A later try of the same rows writes the files of the first, which lack rows that it dropped.
                        first = written if first is None or changed else first
                        entries = [*written.entries, *written.changelog_entries]
                        files.record_written(entries, has_indexes=bool(written.index_entries))
                        log_step(_LOG, "Table %s: %d files of a batch are written", self._store.name, len(entries))
                        self._step("data-files-written")
                        message = self._message(written, base, partitions)
                        if base is not None and changed:
                            message = replace(message, rows_as_of=base.id)
                        commit = partial(self._commit, kind, message, commit_user, identifier, operation)
                        outcome = files.commit(commit)
                except (SequenceConflictError, BucketAssignConflictError, RowsChangedError) as lost:
                    log_step(_LOG, "Table %s: a batch is written again: %s", self._store.name, lost)
                    # Others came first. What was written is a whole, merged batch: it is the next try's input,
                    # unless it was worked out from rows that may be others now.
                    if not changed:
                        rows_of = self._written_again(written.changelog_entries or written.entries)
                    room = _ROOM
                    continue
                if outcome.already_committed and not outcome.files_published:
                    return BatchResult(outcome, ())
                published = tuple(written.entries) if outcome.files_published else ()
                return BatchResult(outcome, published, first.ignored_rows, first.ignored_deletes)
        raise self._always_later()

    def _written_again(self, entries: Sequence[ManifestEntry]) -> ChangedRows[Rows]:
        """The rows of files of this writer. Changelog files have all rows of a batch."""
        return lambda base: self._writer.written_rows(entries)

    def _new_files(self) -> AttemptFiles:
        names = AttemptNames.new(self._environment.new_uuid)
        return AttemptFiles(self._store, names, partial(written_directories, self._store))

    def _commit(
        self, kind: CommitKind, message: CommitMessage, commit_user: str, identifier: int, operation: str | None
    ) -> CommitOutcome:
        """Commit; again where others came first in the range of the keys that were read, but wrote none of them."""
        for _ in range(_MAX_REDO):
            try:
                committer = Committer(self._store, self._step, self._environment)
                return committer.commit(kind, message, commit_user, identifier, operation=operation)
            except RowsChangedError:
                known, newest = message.rows_as_of, self._store.snapshots.latest_id()
                if known is None or newest is None or newest <= known:
                    raise
                if others_wrote_keys(self._writer.runner, self._store, message.entries, known, newest):
                    raise
                message = replace(message, rows_as_of=newest)
                log_step(_LOG, "Table %s: none of the rows changed up to snapshot %d", self._store.name, newest)
        raise self._always_later()

    def _always_later(self) -> CommitConflictError:
        return CommitConflictError(
            f"Table {self._store.name}: other writers committed to the same buckets {_MAX_REDO} times in a row; "
            "nothing was written: run the batch again."
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
        self, rows: Rows, base: Snapshot | None, room: int, kind: CommitKind, names: AttemptNames
    ) -> TaskMessages:
        """Write the rows to level-0 files; nothing of it is visible yet.

        ``room`` sequence numbers are left out before the first one. An OVERWRITE replaces partitions, and with them the
        index of their keys, so buckets are assigned again; it has no changelog, as in Paimon.
        """
        store, options = self._store, self._store.options
        replaces = kind is CommitKind.OVERWRITE
        indexes = hash_indexes(self._store, None if replaces else base) if options.bucket == _DYNAMIC else None
        layout = FileLayout.of(store.schema, options)
        keeps_input = options.changelog_producer is ChangelogProducer.INPUT and not replaces
        job = Level0Job(
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
            names=names,
            environment=self._environment,
        )
        return self._writer.write(rows, job)
