"""What one run of expiry takes: snapshots from the oldest on, and long-lived changelogs from the oldest on."""

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

#: After a commit an expiry waits until so large a share of what is retained may go: one in so many.
_SHARE = 20


@dataclass(frozen=True, kw_only=True)
class ExpiryRange:
    """All ascend by id. ``snapshots`` go, and ``first`` is the oldest that stays.

    Of ``snapshots`` those of ``turned`` stay as long-lived changelogs. ``changelogs`` are long-lived ones that go, and
    ``kept_changelogs`` the ids of those that stay, beside ``turned``.
    ``rollbacks`` are the consumers of rollbacks that were known.
    """

    snapshots: Sequence[Snapshot]
    first: Snapshot
    turned: Sequence[Snapshot] = ()
    changelogs: Sequence[Snapshot] = ()
    kept_changelogs: Sequence[int] = ()
    held_by: tuple[str, ...] = ()
    rollbacks: Collection[str] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing goes."""
        return not self.snapshots and not self.changelogs

    @property
    def first_changelog(self) -> int:
        """The id of the oldest changelog that stays, be it a snapshot's."""
        return min([*self.kept_changelogs[:1], *(snapshot.id for snapshot in self.turned[:1]), self.first.id])


def expiry_range(store: TableStore, retention: Retention, now: int) -> ExpiryRange | None:
    """What goes by ``retention`` at a time (epoch millis); None for a table without snapshots.

    Raises CorruptTableError where a snapshot, consumer or changelog that decides cannot be read.
    """
    listed = store.snapshots.ids()
    begun = store.snapshots.earliest_id()
    if not listed or begun is None:
        return None
    # All between: a listing may leave out what was committed while it was made, and show what came after that.
    ids = range(listed[0], listed[-1] + 1)
    consumers = store.consumers.all()
    rollbacks = {name: number for name, number in consumers.items() if name.startswith(ROLLBACK_CONSUMER)}
    holding = rollbacks if store.options.consumer_changelog_only else consumers
    # What an earlier run began, everything below EARLIEST, is completed in any case.
    newest = _newest(store, ids)
    kept = first_kept(retention, begun, newest, holding, _times(store))
    first = next(filter(None, (store.snapshots.try_get(number) for number in ids if number >= kept.first)), None)
    if first is None:
        raise CommitConflictError(
            f"Table {store.name}: others removed snapshots while it was worked out which expire. Nothing was deleted: "
            "run it again."
        )
    read = (store.snapshots.try_get(number) for number in ids if number < first.id)
    gone = [snapshot for snapshot in read if snapshot is not None]
    taken = ExpiryRange(snapshots=gone, first=first, held_by=kept.held_by, rollbacks=rollbacks.keys())
    return _with_changelogs(store, taken, newest, consumers, now)


def _newest(store: TableStore, ids: Sequence[int]) -> int:
    """The newest of the table's history: those above it are based on snapshots that were rolled back."""
    for number in reversed(ids):
        snapshot = store.snapshots.try_get(number)
        if snapshot is not None and store.snapshots.is_linked(snapshot):
            return number
    return ids[0]


def is_due(store: TableStore, retention: Retention) -> bool:
    """Whether enough snapshots are past ``retention`` for an expiry, independent of what keeps them, by a few
    files, without a listing. The first time it lists, and writes EARLIEST, as Java does.

    An expiry reads all snapshots that stay, so it waits for a twentieth of what is retained (for one, of less than 40):
    what it reads follows from what expires then, and not from how much stays.
    """
    earliest = store.snapshots.hinted_earliest_id()
    time = None if earliest is None else _times(store)(earliest)
    if earliest is None or time is None:  # There is none, or only the newest.
        return False
    if time >= retention.older_than and retention.max_count >= UNLIMITED:
        return False
    latest = store.snapshots.latest_id() or earliest
    worth = min((latest - earliest + 1) // _SHARE or 1, retention.limit)
    last = earliest + worth - 1
    return first_kept(replace(retention, limit=1), last, latest, {}, _times(store)).first > last


def _times(store: TableStore) -> Callable[[int], int | None]:
    def time_of(snapshot_id: int) -> int | None:
        following = store.snapshots.try_get(snapshot_id + 1)  # A snapshot is new for as long as the next one is.
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
        turned=[snapshot for snapshot in snapshots.snapshots if snapshot.id >= kept] if decoupled else (),
        changelogs=[changelog for changelog in found if changelog is not None],
        kept_changelogs=[snapshot_id for snapshot_id in ids if snapshot_id >= kept],
    )
