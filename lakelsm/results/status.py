"""The state of a table's files and of its upkeep."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lakelsm.results.result import Result


@dataclass(frozen=True, kw_only=True, repr=False)
class FileTotals(Result):
    """The totals of the live data files of a bucket, or of all buckets.

    ``rows`` are those of the files, older versions and retractions included. ``sorted_runs`` is what a read of the bucket
    merges at most (of all buckets: the most). ``level0_`` are the files that wait for a compaction;
    ``level0_age_seconds`` is the age of the oldest of them (None: none, or not recorded). ``rows_masked`` of
    ``files_masked`` are left out by deletion vectors (None: one of them does not record it). ``small_files`` above
    level 0 are smaller than ``compaction.small-file-ratio`` of ``target-file-size``, together ``small_bytes``.
    """

    files: int = 0
    rows: int = 0
    bytes: int = 0
    sorted_runs: int = 0
    level0_files: int = 0
    level0_rows: int = 0
    level0_bytes: int = 0
    level0_age_seconds: float | None = None
    files_masked: int = 0
    rows_masked: int | None = 0
    small_files: int = 0
    small_bytes: int = 0


@dataclass(frozen=True, kw_only=True, repr=False)
class BucketStatus(FileTotals):
    """The files of one bucket. ``partition`` is like 'dt=2025-12-31/hh=12'."""

    partition: str
    bucket: int


@dataclass(frozen=True, kw_only=True, repr=False)
class PlannedCompaction(Result):
    """What an ordinary compaction would take now, in the buckets where it takes files of level 0.

    ``files``, ``rows`` and ``bytes`` are all that it takes, ``level0_files`` and ``level0_rows`` what waits there.
    ``reasons`` are those of universal compaction, such as 'size-amplification' or 'file-number'.
    """

    reasons: tuple[str, ...]
    buckets: int
    files: int
    rows: int
    bytes: int
    level0_files: int
    level0_rows: int


@dataclass(frozen=True, kw_only=True, repr=False)
class UpkeepStatus(Result):
    """What a branch of a table retains, and what its upkeep would do.

    ``snapshots_to_expire`` would expire now by the table's options; ``held_by`` is what keeps others besides numbers and
    ages. ``slowest_consumer`` has ``lag_snapshots`` yet to read, the oldest of which is ``lag_seconds`` old.
    ``orphans_removed`` files were removed by the last run that left a record, at ``orphans_removed_at`` (None: none
    did; nothing is looked for here).
    ``write_amplification`` is all bytes written for each byte appended, over the newest ``snapshots_measured``:
    ``bytes_appended`` by writes, ``bytes_compacted`` by compactions (None: nothing was appended).
    """

    snapshots: int = 0
    oldest_snapshot_age_seconds: float | None = None
    snapshots_to_expire: int = 0
    held_by: tuple[str, ...] = ()
    changelogs: int = 0
    tags: int = 0
    branches: int = 0
    consumers: int = 0
    slowest_consumer: str | None = None
    lag_snapshots: int | None = None
    lag_seconds: float | None = None
    orphans_removed: int | None = None
    orphans_removed_at: datetime | None = None
    snapshots_measured: int = 0
    bytes_appended: int = 0
    bytes_compacted: int = 0
    write_amplification: float | None = None

    def text_lines(self) -> list[str]:
        """The status for people."""
        oldest = _age(self.oldest_snapshot_age_seconds)
        held = f", held by {', '.join(self.held_by)}" if self.held_by else ""
        lag = f" (slowest {self.slowest_consumer}: {self.lag_snapshots} snapshots, {self.lag_seconds or 0:.0f} s behind)"
        slowest = "" if self.slowest_consumer is None else lag
        orphans = "never cleaned"
        if self.orphans_removed_at is not None:
            orphans = f"{self.orphans_removed} removed at {self.orphans_removed_at:%Y-%m-%d %H:%M:%S} UTC"
        written = f"{self.bytes_appended:,} bytes appended, {self.bytes_compacted:,} compacted"
        times = "unknown" if self.write_amplification is None else f"{self.write_amplification:.2f}"
        return [
            f"snapshots            {self.snapshots}, oldest {oldest}, {self.snapshots_to_expire} to expire now{held}",
            f"also retained        {self.tags} tags, {self.branches} branches, {self.changelogs} long-lived changelogs",
            f"consumers            {self.consumers}{slowest}",
            f"unreferenced files   {orphans}",
            f"write amplification  {times} ({written}, in {self.snapshots_measured} snapshots)",
        ]


@dataclass(frozen=True, kw_only=True, repr=False)
class TableStatus(FileTotals):
    """The state of a table's files, and its ``upkeep``. ``buckets`` is how many there are, with files of
    ``median_bucket_bytes`` in the middle and ``largest_bucket_bytes`` at most.

    ``level0_hidden``: reads do not show level 0 until it is compacted. ``worst_buckets`` are those of most sorted runs,
    then of most rows in level 0. ``next_compaction`` is None where an ordinary compaction would not change level 0.
    """

    table: str
    snapshot_id: int | None
    buckets: int = 0
    level0_hidden: bool = False
    worst_buckets: tuple[BucketStatus, ...] = ()
    next_compaction: PlannedCompaction | None = None
    largest_bucket_bytes: int = 0
    median_bucket_bytes: int = 0
    upkeep: UpkeepStatus = UpkeepStatus()

    def as_text(self) -> str:
        """The status for people, on one screen."""
        compaction = "none is due"
        if self.next_compaction is not None:
            due = self.next_compaction
            compaction = f"{due.files:,} files, {due.bytes:,} bytes in {due.buckets} buckets ({', '.join(due.reasons)})"
        waiting = f"{self.level0_files:,} files, {self.level0_rows:,} rows, oldest {_age(self.level0_age_seconds)}"
        masked = "unknown" if self.rows_masked is None else f"{self.rows_masked:,}"
        sizes = f"median {self.median_bucket_bytes:,} bytes, largest {self.largest_bucket_bytes:,} bytes"
        lines = [
            f"Table {self.table}, snapshot {self.snapshot_id}",
            f"files                {self.files:,} in {self.buckets} buckets, {self.rows:,} rows, {self.bytes:,} bytes",
            f"level 0              {waiting}" + (", not shown by reads" if self.level0_hidden else ""),
            f"sorted runs          {self.sorted_runs} at most in a bucket",
            f"compaction           {compaction}",
            f"small files          {self.small_files:,}, {self.small_bytes:,} bytes",
            f"bucket sizes         {sizes}",
            f"masked rows          {masked} in {self.files_masked:,} files",
            *self.upkeep.text_lines(),
        ]
        for bucket in self.worst_buckets:
            waits = f"{bucket.sorted_runs} runs, {bucket.level0_files:,} files of {bucket.level0_rows:,} rows in level 0"
            lines.append(f"  {bucket.partition or 'bucket'} {bucket.bucket}: {waits}")
        return "\n".join(lines)


def _age(seconds: float | None) -> str:
    return "none" if seconds is None else f"{seconds:.0f} s old"

