"""Snapshots by id, time or tag, and ranges of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from lakelsm.errors import InvalidInputError, SnapshotNotFoundError
from lakelsm.format.snapshot import Snapshot
from lakelsm.plan.changelog_plan import ChangelogMode, ChangelogPlan, plan_changelog, plan_difference
from lakelsm.predicate.predicate import Predicate
from lakelsm.snapshots.table_store import TableStore

#: A snapshot id, the name of a tag, or a time.
Point = int | str | datetime


#: Epoch milliseconds of a time, or of its text as the caller's session reads it.
Millis = Callable[[str | datetime], int]


def chosen_snapshot(
    store: TableStore, snapshot_id: int | None, timestamp: str | datetime | None, tag: str | None, millis: Millis
) -> Snapshot | None:
    """The snapshot that at most one of the three names, else the newest; None for a table without any."""
    if sum(choice is not None for choice in (snapshot_id, timestamp, tag)) > 1:
        raise InvalidInputError("Give one of snapshot_id, timestamp and tag.")
    if snapshot_id is not None:
        return store.snapshots.get(snapshot_id)
    if timestamp is not None:
        return store.snapshots.at_or_before(millis(timestamp))
    if tag is not None:
        return store.tags.get(tag).snapshot
    return store.snapshots.latest()


def chosen_state(
    store: TableStore, snapshot_id: int | None, timestamp: str | datetime | None, tag: str | None, millis: Millis
) -> tuple[TableStore, Snapshot | None]:
    """The chosen snapshot and the table as a read of it has it: time travel has the columns of its time, as in Paimon."""
    snapshot = chosen_snapshot(store, snapshot_id, timestamp, tag, millis)
    travels = not (snapshot_id is None and timestamp is None and tag is None)
    if travels and snapshot is not None and snapshot.schema_id != store.schema.id:
        store = store.with_schema(store.schemas.get(snapshot.schema_id))
    return store, snapshot


@dataclass(frozen=True)
class ChangelogRange:
    """The changes between two states: ``before`` (None: no rows) and ``after`` (None: the table has no snapshot).

    ``first`` is the id of the snapshot whose changes are the first ones; ``tags``: two tags name the range.
    """

    first: int
    before: Snapshot | None
    after: Snapshot | None
    tags: bool

    def plan(self, store: TableStore, mode: str, predicate: Predicate | None) -> ChangelogPlan:
        """What a read of the range looks at. Raises SnapshotNotFoundError where snapshots that it needs have expired."""
        if mode == "auto":
            automatic = ChangelogMode.automatic(store.options.changelog_producer)
            chosen = ChangelogMode.DIFF if self.tags else automatic
        else:
            chosen = ChangelogMode.of(mode)
        if self.after is None:
            return ChangelogPlan()
        if chosen is not ChangelogMode.DIFF:
            return plan_changelog(store, self.first - 1, self.after.id, chosen, predicate)
        if self.before is None and self.first > 1:
            raise SnapshotNotFoundError(
                f"Table {store.name}: the state before snapshot {self.first} has expired; start at {self.first} or later"
            )
        return plan_difference(store, self.before, self.after, predicate)


def changelog_range(
    store: TableStore, start: Point | None, end: Point | None, millis: Millis
) -> ChangelogRange:
    """The range of changes after ``start`` up to ``end``, both as Paimon's ``incremental-between`` has them.

    Without ``start``, or with a time before all snapshots, it begins with the oldest one that is retained. Raises
    SnapshotNotFoundError for snapshots that do not exist and InvalidInputError where ``start`` is after ``end``.
    """
    for point in (start, end):
        if isinstance(point, bool) or not isinstance(point, (int, str, datetime, type(None))):
            raise InvalidInputError(f"{point!r} is no snapshot id, tag name or datetime.")
    earliest, latest = store.snapshots.earliest_id(), store.snapshots.latest()
    if earliest is None or latest is None:
        return ChangelogRange(1, None, None, False)
    tags = isinstance(start, str) and isinstance(end, str)
    after = latest if end is None else _at(store, end, millis)
    before = None if start is None else _start(store, start, earliest, millis)
    first = earliest if before is None else before.id + 1
    if after.id < first - 1:
        raise InvalidInputError(f"start {start!r} (snapshot {first - 1}) is after end {end!r} (snapshot {after.id}).")
    return ChangelogRange(first, before, after, tags)


def _start(store: TableStore, start: Point, earliest: int, millis: Millis) -> Snapshot | None:
    """The snapshot that changes begin after; None where it may be gone, as the first one after it is the earliest."""
    if isinstance(start, int) and start == earliest - 1:
        return store.snapshots.try_get(start)
    if isinstance(start, datetime) and store.snapshots.get(earliest).time_millis > millis(start):
        return None
    return _at(store, start, millis)


def _at(store: TableStore, point: Point, millis: Millis) -> Snapshot:
    if isinstance(point, int):
        return store.snapshots.get(point)
    if isinstance(point, str):
        return store.tags.get(point).snapshot
    return store.snapshots.at_or_before(millis(point))
