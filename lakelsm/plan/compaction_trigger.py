"""Which compaction follows a write: of the buckets that were written, or of the whole table."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.options import ChangelogProducer, LookupCompact
from lakelsm.plan.bucket_files import BucketId
from lakelsm.plan.compaction_plan import CompactionScope
from lakelsm.snapshots.table_store import TableStore

#: Snapshot property of a compaction that left every bucket of the table fully compacted. Persisted: do not change
FULL_COMPACTION_PROPERTY = "lakelsm.full-compaction"


def scope_after_write(store: TableStore, written: Iterable[BucketId]) -> CompactionScope:
    """The buckets ``written``, or all in full where ``full-compaction.delta-commits`` says so.

    ``changelog-producer`` = ``full-compaction`` compacts what was written in full each time unless that option is set.
    With ``lookup-compact`` = ``gentle`` what was written may wait on level 0; a compaction that is asked for takes it.
    """
    commits = store.options.full_compaction_delta_commits
    if store.options.changelog_producer is ChangelogProducer.FULL_COMPACTION and (commits or 1) == 1:
        return CompactionScope(full=True, only=frozenset(written))
    if commits is not None and commits_since_full_compaction(_history(store)) >= max(1, commits):
        return CompactionScope(full=True)
    gentle = store.options.lookup_compact is LookupCompact.GENTLE
    return CompactionScope(full=False, only=frozenset(written), gentle=gentle)


def commits_since_full_compaction(history: Iterable[Snapshot]) -> int:
    """Row-adding commits since the last full compaction. ``history`` comes newest first and may be cut by expiry.

    Of a compaction of another engine it is not known whether it was full: the next one may come earlier than it must.
    """
    since = takewhile(lambda snapshot: snapshot.own_properties.get(FULL_COMPACTION_PROPERTY) != "true", history)
    return sum(snapshot.commit_kind in (CommitKind.APPEND, CommitKind.OVERWRITE) for snapshot in since)


def _history(store: TableStore) -> Iterable[Snapshot]:
    """The snapshots from the newest one back to where one is gone."""
    for number in range(store.snapshots.latest_id() or 0, 0, -1):
        snapshot = store.snapshots.try_get(number)
        if snapshot is None:
            return
        yield snapshot
