"""The state of a table's files and of its upkeep."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lakelsm.results.result import Result
from lakelsm.text_table import amount


@dataclass(frozen=True, kw_only=True, repr=False)
class FileTotals(Result):
    """Totals of the live data files of one bucket, or of all buckets.

    ``rows`` counts rows of files, with older versions and retractions. ``sorted_runs`` is the number of sorted runs of
    the bucket; of all buckets, the maximum. ``level0_`` fields count files that wait for a compaction;
    ``level0_age_seconds`` is the age of the oldest (None: no such file, or not recorded). ``rows_masked`` rows of
    ``files_masked`` files are masked by deletion vectors (None: a vector does not record its number). ``small_files``
    counts files above level 0 that are smaller than ``compaction.small-file-ratio`` of ``target-file-size``,
    ``small_bytes`` their bytes.
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
    """The files that an ordinary compaction would read now, in buckets with files on level 0.

    ``files``, ``rows`` and ``bytes`` count all files that it would read, ``level0_files`` and ``level0_rows`` those on
    level 0. ``reasons`` are those of universal compaction, such as 'size-amplification' or 'file-number'.
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
    """The retained snapshots, tags, branches and consumers of a branch, and the state of its upkeep.

    ``snapshots_to_expire`` would expire now by the options of the table; ``held_by`` lists what keeps others, besides
    numbers and ages. ``slowest_consumer`` has not read ``lag_snapshots``, the oldest of which is ``lag_seconds`` old.
    The last recorded orphan removal deleted ``orphans_removed`` files at ``orphans_removed_at`` (None: no record); the
    status itself lists no directory. ``write_amplification`` is bytes written for each byte appended, over the newest
    ``snapshots_measured`` snapshots: ``bytes_appended`` by writes, ``bytes_compacted`` by compactions (None: no bytes
    were appended).
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
        """Return the status as lines of text."""
        oldest = _age(self.oldest_snapshot_age_seconds)
        held = f", held by {', '.join(self.held_by)}" if self.held_by else ""
        lag = f" (slowest {self.slowest_consumer}: {self.lag_snapshots} snapshots, {self.lag_seconds or 0:.0f} s behind)"
        slowest = "" if self.slowest_consumer is None else lag
        orphans = "no removal recorded"
        if self.orphans_removed_at is not None:
            orphans = f"{self.orphans_removed} removed at {self.orphans_removed_at:%Y-%m-%d %H:%M:%S} UTC"
        written = f"{self.bytes_appended:,} bytes appended, {self.bytes_compacted:,} compacted"
        times = "unknown" if self.write_amplification is None else f"{self.write_amplification:.2f}"
        retained = [amount(self.tags, "tag"), amount(self.branches, "branch", "branches")]
        retained.append(amount(self.changelogs, "long-lived changelog"))
        return [
            f"snapshots            {self.snapshots}, oldest {oldest}, {self.snapshots_to_expire} to expire now{held}",
            f"also retained        {', '.join(retained)}",
            f"consumers            {self.consumers}{slowest}",
            f"unreferenced files   {orphans}",
            f"write amplification  {times} ({written}, in {amount(self.snapshots_measured, 'snapshot')})",
        ]


@dataclass(frozen=True, kw_only=True, repr=False)
class TableStatus(FileTotals):
    """The state of a table's files, and its ``upkeep``.

    ``buckets`` counts buckets with files; ``median_bucket_bytes`` and ``largest_bucket_bytes`` are their sizes.
    ``level0_hidden``: reads do not return rows of level 0 before a compaction. ``worst_buckets`` are those with the
    most sorted runs, then the most rows on level 0. ``next_compaction`` is None if an ordinary compaction would not
    change level 0.
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
        """Return the status as text, on one screen."""
        compaction = "not due"
        if self.next_compaction is not None:
            due = self.next_compaction
            scope = f"{amount(due.files, 'file')}, {due.bytes:,} bytes in {amount(due.buckets, 'bucket')}"
            compaction = f"{scope} ({', '.join(due.reasons)})"
        level0 = f"{amount(self.level0_files, 'file')}, {amount(self.level0_rows, 'row')}"
        oldest = "" if self.level0_age_seconds is None else f", oldest {_age(self.level0_age_seconds)}"
        masked = "unknown" if self.rows_masked is None else f"{self.rows_masked:,}"
        sizes = f"median {self.median_bucket_bytes:,} bytes, largest {self.largest_bucket_bytes:,} bytes"
        buckets = amount(self.buckets, "bucket")
        lines = [
            f"Table {self.table}, snapshot {self.snapshot_id}",
            f"files                {self.files:,} in {buckets}, {amount(self.rows, 'row')}, {self.bytes:,} bytes",
            f"level 0              {level0}{oldest}" + (", not returned by reads" if self.level0_hidden else ""),
            f"sorted runs          at most {self.sorted_runs} in a bucket",
            f"compaction           {compaction}",
            f"small files          {self.small_files:,}, {self.small_bytes:,} bytes",
            f"bucket sizes         {sizes}",
            f"masked rows          {masked} in {amount(self.files_masked, 'file')}",
            *self.upkeep.text_lines(),
        ]
        for bucket in self.worst_buckets:
            runs, rows = amount(bucket.sorted_runs, "sorted run"), amount(bucket.level0_rows, "row")
            level0 = f"{amount(bucket.level0_files, 'file')} with {rows} on level 0"
            lines.append(f"  {bucket.partition or 'bucket'} {bucket.bucket}: {runs}, {level0}")
        return "\n".join(lines)


def _age(seconds: float | None) -> str:
    return "none" if seconds is None else f"{seconds:.0f} s old"

