"""The end of a write: the compaction that follows it, and the result of both."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from pyspark.sql import SparkSession

from lakelsm.compact.compactor import FULL_COMPACTION_PROPERTY, Compactor, joined
from lakelsm.errors import told_of
from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.lsm.compact_trigger import CommitFact, full_compaction_due
from lakelsm.options import ChangelogProducer
from lakelsm.plan.compaction_plan import CompactionScope
from lakelsm.results import CommitResult, CompactionResult, CompactionStatus
from lakelsm.snapshots.table_store import TableStore
from lakelsm.write.batch_write import BatchResult


def result_of(batch: BatchResult) -> CommitResult:
    """What a batch did, without the compaction that may follow it."""
    snapshot = batch.outcome.snapshot
    return CommitResult(
        snapshot_id=None if snapshot is None else snapshot.id,
        already_committed=batch.outcome.already_committed,
        files=len(batch.entries),
        rows=sum(entry.file.row_count for entry in batch.entries),
    )


def finished_write(
    spark: SparkSession, store: TableStore, batch: BatchResult, user: str, identifier: int
) -> CommitResult:
    """The result of a batch, after the compaction of what it wrote unless the table is ``write-only``."""
    result = result_of(batch)
    if store.options.write_only or not batch.entries:
        return result
    with told_of(f"The write is committed (snapshot {result.snapshot_id}); the compaction after it failed"):
        return replace(result, compaction=compact_after_write(spark, store, batch, user, identifier))


def compact_after_write(
    spark: SparkSession, store: TableStore, batch: BatchResult, user: str, identifier: int
) -> CompactionResult:
    """Compact the buckets that a batch wrote, or all in full where ``full-compaction.delta-commits`` says so.

    ``changelog-producer`` = ``full-compaction`` compacts what was written in full each time unless that option is set.
    What an overwrite wrote makes no changelog, as in Paimon: the rows that it replaced are not in it either.

    A write waits while a bucket has more sorted runs than ``num-sorted-run.stop-trigger``: where its compaction lost to
    another commit, such buckets are compacted again, ``commit.max-retries`` times at most.
    """
    every_time = (
        store.options.changelog_producer is ChangelogProducer.FULL_COMPACTION
        and (store.options.full_compaction_delta_commits or 1) == 1
    )
    full = not every_time and _full_compaction_is_due(store)
    touched = frozenset((entry.partition, entry.bucket) for entry in batch.entries)
    scope = CompactionScope(full or every_time, only=None if full else touched)
    written = batch.outcome.snapshot
    compactor = Compactor(spark, store)
    if written is not None and written.commit_kind is CommitKind.OVERWRITE:
        # On the overwrite's own snapshot: rows that others appended since then do make a changelog, later.
        return compactor.compact(scope, commit_user=user, identifier=identifier, snapshot=written, changelog=False)
    result = last = compactor.compact(scope, commit_user=user, identifier=identifier)
    for _ in range(store.options.commit_max_retries):
        if last.status is not CompactionStatus.CONFLICT:
            break
        crowded = replace(scope, past_stop_trigger=True)
        last = compactor.compact(crowded, commit_user=user, identifier=identifier)
        result = joined(result, last)
    return result


def _full_compaction_is_due(store: TableStore) -> bool:
    commits = store.options.full_compaction_delta_commits
    if commits is None:
        return False
    newest = store.snapshots.latest_id() or 0
    history = (store.snapshots.try_get(number) for number in range(newest, 0, -1))
    return full_compaction_due(commits, (_fact(snapshot) for snapshot in takewhile(bool, history) if snapshot))


def _fact(snapshot: Snapshot) -> CommitFact:
    adds = snapshot.commit_kind in (CommitKind.APPEND, CommitKind.OVERWRITE)
    return CommitFact(adds, (snapshot.properties or {}).get(FULL_COMPACTION_PROPERTY) == "true")
