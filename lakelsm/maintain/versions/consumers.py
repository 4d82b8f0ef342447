"""Consumers: named readers, each with the snapshot that it reads next. Expiry keeps the snapshots they have not read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from lakelsm.environment import SYSTEM, Environment
from lakelsm.epoch_time import bound_time, utc_time
from lakelsm.errors import CommitConflictError, InvalidInputError, SnapshotNotFoundError
from lakelsm.format.file_names import consumer_of
from lakelsm.format.snapshot import Snapshot
from lakelsm.moment import Age
from lakelsm.plan.time_travel import Point
from lakelsm.results import ConsumerExpiryResult, ConsumerInfo
from lakelsm.snapshots.consumer_store import ROLLBACK_CONSUMER, consumer_text
from lakelsm.snapshots.table_store import TableStore


def consumer_infos(store: TableStore, environment: Environment = SYSTEM) -> list[ConsumerInfo]:
    """Return all consumers of the branch, sorted by name."""
    recorded, newest, now = _recorded(store), store.snapshots.latest_id() or 0, environment.clock()
    return [
        ConsumerInfo(
            name=name,
            next_snapshot_id=next_snapshot,
            recorded_at=utc_time(recorded[name], store.paths.consumer(name)) if name in recorded else None,
            lag_snapshots=max(newest + 1 - next_snapshot, 0),
            lag_seconds=_lag_seconds(store, next_snapshot, now),
        )
        for name, next_snapshot in store.consumers.all().items()
    ]


def _lag_seconds(store: TableStore, next_snapshot: int, now: int) -> float:
    """Return the age, in seconds, of the oldest snapshot or long-lived changelog that a consumer has not read."""
    for number in sorted({*store.changelogs.ids(), *store.snapshots.ids()}):
        if number >= next_snapshot:
            found = store.snapshots.try_get(number) or store.changelogs.try_get(number)
            if found is not None:  # Otherwise it has expired since it was listed.
                return max(now - found.time_millis, 0) / 1000
    return 0.0


def record_consumer(store: TableStore, consumer_id: str, next_snapshot: int, *, dry_run: bool = False) -> None:
    """Record which snapshot a consumer reads next. It may be an older one, or the snapshot of the next commit.

    Raises SnapshotNotFoundError if the snapshot has expired, InvalidInputError if it is further in the future.
    """
    path = store.paths.consumer(consumer_id)
    newest = store.snapshots.latest_id() or 0
    if next_snapshot > newest + 1:
        raise InvalidInputError(
            f"next_snapshot: consumer {consumer_id!r} would skip snapshots before {next_snapshot}. The newest snapshot "
            f"of table {store.name} is {newest}: use at most {newest + 1}."
        )
    oldest = min([newest + 1, *store.snapshots.ids()[:1], *store.changelogs.ids()[:1]])
    if next_snapshot < oldest:
        raise SnapshotNotFoundError(
            f"Table {store.name}: snapshot {next_snapshot} has expired, so consumer {consumer_id!r} cannot read it. Use "
            f"{oldest} or later."
        )
    if not dry_run:
        store.file_io.write(path, consumer_text(next_snapshot))


def delete_consumer(store: TableStore, consumer_id: str, *, dry_run: bool = False) -> None:
    """Delete a consumer. Raises InvalidInputError, with a list of the consumers, if it does not exist."""
    names = store.consumers.names()
    if consumer_id not in names:
        raise InvalidInputError(
            f"Table {store.name}: consumer {consumer_id!r} does not exist. Consumers: {', '.join(names) or 'none'}."
        )
    if not dry_run:
        store.file_io.delete(store.paths.consumer(consumer_id))


def expire_consumers(store: TableStore, before: int, *, dry_run: bool = False) -> ConsumerExpiryResult:
    """Delete the consumers whose progress was last recorded before a time (epoch millis)."""
    expired = tuple(sorted(name for name, recorded in _recorded(store).items() if recorded < before))
    for name in () if dry_run else expired:
        store.file_io.delete(store.paths.consumer(name))
    return ConsumerExpiryResult(table=store.name, dry_run=dry_run, older_than=bound_time(before), consumers=expired)


def consumer_bound(store: TableStore, older_than: Age | None, now: int) -> int:
    """Return the time, in epoch millis, before which consumers expire: by the age, or by the option without an age.

    Raises InvalidInputError if neither is given.
    """
    if older_than is not None:
        return older_than.bound(now, store.text_zone)
    if store.options.consumer_expiration_time is None:
        raise InvalidInputError(
            f"Table {store.name}: option 'consumer.expiration-time' is not set. Give older_than, or set the option."
        )
    return now - store.options.consumer_expiration_time


def expire_after_commit(store: TableStore, environment: Environment) -> None:
    """Delete the consumers that are past ``consumer.expiration-time``, if it is set."""
    kept = store.options.consumer_expiration_time
    if kept is not None:
        expire_consumers(store, environment.clock() - kept)


def reset_consumers_beyond(store: TableStore, next_snapshot: int) -> None:
    """Set the consumers beyond a snapshot to the one after it, because the later snapshots were rolled back.

    Also delete the consumers of killed rollbacks to later snapshots.
    """
    for name, recorded in store.consumers.all().items():
        if name.startswith(ROLLBACK_CONSUMER) and recorded >= next_snapshot:
            store.file_io.delete(store.paths.consumer(name))
        elif recorded > next_snapshot:
            store.file_io.write(store.paths.consumer(name), consumer_text(next_snapshot))


@dataclass(frozen=True)
class ConsumedChanges:
    """The changes that a consumer reads, up to and including the snapshot ``last``."""

    store: TableStore
    consumer_id: str
    last: Snapshot

    @staticmethod
    def begin(store: TableStore, consumer_id: str, first: int, last: Snapshot) -> ConsumedChanges:
        """Start a read of a consumer. A new consumer is recorded, so that expiry keeps what it reads."""
        if store.consumers.try_get(consumer_id) is None:
            store.file_io.write(store.paths.consumer(consumer_id), consumer_text(first))
        return ConsumedChanges(store, consumer_id, last)

    def of(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches, then record that the consumer has read them.

        Raises CommitConflictError if the snapshots were rolled back since.
        """
        yield from batches
        store, last = self.store, self.last
        now = store.snapshots.try_get(last.id)
        if not last.matches(now) and (now is not None or (store.snapshots.latest_id() or 0) < last.id):
            raise CommitConflictError(
                f"Table {store.name}: a rollback removed snapshot {last.id}, to which consumer {self.consumer_id!r} was "
                "reading changes. Its progress is not recorded: read again from the current snapshots."
            )
        store.file_io.write(store.paths.consumer(self.consumer_id), consumer_text(last.id + 1))


def consumer_start(store: TableStore, consumer_id: str, start: Point | None) -> Point | None:
    """Return the snapshot after which a consumer's changes begin: the recorded one, or ``start`` without a record.

    Raises InvalidInputError if its next snapshot is beyond that of the next commit, because of a rollback.
    """
    next_snapshot = store.consumers.try_get(consumer_id)
    if next_snapshot is None:
        return start
    newest = store.snapshots.latest_id() or 0
    if next_snapshot > newest + 1:
        raise InvalidInputError(
            f"Table {store.name}: consumer {consumer_id!r} reads snapshot {next_snapshot} next, but after a rollback the "
            f"newest is {newest}. Record the snapshot that it reads next "
            "(table.consumers.record), or delete it."
        )
    return next_snapshot - 1


def _recorded(store: TableStore) -> dict[str, int]:
    """Return the time at which each consumer's file was written, in epoch millis."""
    entries = store.file_io.entries(store.paths.consumer_dir)
    found = ((consumer_of(entry.name), entry.modified) for entry in entries)
    return {name: modified for name, modified in found if name}
