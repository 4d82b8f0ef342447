"""Resolves snapshots by id, time or tag, and ranges of snapshots."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from lakelsm.arguments import wrong_argument
from lakelsm.errors import InvalidInputError, SnapshotNotFoundError
from lakelsm.format.snapshot import Snapshot
from lakelsm.moment import Moment
from lakelsm.plan.changelog_plan import ChangelogMode, ChangelogPlan, plan_changelog, plan_difference
from lakelsm.predicate.predicate import Predicate
from lakelsm.snapshots.table_store import TableStore

#: A snapshot id, the name of a tag, or a time.
Point = int | str | Moment


def state_at(store: TableStore, point: Point) -> tuple[TableStore, Snapshot]:
    """Return the snapshot of a point, and the table with the columns of that snapshot, as Paimon reads it."""
    snapshot = snapshot_at(store, point)
    if snapshot.schema_id != store.schema.id:
        store = store.with_schema(store.schemas.get(snapshot.schema_id))
    return store, snapshot


@dataclass(frozen=True)
class ChangelogRange:
    """The changes from the state ``before`` to the state ``after``.

    ``before`` is None if it has no rows or has expired, ``after`` if the table has no snapshot. ``first`` is the id of
    the snapshot with the first changes; ``tags``: two tags name the range. ``expired``: ``after`` is a long-lived
    changelog, whose state is not kept.
    """

    first: int
    before: Snapshot | None
    after: Snapshot | None
    tags: bool
    _: KW_ONLY
    expired: bool = False

    def plan(self, store: TableStore, mode: str, predicate: Predicate | None) -> ChangelogPlan:
        """Plan the read of the range. Raises SnapshotNotFoundError if snapshots that it needs have expired."""
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
                f"Table {store.name}: the state before snapshot {self.first} has expired. Start at {self.first} or later."
            )
        if self.expired:
            raise SnapshotNotFoundError(
                f"Table {store.name}: snapshot {self.after.id} has expired and only its changelog is kept, which cannot "
                "be compared. Use mode 'changelog'."
            )
        return plan_difference(store, self.before, self.after, predicate)


def changelog_range(store: TableStore, start: Point | None, end: Point | None) -> ChangelogRange:
    """Return the range of changes after ``start`` up to ``end``, as in Paimon's ``incremental-between``.

    Without ``start`` the range begins with the oldest retained snapshot. Numbers and times can also mean expired
    snapshots whose changelogs are kept; a time before all of them means the first. Raises SnapshotNotFoundError
    for snapshots that do not exist, and InvalidInputError if ``start`` is after ``end``.
    """
    for argument, point in (("start", start), ("end", end)):
        if isinstance(point, bool) or not isinstance(point, (int, str, Moment, type(None))):
            raise wrong_argument(argument, point, "a snapshot id, a tag name or a datetime")
    earliest, latest = store.snapshots.earliest_id(), store.snapshots.latest()
    if earliest is None or latest is None:
        return ChangelogRange(1, None, None, False)
    tags = isinstance(start, str) and isinstance(end, str)
    kept = None if end is None else _kept_changelog(store, end, earliest)
    after = kept or (latest if end is None else snapshot_at(store, end))
    first, before = (earliest, None) if start is None else _start(store, start, earliest)
    if after.id < first - 1:
        begin, last = f"{_shown(start)} (snapshot {first - 1})", f"{_shown(end)} (snapshot {after.id})"
        raise InvalidInputError(f"start: {begin} is after end {last}.")
    return ChangelogRange(first, before, after, tags, expired=kept is not None)


def _start(store: TableStore, start: Point, earliest: int) -> tuple[int, Snapshot | None]:
    """Return the id of the snapshot with the first changes, and the state before it (None if it is not kept)."""
    kept = _kept_changelog(store, start, earliest)
    if kept is not None:
        return kept.id + 1, None
    if isinstance(start, int) and start < earliest and store.changelogs.try_get(start + 1) is not None:
        return start + 1, None
    if isinstance(start, int) and start == earliest - 1:
        before = store.snapshots.try_get(start)
        return earliest, before
    if isinstance(start, Moment) and store.snapshots.get(earliest).time_millis > store.millis_of(start):
        return min([*store.changelogs.ids()[:1], earliest]), None
    before = snapshot_at(store, start)
    return before.id + 1, before


def _kept_changelog(store: TableStore, point: Point, earliest: int) -> Snapshot | None:
    """Return the long-lived changelog that a number or a time before the oldest snapshot means, if there is one."""
    if isinstance(point, int):
        return store.changelogs.try_get(point) if point < earliest and store.snapshots.try_get(point) is None else None
    if isinstance(point, str):
        return None
    oldest, moment = store.snapshots.try_get(earliest), store.millis_of(point)
    if oldest is None or oldest.time_millis <= moment:
        return None
    return store.changelogs.at_or_before(moment)


def snapshot_at(store: TableStore, point: Point) -> Snapshot:
    """Return the snapshot of an id or a tag, or the newest one at a time. Raises SnapshotNotFoundError if none exists."""
    if isinstance(point, int):
        return store.snapshots.get(point)
    if isinstance(point, str):
        return store.tags.get(point).snapshot
    return store.snapshots.at_or_before(store.millis_of(point))


def _shown(point: Point | None) -> str:
    return str(point) if isinstance(point, Moment) else repr(point)
