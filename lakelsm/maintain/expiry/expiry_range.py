"""The snapshots and long-lived changelogs that one run of expiry deletes: in both cases the oldest ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from lakelsm.errors import CommitConflictError
from lakelsm.format.snapshot import Snapshot
from lakelsm.maintain.expiry.retention import (
    UNLIMITED,
    Retention,
    changelog_retention,
    first_kept,
    outlives_snapshots,
)
from lakelsm.snapshots.consumer_store import ROLLBACK_CONSUMER
from lakelsm.snapshots.table_store import TableStore

#: After a commit, expiry waits until one in this many retained snapshots may expire.
_SHARE = 20


@dataclass(frozen=True, kw_only=True)
class ExpiryRange:
    """The choice of one run of expiry. All sequences ascend by id.

    ``snapshots`` expire, and ``first`` is the oldest snapshot that stays. Those in ``new_changelogs`` stay as long-lived
    changelogs. ``changelogs`` are the long-lived changelogs that expire, ``kept_changelogs`` the ids of the existing ones
    that stay. ``rollbacks`` are the consumers of the rollbacks that existed at the time of the choice.
    """

    snapshots: Sequence[Snapshot]
    first: Snapshot
    new_changelogs: Sequence[Snapshot] = ()
    changelogs: Sequence[Snapshot] = ()
    kept_changelogs: Sequence[int] = ()
    held_by: tuple[str, ...] = ()
    rollbacks: Collection[str] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing expires."""
        return not self.snapshots and not self.changelogs

    @property
    def first_changelog(self) -> int:
        """The id of the oldest changelog that stays. It may be that of a snapshot."""
        return min([*self.kept_changelogs[:1], *(snapshot.id for snapshot in self.new_changelogs[:1]), self.first.id])


def expiry_range(store: TableStore, retention: Retention, now: int) -> ExpiryRange | None:
    """Choose what expires by ``retention`` at a time (epoch millis). Return None for a table without snapshots.

    Raises CorruptTableError if a snapshot, consumer or changelog that the choice depends on cannot be read.
    """
    listed = store.snapshots.ids()
    earliest = store.snapshots.earliest_id()
    if not listed or earliest is None:
        return None
    # All ids in between: a listing may omit a snapshot that is committed during it and show a later one.
    ids = range(listed[0], listed[-1] + 1)
    consumers = store.consumers.all()
    rollbacks = {name: number for name, number in consumers.items() if name.startswith(ROLLBACK_CONSUMER)}
    holding = rollbacks if store.options.consumer_changelog_only else consumers
    # Everything below EARLIEST expires in any case: this completes an interrupted run.
    newest = _newest(store, ids)
    kept = first_kept(retention, earliest, newest, holding, _times(store))
    first = next(filter(None, (store.snapshots.try_get(number) for number in ids if number >= kept.first)), None)
    if first is None:
        raise CommitConflictError(
            f"Table {store.name}: other processes removed snapshots while this expiry chose what to expire. Nothing was "
            "deleted: run it again."
        )
    read = (store.snapshots.try_get(number) for number in ids if number < first.id)
    expired = [snapshot for snapshot in read if snapshot is not None]
    chosen = ExpiryRange(snapshots=expired, first=first, held_by=kept.held_by, rollbacks=rollbacks.keys())
    return _with_changelogs(store, chosen, newest, consumers, now)


def _newest(store: TableStore, ids: Sequence[int]) -> int:
    """Return the newest id of the table's history. Snapshots above it are based on snapshots that were rolled back."""
    for number in reversed(ids):
        snapshot = store.snapshots.try_get(number)
        if snapshot is not None and store.snapshots.is_linked(snapshot):
            return number
    return ids[0]


def is_due(store: TableStore, retention: Retention) -> bool:
    """Return whether enough snapshots are past ``retention`` for an expiry, whatever else may keep them.

    It reads a few files and lists nothing. The first call on a table lists once and writes EARLIEST, as Java does.
    An expiry reads all snapshots that stay, so it waits until a twentieth of the retained ones may expire (one if there
    are fewer than 40). The reads then are proportional to what expires, not to what stays.
    """
    earliest = store.snapshots.hinted_earliest_id()
    time = None if earliest is None else _times(store)(earliest)
    if earliest is None or time is None:  # There is no snapshot, or only the newest.
        return False
    if time >= retention.older_than and retention.max_count >= UNLIMITED:
        return False
    latest = store.snapshots.latest_id() or earliest
    due = min((latest - earliest + 1) // _SHARE or 1, retention.limit)
    last = earliest + due - 1
    return first_kept(replace(retention, limit=1), last, latest, {}, _times(store)).first > last


def _times(store: TableStore) -> Callable[[int], int | None]:
    def time_of(snapshot_id: int) -> int | None:
        following = store.snapshots.try_get(snapshot_id + 1)  # A snapshot's age counts from the next commit.
        return None if following is None else following.time_millis

    return time_of


def _with_changelogs(
    store: TableStore, snapshots: ExpiryRange, latest: int, consumers: Mapping[str, int], now: int
) -> ExpiryRange:
    ids, decoupled = store.changelogs.ids(), outlives_snapshots(store.options)
    if not ids and not decoupled:
        return snapshots
    known = {snapshot.id: snapshot.time_millis for snapshot in snapshots.snapshots}

    def time_of(snapshot_id: int) -> int | None:
        if snapshot_id not in known:
            changelog = store.changelogs.try_get(snapshot_id)
            return None if changelog is None else changelog.time_millis
        return known[snapshot_id]

    earliest = min([*ids[:1], *(snapshot.id for snapshot in snapshots.snapshots[:1]), snapshots.first.id])
    retention = changelog_retention(store.options, now)
    kept = min(first_kept(retention, earliest, latest, consumers, time_of).first, snapshots.first.id)
    found = (store.changelogs.try_get(snapshot_id) for snapshot_id in ids if snapshot_id < kept)
    return replace(
        snapshots,
        new_changelogs=[snapshot for snapshot in snapshots.snapshots if snapshot.id >= kept] if decoupled else (),
        changelogs=[changelog for changelog in found if changelog is not None],
        kept_changelogs=[snapshot_id for snapshot_id in ids if snapshot_id >= kept],
    )
