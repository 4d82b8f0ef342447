"""Follows the changes of a table in this process: batches of the feed, polls with back-off, heartbeats."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from itertools import chain
from math import inf

import pyarrow as pa

from lakelsm.environment import SYSTEM, Environment
from lakelsm.errors import SnapshotNotFoundError
from lakelsm.runner.runner import Runner
from lakelsm.snapshots.table_store import TableStore
from lakelsm.stream.change_feed import ChangeFeed
from lakelsm.stream.followed_batch import FollowedBatch
from lakelsm.stream.stream_limits import StreamLimits
from lakelsm.stream.stream_offset import StreamOffset

#: Seconds between the first polls of an idle table. Each poll doubles them, up to the maximum.
_MIN_WAIT = 0.01
#: Default of the bytes of files that are planned together.
PLANNED_BYTES = 64 << 20
#: Bytes of Arrow rows in one batch, unless a single record batch of a task is larger.
_BATCH_BYTES = 16 << 20


@dataclass(frozen=True)
class FollowSettings:
    """How a table is followed. Intervals are seconds; None: no heartbeat, no timeout.

    ``schema`` is that of the rows, with the ``kind_column`` first.
    """

    schema: pa.Schema
    kind_column: str
    _: KW_ONLY
    positions: bool
    limits: StreamLimits
    max_wait: float
    heartbeat: float | None = None
    timeout: float | None = None


class TableFollower:
    """Yields the batches of a feed from an offset on."""

    def __init__(
        self,
        store: TableStore,
        feed: ChangeFeed,
        start: StreamOffset,
        settings: FollowSettings,
        *,
        runner: Runner,
        environment: Environment = SYSTEM,
    ) -> None:
        self._store = store
        self._feed = feed
        self._settings = settings
        self._runner = runner
        self._environment = environment
        self._read = self._done = start
        #: The number of batches that were yielded, and of those that are done.
        self._yielded = self._done_batches = 0

    def batches(self) -> Iterator[FollowedBatch]:
        """Yield batches until the timeout; without one, until the caller stops."""
        settings, now = self._settings, self._environment.monotonic
        wait, last_news, last_batch = _MIN_WAIT, now(), now()
        while True:
            before, start = self._yielded, self._read
            end = self._feed.next(self._read, settings.limits)
            if end != self._read:
                yield from self._until(end)
            if self._yielded > before:
                wait, last_news, last_batch = _MIN_WAIT, now(), now()
            if self._read != start:  # More may follow, also after files without a row for the caller.
                continue
            time = now()
            until_end = inf if settings.timeout is None else last_news + settings.timeout - time
            until_beat = inf if settings.heartbeat is None else last_batch + settings.heartbeat - time
            if until_end <= 0:
                return
            if until_beat <= 0:
                yield self._heartbeat()
                last_batch = now()
                continue
            self._environment.sleep(min(wait, until_end, until_beat))
            wait = min(2 * wait, settings.max_wait)

    def _until(self, end: StreamOffset) -> Iterator[FollowedBatch]:
        """Yield the batches up to an offset: the last one has it, the others that before them."""
        before = self._yielded
        try:
            waiting: pa.Table | None = None
            for rows in self._rows(end):
                if waiting is not None:
                    yield self._batch(waiting, self._read, end.snapshot_id)
                waiting = rows
        except SnapshotNotFoundError as error:
            if not (error.was_removed and self._feed.allows_data_loss):
                raise
            self._environment.sleep(_MIN_WAIT)  # An expiry deletes the snapshot: the next poll continues after it.
            return
        is_done = self._done_batches == before == self._yielded
        self._read = end
        if waiting is not None:
            yield self._batch(waiting, end, end.snapshot_id)
        elif is_done:  # Every batch is processed, and no later one records the progress.
            self._record(end, before)

    def _rows(self, end: StreamOffset) -> Iterator[pa.Table]:
        """Yield the rows up to an offset in tables of bounded size."""
        settings = self._settings
        parts = self._feed.plan(self._read, end)
        task = self._feed.task(parts, settings.schema, settings.kind_column, positions=settings.positions)
        found: list[pa.RecordBatch] = []
        batches = self._runner.batches(parts, task, settings.schema, self._store.paths)
        try:
            for piece in chain.from_iterable(map(self._pieces, batches)):
                if found and not self._fits(found, piece):
                    yield pa.Table.from_batches(found)
                    found = []
                found.append(piece)
        finally:
            if isinstance(batches, Generator):
                batches.close()  # No task runs after the caller has stopped.
        if found:
            yield pa.Table.from_batches(found)

    def _pieces(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        size = self._settings.limits.max_rows or len(batch)
        for start in range(0, len(batch), size):
            yield batch.slice(start, size)

    def _fits(self, found: Sequence[pa.RecordBatch], more: pa.RecordBatch) -> bool:
        """Return whether a batch for the caller may have some more rows."""
        together, limit = [*found, more], self._settings.limits.max_rows
        rows, size = sum(map(len, together)), sum(each.nbytes for each in together)
        return size <= _BATCH_BYTES and (limit is None or rows <= limit)

    def _heartbeat(self) -> FollowedBatch:
        """Return an empty batch, after the consumer's file is written again, so that it does not expire."""
        self._feed.record(self._done)
        return self._batch(self._settings.schema.empty_table(), self._read, self._read.snapshot_id)

    def _batch(self, rows: pa.Table, offset: StreamOffset, snapshot_id: int) -> FollowedBatch:
        self._yielded += 1
        return FollowedBatch(rows, offset, snapshot_id, partial(self._record, offset, self._yielded))

    def _record(self, offset: StreamOffset, number: int) -> None:
        """Record the offset of a batch, unless a later batch is done."""
        if number >= self._done_batches:
            self._feed.record(offset)
            self._done, self._done_batches = offset, number
