"""Plans compactions: the scope after a write, and the files of each bucket, from the manifests of one snapshot."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import takewhile

import numpy as np
import pyarrow as pa

from lakelsm.errors import InvalidInputError
from lakelsm.format.file_names import other_format, refuse_other_format
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.snapshot import CommitKind, Snapshot
from lakelsm.lsm.compact_task import CompactPlan, drops_deletes, min_compaction_file_size, plan_compaction
from lakelsm.lsm.levels import FileRange, level_count, sorted_runs
from lakelsm.lsm.universal_compaction import (
    CompactionPolicy,
    estimate_last_full,
    full_compaction,
    pick,
)
from lakelsm.lsm.upgrade_strategy import UpgradeStrategy, upgrade_strategy
from lakelsm.merge.record_expiry import RecordExpiry
from lakelsm.options import ChangelogProducer, LookupCompact
from lakelsm.plan.bucket_files import BucketId, by_bucket, partition_filter
from lakelsm.plan.file_statistics import statistics_of
from lakelsm.plan.partition_files import check_whole_partitions
from lakelsm.predicate.predicate import Predicate
from lakelsm.snapshots.deletion_vectors import DeletionVectors, deletion_vectors
from lakelsm.snapshots.manifest_prune import select_manifests
from lakelsm.snapshots.manifest_scan import ManifestFilter, PartitionFilter, read_live_entries
from lakelsm.snapshots.table_store import TableStore
from lakelsm.text_table import listed
from lakelsm.types import python_arrow


@dataclass(frozen=True)
class BucketCompaction:
    """The compaction of one bucket; planned files are indexes into the entries of the whole plan.

    ``top_level`` is the bucket's highest level, which only full compactions write.
    """

    partition: bytes
    bucket: int
    plan: CompactPlan
    top_level: int

    @property
    def rewritten_files(self) -> list[FileRange]:
        """The files that are merged and replaced."""
        return [file for group in self.plan.rewrites for file in group.files]


@dataclass(frozen=True)
class CompactionPlan:
    """All buckets of a snapshot that need a compaction; ``epoch_millis`` is the time for record expiry.

    ``vectors`` are all vectors of the snapshot, also those of buckets that are not compacted.
    """

    snapshot: Snapshot
    entries: Sequence[ManifestEntry]
    buckets: tuple[BucketCompaction, ...]
    _: KW_ONLY
    epoch_millis: int = 0
    vectors: DeletionVectors = field(default_factory=DeletionVectors)

    def refuse_other_formats(self, store: TableStore) -> None:
        """Raise UnsupportedFeatureError if a file to be rewritten is not a Parquet file."""
        for bucket in self.buckets:
            for file in bucket.rewritten_files:
                name = self.entries[file.index].file.file_name
                if other_format(name) is not None:
                    refuse_other_format(name, store.data_path(bucket.partition, bucket.bucket, name))


@dataclass(frozen=True)
class CompactionScope:
    """The buckets to consider; None does not restrict them.

    ``partitions``: a predicate on partition columns; ``buckets``: bucket numbers; ``only``: exactly these buckets.
    ``full``: merge everything to the top level, else an ordinary pick. ``min_runs``: only buckets with at least so many
    sorted runs. ``gentle``: in a table that looks rows up, level 0 may wait until it has grown.
    """

    full: bool
    _: KW_ONLY
    partitions: Predicate | None = None
    buckets: frozenset[int] | None = None
    only: frozenset[BucketId] | None = None
    min_runs: int = 0
    gentle: bool = False


def plan_table(
    store: TableStore, snapshot: Snapshot, scope: CompactionScope, now_millis: int, epoch_millis: int | None = None
) -> CompactionPlan:
    """Plan the compaction of a snapshot's buckets; reads manifests and no data.

    ``now_millis`` is the local wall clock in milliseconds, as the creation times of files are. ``epoch_millis`` is the
    time since 1970 for record expiry (None: the same).
    """
    store.check_schema(snapshot)
    entries = read_live_entries(
        store.file_io,
        store.paths,
        snapshot,
        keep_manifest=_manifest_filter(store, scope.only),
        keep_partitions=_partition_filter(store, scope),
    )
    epoch_millis = now_millis if epoch_millis is None else epoch_millis
    expired = _files_with_expired_rows(store, entries, epoch_millis)
    vectors = deletion_vectors(store, snapshot)
    masked = frozenset(index for index, vector in enumerate(vectors.of(entries)) if vector is not None)
    chosen: list[BucketCompaction] = []
    for (partition, bucket), files in sorted(by_bucket(store, entries).items()):
        if bucket < 0 or (scope.buckets is not None and bucket not in scope.buckets):
            continue
        if scope.only is not None and (partition, bucket) not in scope.only:
            continue
        if len(sorted_runs(files)) < scope.min_runs:
            continue
        plan = plan_bucket(store, files, scope.full, now_millis, expired, masked, scope.gentle)
        if plan is not None and not plan.is_empty:
            top = level_count(files, store.options.num_levels) - 1
            chosen.append(BucketCompaction(partition, bucket, plan, top))
    return CompactionPlan(snapshot, entries, tuple(chosen), epoch_millis=epoch_millis, vectors=vectors)


def live_entries_of(store: TableStore, snapshot: Snapshot, buckets: Collection[BucketId]) -> list[ManifestEntry]:
    """Return the live files of some buckets."""
    partitions = {partition for partition, _ in buckets}
    entries = read_live_entries(
        store.file_io,
        store.paths,
        snapshot,
        keep_manifest=_manifest_filter(store, buckets),
        keep_partitions=lambda stored: [partition in partitions for partition in stored],
    )
    return [entry for entry in entries if (entry.partition, entry.bucket) in buckets]


def checked_scope(
    store: TableStore, full: bool, partitions: Predicate | None, buckets: frozenset[int] | None
) -> CompactionScope:
    """Return the scope of a requested compaction. Raises InvalidInputError for an unknown bucket or partition."""
    if partitions is not None:
        check_whole_partitions(store, partitions, "a compaction")
    if buckets is not None:
        _check_buckets(store, buckets)
    return CompactionScope(full, partitions=partitions, buckets=buckets)


def _check_buckets(store: TableStore, numbers: Collection[int]) -> None:
    """Raise InvalidInputError for a bucket number that no partition has.

    Only a fixed number of buckets limits them. With dynamic buckets any number may be used later, and an unused one has
    nothing to compact.
    """
    count = store.options.bucket
    if count < 1 or max(numbers) < count:
        return
    snapshot = store.snapshots.latest()
    with store.while_changed(snapshot):
        entries = [] if snapshot is None else read_live_entries(store.file_io, store.paths, snapshot)
    count = max([count, *(entry.total_buckets for entry in entries)])
    beyond = sorted(number for number in numbers if number >= count)
    if beyond:
        named = f"{listed([str(number) for number in beyond])} {'do' if len(beyond) > 1 else 'does'} not exist"
        raise InvalidInputError(f"buckets: {named}. Table {store.name} has the buckets 0 to {count - 1}.")


def plan_bucket(
    store: TableStore,
    files: Sequence[FileRange],
    full: bool,
    now_millis: int,
    expired: frozenset[int] = frozenset(),
    masked: frozenset[int] = frozenset(),
    gentle: bool = False,
) -> CompactPlan | None:
    """Plan one bucket; None if there is nothing to compact. Files in ``expired`` are rewritten when they change level.

    In a table that looks rows up, level 0 is emptied; with ``gentle`` only after some time. Paimon's writers count how
    often in succession they found nothing to compact. Here calls are independent, so the files of level 0 are counted.
    A full compaction also rewrites the files of the top level in ``masked``.
    """
    options = store.options
    runs = sorted_runs(files)
    levels = level_count(files, options.num_levels)
    if full:
        every = options.compaction_force_rewrite_all_files
        rewrite = frozenset(file.index for file in files) if every else expired | masked
        unit = full_compaction(runs, levels, rewrite)
    else:
        policy = CompactionPolicy.from_options(options, now_millis)
        waited = 0
        if options.needs_lookup:
            interval = options.effective_lookup_compact_max_interval if gentle else None
            policy = replace(policy, force_up_level_0=True, force_up_interval=interval)
            waited = sum(run.level == 0 for run in runs) - 1
        unit = pick(policy, runs, levels, now_millis, estimate_last_full(runs, levels - 1), waited)
    if unit is None or unit.changes_nothing:
        return None
    output = unit.output_level

    def must_rewrite(file: FileRange) -> bool:
        strategy = upgrade_strategy(options, file, output, levels - 1)
        return file.index in expired or strategy is UpgradeStrategy.CHANGELOG_AND_REWRITE

    plan = plan_compaction(
        unit,
        max_level=levels - 1,
        min_file_size=min_compaction_file_size(options.target_file_size, options.compaction_small_file_ratio),
        drop_delete=drops_deletes(output, runs, deletion_vectors=options.deletion_vectors_enabled),
        must_rewrite=must_rewrite,
    )
    return replace(plan, below=tuple(run for run in runs if run.level > output), reason=unit.reason)


def _files_with_expired_rows(
    store: TableStore, entries: Sequence[ManifestEntry], epoch_millis: int
) -> frozenset[int]:
    """Return the indexes of the entries whose statistics show an expired row."""
    expiry = RecordExpiry.of(store.options)
    if expiry is None:
        return frozenset()
    bounds = statistics_of(store, entries, [expiry.column]).columns[expiry.column]
    oldest = pa.table({expiry.column: pa.array(bounds.mins, python_arrow(store.schema.field(expiry.column).type))})
    return frozenset(np.flatnonzero(expiry.expired(oldest, epoch_millis)).tolist())


def _manifest_filter(store: TableStore, only: Collection[BucketId] | None) -> ManifestFilter | None:
    if only is None:
        return None
    changed: dict[bytes, set[int]] = {}
    for partition, bucket in only:
        changed.setdefault(partition, set()).add(bucket)
    return lambda meta: bool(select_manifests([meta], changed, store.partition_types))


def _partition_filter(store: TableStore, scope: CompactionScope) -> PartitionFilter | None:
    if scope.only is not None:
        wanted = {partition for partition, _ in scope.only}
        return lambda partitions: [partition in wanted for partition in partitions]
    return partition_filter(store, scope.partitions)


#: Snapshot property of a compaction that left every bucket of the table fully compacted. Persisted: do not change.
FULL_COMPACTION_PROPERTY = "lakelsm.full-compaction"


def scope_after_write(store: TableStore, written: Iterable[BucketId]) -> CompactionScope:
    """Return the written buckets as a scope, or all buckets fully if ``full-compaction.delta-commits`` requires it.

    ``changelog-producer`` = ``full-compaction`` compacts the written buckets fully after each write unless that option
    is set. With ``lookup-compact`` = ``gentle`` written rows may wait on level 0; a requested compaction includes them.
    """
    commits = store.options.full_compaction_delta_commits
    if store.options.changelog_producer is ChangelogProducer.FULL_COMPACTION and (commits or 1) == 1:
        return CompactionScope(full=True, only=frozenset(written))
    if commits is not None and commits_since_full_compaction(_history(store)) >= max(1, commits):
        return CompactionScope(full=True)
    gentle = store.options.lookup_compact is LookupCompact.GENTLE
    return CompactionScope(full=False, only=frozenset(written), gentle=gentle)


def commits_since_full_compaction(history: Iterable[Snapshot]) -> int:
    """Count the commits since the last full compaction that added rows.

    ``history`` is ordered from the newest; expiry may have cut it. Compactions of other engines do not record whether
    they were full, so the next one may come earlier than necessary.
    """
    since = takewhile(lambda snapshot: snapshot.own_properties.get(FULL_COMPACTION_PROPERTY) != "true", history)
    return sum(snapshot.commit_kind in (CommitKind.APPEND, CommitKind.OVERWRITE) for snapshot in since)


def _history(store: TableStore) -> Iterable[Snapshot]:
    """Yield the snapshots from the newest one back to the first missing one."""
    for number in range(store.snapshots.latest_id() or 0, 0, -1):
        snapshot = store.snapshots.try_get(number)
        if snapshot is None:
            return
        yield snapshot
