"""Where a new stream starts and ends, by its scan mode."""

from __future__ import annotations

from lakelsm.errors import InvalidInputError, SnapshotNotFoundError
from lakelsm.format.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from lakelsm.moment import Moment
from lakelsm.options import ChangelogProducer, ScanMode
from lakelsm.plan.time_travel import Point, changelog_range
from lakelsm.snapshots.table_store import TableStore
from lakelsm.stream.feed_history import FeedHistory
from lakelsm.stream.feed_settings import FeedSettings
from lakelsm.stream.stream_offset import StreamOffset, StreamPhase


def started(store: TableStore, history: FeedHistory, settings: FeedSettings) -> StreamOffset:
    """Return the offset at which a new stream starts. Raises SnapshotNotFoundError if it has expired or is not there."""
    newest = history.newest()
    mode, point = settings.mode, settings.point
    if mode is ScanMode.INCREMENTAL:
        between = changelog_range(store, point, settings.end)
        return before_changes(store, history, between.first, settings.fails_on_data_loss)
    if mode in (ScanMode.FROM_SNAPSHOT, ScanMode.FROM_SNAPSHOT_FULL):
        number = _number(store, point)
        if mode is ScanMode.FROM_SNAPSHOT:
            return before_changes(store, history, number, settings.fails_on_data_loss)
        return history.load(_state(store, number, settings.fails_on_data_loss))
    if newest is None:
        return history.before_all(StreamPhase.FULL if settings.loads else StreamPhase.CHANGES)
    if mode is ScanMode.FROM_TIMESTAMP:
        assert isinstance(point, Moment)
        return before_changes(store, history, _first_since(store, point, newest), fails=True)
    if mode is ScanMode.LATEST:
        return history.after(newest)
    if mode is ScanMode.COMPACTED_FULL:
        newest = _newest_compacted(store, newest)
    return history.load(newest)


def bounded_end(store: TableStore, history: FeedHistory, settings: FeedSettings) -> StreamOffset | None:
    """Return the last offset of a stream of the mode incremental, None for other modes."""
    if settings.mode is not ScanMode.INCREMENTAL:
        return None
    after = changelog_range(store, settings.point, settings.end).after
    return history.before_all(StreamPhase.CHANGES) if after is None else history.after(after)


def before_changes(store: TableStore, history: FeedHistory, number: int, fails: bool) -> StreamOffset:
    """Return the offset before the changes of a snapshot, which may be that of the next commit.

    Raises SnapshotNotFoundError if it has expired, unless ``fails`` is false: then the stream starts at the oldest one.
    """
    newest = history.newest()
    last = newest.id if newest else 0
    if number > last:
        if number > last + 1:
            raise SnapshotNotFoundError(
                f"Table {store.name}: the stream cannot start at snapshot {number}, because the newest one is {last}. "
                f"Start at {last + 1} or an earlier one."
            )
        return history.before_all(StreamPhase.CHANGES) if newest is None else history.after(newest)
    return history.before(history.oldest_from(number, fails))


def _state(store: TableStore, number: int, fails: bool) -> Snapshot:
    ids = store.snapshots.ids()
    return store.snapshots.get(number if fails or not ids else max(number, ids[0]))


def _number(store: TableStore, point: Point | None) -> int:
    if isinstance(point, int):
        return point
    if isinstance(point, str):
        return store.tags.get(point).snapshot.id
    raise InvalidInputError("option 'scan.mode': the snapshot from which the stream starts is missing. Set it.")


def _first_since(store: TableStore, moment: Moment, newest: Snapshot) -> int:
    """Return the id of the first snapshot, or kept changelog, that was committed at a time or later."""
    millis = store.millis_of(moment)
    ids = store.snapshots.ids()
    oldest = store.snapshots.try_get(ids[0]) if ids else None
    if oldest is not None and oldest.time_millis < millis:
        return store.snapshots.at_or_before(millis - 1).id + 1
    kept = store.changelogs.at_or_before(millis - 1)
    if kept is not None:
        return kept.id + 1
    return min([*store.changelogs.ids()[:1], *ids[:1], newest.id])


def _newest_compacted(store: TableStore, newest: Snapshot) -> Snapshot:
    """Return the newest snapshot of a compaction, by Paimon's rule; without one, the newest snapshot."""
    options = store.options
    commits = options.full_compaction_delta_commits
    full = options.changelog_producer is ChangelogProducer.FULL_COMPACTION or commits is not None
    for number in reversed(store.snapshots.ids()):
        found = store.snapshots.try_get(number) if number <= newest.id else None
        if found is None or found.commit_kind is not CommitKind.COMPACT:
            continue
        identifier = found.commit_identifier
        if not full or identifier == BATCH_COMMIT_IDENTIFIER or identifier % (commits or 1) == 0:
            return found
    return newest
