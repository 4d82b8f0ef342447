"""The feed of a table's changes: plans the batches of a stream from metadata alone (docs/design/streams.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from lakelsm.environment import SYSTEM, Environment
from lakelsm.errors import StreamOffsetError, StreamSchemaChangedError
from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.plan.bucket_files import BucketId, partition_filter
from lakelsm.plan.fallback_branch import refuse_fallback
from lakelsm.predicate.predicate import Predicate
from lakelsm.runner.process_limits import usable_cores
from lakelsm.snapshots.table_store import TableStore
from lakelsm.stream.batch_groups import BatchSize, packed_parts
from lakelsm.stream.consumer_progress import ConsumerProgress
from lakelsm.stream.feed_history import FeedHistory
from lakelsm.stream.feed_part import FeedPart
from lakelsm.stream.feed_settings import CURRENT_STATES, FeedSettings
from lakelsm.stream.feed_start import before_changes, bounded_end, started
from lakelsm.stream.feed_task import feed_task
from lakelsm.stream.snapshot_files import (
    FileGroup,
    SnapshotFiles,
    changed_files,
    loaded_files,
    overwritten_files,
)
from lakelsm.stream.stream_limits import UNLIMITED, StreamLimits
from lakelsm.stream.stream_offset import StreamOffset, StreamPhase

#: After this number of snapshots without changes, a batch without rows records the progress, so that neither the offset
#: nor a consumer stays at a snapshot that expires.
_MAX_EMPTY = 8


class ChangeFeed:
    """The feed of one stream. It keeps plans between calls; an object is for one thread.

    ``store`` has the columns of the stream. ``predicate`` leaves out partitions and rows.
    """

    def __init__(
        self,
        store: TableStore,
        settings: FeedSettings,
        predicate: Predicate | None = None,
        *,
        environment: Environment = SYSTEM,
    ) -> None:
        refuse_fallback(store, "a stream")
        self.store = store
        self._settings = settings
        self._predicate = predicate
        self._environment = environment
        self._history = FeedHistory(store, fails_on_data_loss=settings.fails_on_data_loss)
        name = settings.consumer_id
        self._consumer = None if name is None else ConsumerProgress(store.for_changes(), name)
        self._end = bounded_end(store, self._history, settings)
        self._keep = partition_filter(store, predicate)
        self._kept: dict[bytes, bool] = {}
        self._loaded: tuple[Snapshot, SnapshotFiles] | None = None
        self._changed: dict[int, tuple[Snapshot, SnapshotFiles]] = {}
        self._last_batch: float | None = None

    @property
    def allows_data_loss(self) -> bool:
        """Whether the stream continues if snapshots that it has not read have expired."""
        return not self._settings.fails_on_data_loss

    @property
    def end(self) -> StreamOffset | None:
        """The last offset of a bounded stream (mode incremental); None for a stream without end."""
        return self._end

    def first(self) -> StreamOffset:
        """Return where a new reader starts, by its consumer or the scan mode, and record a new consumer.

        Raises SnapshotNotFoundError if the start has expired or does not exist.
        """
        settings, consumer = self._settings, self._consumer
        recorded = None if consumer is None or settings.ignores_progress else consumer.recorded()
        if recorded is not None:
            return before_changes(self.store, self._history, recorded, settings.fails_on_data_loss)
        start = self._interrupted_load() or started(self.store, self._history, settings)
        if consumer is not None:
            consumer.begin(start)
        return start

    def _interrupted_load(self) -> StreamOffset | None:
        """Return the start of a load of the consumer that did not end, if its snapshot is kept.

        A reader may have rows of it already: those that were deleted since are among the later changes.
        """
        settings, consumer = self._settings, self._consumer
        if consumer is None or settings.ignores_progress or settings.mode not in CURRENT_STATES:
            return None
        number = consumer.recorded_load()
        kept = None if number is None else self.store.snapshots.try_get(number)
        return None if kept is None or self.store.snapshots.is_expiring(kept.id) else self._history.load(kept)

    def resume(self, offset: StreamOffset) -> StreamOffset:
        """Return an offset from which a reader continues, and record it for the consumer. Raises as `next`."""
        self._history.check(offset)
        if self._consumer is not None:
            self._consumer.begin(offset)
        return offset

    def newest(self) -> StreamOffset:
        """Return the end of everything that is committed now."""
        newest = self._history.newest()
        found = self._history.before_all(StreamPhase.CHANGES) if newest is None else self._history.after(newest)
        return found if self._end is None or found.snapshot_id <= self._end.snapshot_id else self._end

    def next(
        self, start: StreamOffset, limits: StreamLimits = UNLIMITED, until: StreamOffset | None = None
    ) -> StreamOffset:
        """Return the end of the batch that follows ``start``; ``start`` if there is nothing, or not enough, to read.

        A batch has rows of the full phase or changes, not both. It ends at ``until`` at the latest. Raises
        StreamOffsetError for an offset of another table and after a rollback, StreamSchemaChangedError if the columns
        changed, SnapshotNotFoundError if snapshots that it needs have expired (unless data loss is allowed).
        """
        self._history.check(start)
        bounds = [bound for bound in (until, self._end) if bound is not None]
        last = min((bound.snapshot_id for bound in bounds), default=None)
        if start.loads:
            end = self._next_rows(start, limits, last)
        else:
            end = self._next_changes(start, limits, last, waits=until is None)
        if end != start:
            self._last_batch = self._environment.monotonic()
        return end

    def plan(self, start: StreamOffset, end: StreamOffset) -> list[FeedPart]:
        """Return the parts of the batch from ``start`` to ``end``, the same ones each time. Raises as `next`."""
        self._history.check(start)
        self._history.check(end)
        if end.snapshot_id < start.snapshot_id:
            raise StreamOffsetError(
                f"Table {self.store.name}: the offset of snapshot {start.snapshot_id} is after its end, the offset of "
                f"snapshot {end.snapshot_id}. Start a new stream, with a new checkpoint."
            )
        rows = self._planned_rows(start, end) if start.loads or end.loads else []
        changes = self._planned_changes(start, end) if end.phase is StreamPhase.CHANGES else []
        return packed_parts(self.store.options, rows, changes, usable_cores())

    def task(
        self,
        parts: Sequence[FeedPart],
        schema: pa.Schema,
        kind_column: str | None = None,
        *,
        positions: bool = False,
    ) -> Callable[[FeedPart], Iterator[pa.RecordBatch]]:
        """Return the picklable task that yields the rows of one of the ``parts``, with the columns of ``schema``.

        Columns of the table are found by name and cast to the types of the schema; they are nullable. ``kind_column``
        is the first column of the schema, with the row kind (None: only the rows of kinds +I and +U are yielded).
        ``positions``: the schema ends with _SNAPSHOT_ID and _SEQUENCE_NUMBER. Batches are of bounded size.
        """
        return feed_task(
            self.store, parts, schema, kind_column=kind_column, positions=positions, predicate=self._predicate
        )

    def record(self, end: StreamOffset) -> None:
        """Record that the consumer has read everything up to ``end``. Without a consumer nothing is recorded.

        Raises StreamOffsetError if a rollback removed the snapshot since.
        """
        if self._consumer is not None and end.snapshot_id:
            self._consumer.record(end)

    # -- the full phase ---------------------------------------------------------------------------------------------

    def _next_rows(self, start: StreamOffset, limits: StreamLimits, last: int | None) -> StreamOffset:
        again = "its rows are loaded again from the newest snapshot"
        snapshot = self._history.loaded(start, again) if start.snapshot_id else None
        if snapshot is None:  # The first snapshot of the table; or that of the load has expired, and it is repeated.
            snapshot = self._history.newest()
            if snapshot is None or (last is not None and last < snapshot.id):
                return start
            self._history.check_columns(snapshot)
            start = self._history.load(snapshot)
            if self._consumer is not None:
                self._consumer.begin(start)
        found = self._rows(snapshot, start)
        size, position = BatchSize(limits), start.position or 0
        for at, group in self._groups_from(found, position):
            if not size.admit(group, self._reads(group.bucket)):
                return start.at(at, found.count)
        return start.at(found.count, found.count)

    def _planned_rows(self, start: StreamOffset, end: StreamOffset) -> list[FileGroup]:
        """Return the groups of the full phase between two offsets, of which one is within it."""
        if end.phase is StreamPhase.FULL:  # Another snapshot than that of ``start`` if the load was repeated.
            first = start.position or 0 if start.snapshot_id == end.snapshot_id else 0
            offset, stop = end, end.position
        elif start.snapshot_id:
            offset, first, stop = start, start.position or 0, None
        else:
            offset, first, stop = replace(end, phase=StreamPhase.FULL), 0, None
        snapshot = self._history.loaded(offset, "a batch that runs again lacks its rows")
        return [] if snapshot is None else self._between(self._rows(snapshot, offset), first, stop)

    def _rows(self, snapshot: Snapshot, offset: StreamOffset) -> SnapshotFiles:
        """Return the files of the full phase. They are kept, because each batch of a load needs them."""
        if self._loaded is None or not self._loaded[0].matches(snapshot):
            self._loaded = snapshot, loaded_files(self.store, snapshot)
        found = self._loaded[1]
        if offset.files is not None and (offset.files != found.count or offset.position not in found.positions):
            raise StreamOffsetError(
                f"Table {self.store.name}: the offset is within {offset.files} files of snapshot {snapshot.id}, of which "
                f"it would now read {found.count}, because options of the table changed. Start a new stream."
            )
        return found

    # -- changes ----------------------------------------------------------------------------------------------------

    def _next_changes(
        self, start: StreamOffset, limits: StreamLimits, last: int | None, *, waits: bool
    ) -> StreamOffset:
        size, end, empty = BatchSize(limits), start, 0
        self._changed = {number: kept for number, kept in self._changed.items() if number > start.snapshot_id - 1}
        for snapshot, position in self._history.following(start):
            if (last is not None and snapshot.id > last) or self._holds_back(snapshot):
                break
            try:
                self._history.check_columns(snapshot)
            except StreamSchemaChangedError:
                if not size.files:
                    raise
                break
            found = self._changes(snapshot, start)
            position_after = self._admitted(size, found, position)
            if position_after is not None:
                if self._settings.divides_snapshots and position_after > position:
                    end = self._history.before(snapshot).at(position_after, found.count)
                break
            end, empty = self._history.after(snapshot), empty + 1
        if not size.files:
            return end if empty >= _MAX_EMPTY or end.snapshot_id > start.snapshot_id + empty else start
        delay = limits.max_delay
        if waits and not size.is_full and delay is not None and size.rows < (limits.min_rows or 0):
            last_batch = self._last_batch
            if last_batch is not None and self._environment.monotonic() - last_batch < delay:
                return start
        return end

    def _holds_back(self, snapshot: Snapshot) -> bool:
        """Return whether the changes of a snapshot are not read, because it is too new or has too late a watermark."""
        delay, bound = self._settings.delay, self._settings.max_watermark
        if delay is not None and snapshot.time_millis > self._environment.clock() - delay:
            return True
        return bound is not None and snapshot.watermark is not None and snapshot.watermark > bound

    def _admitted(self, size: BatchSize, found: SnapshotFiles, position: int) -> int | None:
        """Admit the groups of a snapshot from a position; return the position of the first one that is too much."""
        groups = list(self._groups_from(found, position))
        if self._settings.divides_snapshots:
            for at, group in groups:
                if not size.admit(group, self._reads(group.bucket)):
                    return at
            return None
        return None if size.admit_all([group for _, group in groups if self._reads(group.bucket)]) else position

    def _planned_changes(self, start: StreamOffset, end: StreamOffset) -> list[FileGroup]:
        if start.loads:  # Before the first snapshot: all of them are part of the rows that are loaded.
            start = replace(start, position=None, files=None) if start.snapshot_id else end
        groups: list[FileGroup] = []
        reached = start.snapshot_id
        for snapshot, position in self._history.following(start) if start != end else ():
            if snapshot.id > end.snapshot_id:
                break
            self._history.check_columns(snapshot)
            stop = end.position if snapshot.id == end.snapshot_id else None
            groups += self._between(self._changes(snapshot, start if position else end), position, stop)
            reached = snapshot.id
            if reached == end.snapshot_id:
                break
        if reached < end.snapshot_id and self._settings.fails_on_data_loss:
            raise self._history.rolled_back(end)
        return groups

    def _changes(self, snapshot: Snapshot, offset: StreamOffset) -> SnapshotFiles:
        known = self._changed.get(snapshot.id)
        if known is None or not known[0].matches(snapshot):
            known = self._changed[snapshot.id] = snapshot, self._files_of(snapshot)
        is_within = offset.snapshot_id == snapshot.id and offset.files is not None
        if is_within and (offset.files != known[1].count or offset.position not in known[1].positions):
            raise StreamOffsetError(
                f"Table {self.store.name}: the offset is within {offset.files} files of the changes of snapshot "
                f"{snapshot.id}, which has {known[1].count}. Start a new stream, with a new checkpoint."
            )
        return known[1]

    def _files_of(self, snapshot: Snapshot) -> SnapshotFiles:
        if snapshot.commit_kind is not CommitKind.OVERWRITE:
            return changed_files(self.store, snapshot, self._history.producer_of(snapshot))
        if not self._settings.reads_overwrites:
            return SnapshotFiles(())
        before = None if snapshot.id == 1 else self._history.state_before(snapshot)
        return overwritten_files(self.store, before, snapshot)

    # -- groups -----------------------------------------------------------------------------------------------------

    def _groups_from(self, found: SnapshotFiles, position: int) -> Iterator[tuple[int, FileGroup]]:
        """Yield the groups from a position on, with their positions."""
        for at, group in zip(found.positions, found.groups):
            if at >= position:
                yield at, group

    def _between(self, found: SnapshotFiles, first: int, stop: int | None) -> list[FileGroup]:
        groups = self._groups_from(found, first)
        return [group for at, group in groups if (stop is None or at < stop) and self._reads(group.bucket)]

    def _reads(self, bucket: BucketId) -> bool:
        """Return whether rows of a bucket's partition may match the predicate."""
        if self._keep is None:
            return True
        partition = bucket[0]
        if partition not in self._kept:
            self._kept[partition] = bool(self._keep([partition])[0])
        return self._kept[partition]
