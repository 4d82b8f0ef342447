"""The consumer of a stream: its recorded progress, and the protection of a snapshot while its rows are loaded."""

from __future__ import annotations

from lakelsm.errors import StreamOffsetError
from lakelsm.maintain.versions.consumers import consumer_start
from lakelsm.snapshots.consumer_store import consumer_text
from lakelsm.snapshots.table_store import TableStore
from lakelsm.stream.stream_offset import StreamOffset

#: The suffix of the consumer that keeps the snapshot of a full load. Persisted: do not change
LOAD_SUFFIX = ".lakelsm-load"


class ConsumerProgress:
    """The consumer of a stream.

    While the stream loads a snapshot, a temporary consumer keeps it. The consumer itself is recorded after the load, so
    that a new stream of the same consumer loads again if the load did not end.
    """

    def __init__(self, store: TableStore, consumer_id: str) -> None:
        self.store = store
        self.consumer_id = consumer_id
        self.load_id = f"{consumer_id}{LOAD_SUFFIX}"
        #: Whether a temporary consumer may exist, also one of a stream that was killed before it deleted it.
        self._may_load = True

    def recorded(self) -> int | None:
        """Return the id of the snapshot that the consumer reads next, None for a new consumer.

        Raises InvalidInputError if a rollback removed snapshots that it has read.
        """
        before = consumer_start(self.store, self.consumer_id, None)
        return before + 1 if isinstance(before, int) else None

    def recorded_load(self) -> int | None:
        """Return the id of the snapshot that a load keeps which did not end; None without one."""
        return self.store.consumers.try_get(self.load_id)

    def begin(self, start: StreamOffset) -> None:
        """Record a new stream of the consumer, so that expiry keeps what it reads."""
        if start.loads:
            self._keep_load(start)
        else:
            self._write(self.consumer_id, start.next_snapshot_id)

    def record(self, end: StreamOffset) -> None:
        """Record what was read. Raises StreamOffsetError if the snapshot was rolled back since."""
        if end.loads:
            self._keep_load(end)
            return
        found = self.store.snapshots.try_get(end.snapshot_id)
        is_other = found is not None and found.fingerprint != end.fingerprint
        if is_other or (found is None and (self.store.snapshots.latest_id() or 0) < end.snapshot_id):
            raise StreamOffsetError(
                f"Table {self.store.name}: a rollback removed snapshot {end.snapshot_id}, up to which consumer "
                f"{self.consumer_id!r} has read. Its progress is not recorded: start a new stream."
            )
        self._write(self.consumer_id, end.next_snapshot_id)
        if self._may_load:  # After the record of the consumer: one of the two keeps what is unread.
            self.store.file_io.delete(self.store.paths.consumer(self.load_id))
            self._may_load = False

    def _keep_load(self, offset: StreamOffset) -> None:
        """Write the temporary consumer, never with a later snapshot than it has: another load may need that one."""
        self._may_load = True
        if offset.snapshot_id:
            kept = self.store.consumers.try_get(self.load_id)
            self._write(self.load_id, offset.snapshot_id if kept is None else min(kept, offset.snapshot_id))

    def _write(self, name: str, next_snapshot: int) -> None:
        self.store.file_io.write(self.store.paths.consumer(name), consumer_text(next_snapshot))
