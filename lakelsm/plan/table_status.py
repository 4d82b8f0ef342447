"""The state of a table's files for operators: rows on level 0, and the next compaction. Reads metadata only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import nsmallest
from statistics import median_low
from typing import Any

from lakelsm.format.data_file.vector_location import VectorLocation
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.snapshot import Snapshot
from lakelsm.lsm.compact_task import min_compaction_file_size
from lakelsm.plan.bucket_files import BucketId, is_shown
from lakelsm.plan.compaction_plan import CompactionPlan, CompactionScope, plan_table
from lakelsm.results import BucketStatus, PlannedCompaction, TableStatus
from lakelsm.snapshots.table_store import TableStore


def table_status(
    store: TableStore, snapshot: Snapshot | None, now_millis: int, epoch_millis: int, *, max_buckets: int
) -> TableStatus:
    """Return the status of a snapshot (None: an empty table), with the ``max_buckets`` buckets that most need compaction.

    The times are those of `plan_table`.
    """
    hidden = not is_shown(store.options, 0)
    if snapshot is None:
        return TableStatus(table=store.name, snapshot_id=None, level0_hidden=hidden)
    plan = plan_table(store, snapshot, CompactionScope(full=False), now_millis, epoch_millis)
    small = min_compaction_file_size(store.options.target_file_size, store.options.compaction_small_file_ratio)
    tallies: dict[BucketId, _Tally] = {}
    for entry, vector in zip(plan.entries, plan.vectors.of(plan.entries), strict=True):
        tallies.setdefault((entry.partition, entry.bucket), _Tally()).add(entry, vector, small)
    waiting = [(bucket, tally) for bucket, tally in tallies.items() if len(tally.runs) > 1 or tally.level0_files]
    worst = nsmallest(max_buckets, waiting, key=lambda found: (-len(found[1].runs), -found[1].level0_rows, found[0]))
    return TableStatus(
        table=store.name,
        snapshot_id=snapshot.id,
        buckets=len(tallies),
        level0_hidden=hidden,
        worst_buckets=tuple(
            BucketStatus(partition=store.partition_label(partition), bucket=bucket, **_values([tally], now_millis))
            for (partition, bucket), tally in worst
        ),
        next_compaction=_next_compaction(plan),
        largest_bucket_bytes=max((tally.bytes for tally in tallies.values()), default=0),
        median_bucket_bytes=median_low([tally.bytes for tally in tallies.values()] or [0]),
        **_values(tallies.values(), now_millis),
    )


@dataclass(kw_only=True)
class _Tally:
    """The totals of the files of a bucket. ``runs`` has each level above 0, and the name of each file of level 0."""

    files: int = 0
    rows: int = 0
    bytes: int = 0
    level0_files: int = 0
    level0_rows: int = 0
    level0_bytes: int = 0
    small_files: int = 0
    small_bytes: int = 0
    oldest: int | None = None
    runs: set[int | str] = field(default_factory=set)
    masked: list[int | None] = field(default_factory=list)

    def add(self, entry: ManifestEntry, vector: VectorLocation | None, small: int) -> None:
        """Add a file. Files above level 0 with less than ``small`` bytes count as small."""
        file = entry.file
        self.files += 1
        self.rows += file.row_count
        self.bytes += file.file_size
        self.runs.add(file.level or file.file_name)
        if vector is not None:
            self.masked.append(vector.recorded_cardinality(file.row_count))
        if file.level > 0 and file.file_size < small:
            self.small_files += 1
            self.small_bytes += file.file_size
        if file.level == 0:
            self.level0_files += 1
            self.level0_rows += file.row_count
            self.level0_bytes += file.file_size
            if file.creation_time_millis is not None:
                self.oldest = min(file.creation_time_millis, self.oldest or file.creation_time_millis)


def _values(tallies: Iterable[_Tally], now_millis: int) -> dict[str, Any]:
    """Return the totals of one or several buckets by the names of `FileTotals`."""
    all_tallies = list(tallies)
    oldest = [tally.oldest for tally in all_tallies if tally.oldest is not None]
    masked = [rows for tally in all_tallies for rows in tally.masked]
    return {
        "files": sum(tally.files for tally in all_tallies),
        "rows": sum(tally.rows for tally in all_tallies),
        "bytes": sum(tally.bytes for tally in all_tallies),
        "sorted_runs": max((len(tally.runs) for tally in all_tallies), default=0),
        "level0_files": sum(tally.level0_files for tally in all_tallies),
        "level0_rows": sum(tally.level0_rows for tally in all_tallies),
        "level0_bytes": sum(tally.level0_bytes for tally in all_tallies),
        "level0_age_seconds": max(now_millis - min(oldest), 0) / 1000 if oldest else None,
        "small_files": sum(tally.small_files for tally in all_tallies),
        "small_bytes": sum(tally.small_bytes for tally in all_tallies),
        "files_masked": len(masked),
        "rows_masked": None if None in masked else sum(filter(None, masked)),
    }


def _next_compaction(plan: CompactionPlan) -> PlannedCompaction | None:
    """Return what an ordinary compaction does in buckets where it takes files of level 0; None if there are none."""
    files: list[ManifestEntry] = []
    count = 0
    reasons: set[str] = set()
    for bucket in plan.buckets:
        compacted = [plan.entries[file.index] for file in (*bucket.rewritten_files, *bucket.plan.upgrades)]
        if any(entry.file.level == 0 for entry in compacted):
            count += 1
            files += compacted
            reasons.add(bucket.plan.reason)
    if not files:
        return None
    return PlannedCompaction(
        reasons=tuple(sorted(reasons)),
        buckets=count,
        files=len(files),
        rows=sum(entry.file.row_count for entry in files),
        bytes=sum(entry.file.file_size for entry in files),
        level0_files=sum(entry.file.level == 0 for entry in files),
        level0_rows=sum(entry.file.row_count for entry in files if entry.file.level == 0),
    )
