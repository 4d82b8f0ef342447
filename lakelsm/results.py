"""What the operations on a table return: one frozen result each."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from enum import Enum

from lakelsm.failures import Failure, error_values


class CompactionStatus(str, Enum):
    """How a compaction ended. It is its text: ``status == "done"``. Schedulers read the texts: do not change.

    ``CONFLICT``: some of the work lost to another commit and was discarded (nothing of the other's is lost).
    ``FAILED``: an error ended it; what it had committed before stays. ``DEADLINE``: stopped between commits; run it
    again for the rest. ``PLANNED``: a dry run.
    """

    DONE = "done"
    NOTHING = "nothing"
    CONFLICT = "conflict"
    FAILED = "failed"
    DEADLINE = "deadline"
    PLANNED = "planned"

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, kw_only=True)
class CompactionResult:
    """What a compaction did. Counts are files, rows and bytes; ``seconds`` is wall time.

    ``rows_masked``: rows of files that deletion vectors mask from now on. ``rows_remapped``: those of them that were
    found again by key in other files, because another commit had changed vectors or files while this one worked.

    ``error`` is why the status is 'failed' or 'conflict' (None for every other status). ``conflicts`` are all commits
    that were lost, with the commit and the files that each lost to. ``after_commit_failures`` are steps after a commit
    that failed, which changes nothing of the commit.
    """

    table: str
    status: CompactionStatus
    snapshot_ids: tuple[int, ...] = ()
    buckets: int = 0
    files_rewritten: int = 0
    files_upgraded: int = 0
    files_written: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    rows_read: int = 0
    rows_written: int = 0
    seconds: float = 0.0
    changelog_rows: int = 0
    rows_masked: int = 0
    rows_remapped: int = 0
    error: Failure | None = None
    conflicts: tuple[Failure, ...] = ()
    after_commit_failures: tuple[Failure, ...] = ()

    def __post_init__(self) -> None:
        if (self.error is not None) is not (self.status in (CompactionStatus.CONFLICT, CompactionStatus.FAILED)):
            raise ValueError(f"a compaction has an error if it is 'conflict' or 'failed', and only then: {self}")

    def as_dict(self) -> dict[str, object]:
        """The result as plain values, for a report: of the ``error`` its text, class, kind and remedy."""
        return {**asdict(self), "status": self.status.value, **error_values(self.error)}


@dataclass(frozen=True, kw_only=True)
class FileTotals:
    """What the live data files of a bucket, or of all buckets, come to.

    ``rows`` are those of the files, older versions and retractions included. ``sorted_runs`` is what a read of the bucket
    merges at most (of all buckets: the most). ``level0_`` tells of the files that wait for a compaction;
    ``level0_age_seconds`` is the age of the oldest of them (None: there is none, or no file says). ``rows_masked`` of
    ``files_masked`` are left out by deletion vectors (None: one of them does not say how many). ``small_files`` above
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


@dataclass(frozen=True, kw_only=True)
class BucketStatus(FileTotals):
    """The files of one bucket. ``partition`` is like 'dt=2025-12-31/hh=12'."""

    partition: str
    bucket: int


@dataclass(frozen=True, kw_only=True)
class PlannedCompaction:
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


@dataclass(frozen=True, kw_only=True)
class UpkeepStatus:
    """What a branch of a table retains, and what its upkeep would do.

    ``snapshots_to_expire`` would go now by the table's options; ``held_by`` says what keeps others beside numbers and
    ages. ``slowest_consumer`` has ``slowest_consumer_lag`` snapshots yet to read. ``orphans_removed`` files were removed
    by the last run that left a record, at ``orphans_removed_at`` (None: none did; nothing is looked for here).
    ``write_amplification`` is all bytes written for each byte appended, as the newest ``snapshots_measured`` tell:
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
    slowest_consumer_lag: int | None = None
    orphans_removed: int | None = None
    orphans_removed_at: datetime | None = None
    snapshots_measured: int = 0
    bytes_appended: int = 0
    bytes_compacted: int = 0
    write_amplification: float | None = None

    def as_dict(self) -> dict[str, object]:
        """The status as plain values, for a report."""
        removed = self.orphans_removed_at
        return {**asdict(self), "orphans_removed_at": None if removed is None else removed.isoformat()}

    def text_lines(self) -> list[str]:
        """The status for people."""
        oldest = _age(self.oldest_snapshot_age_seconds)
        held = f", held by {', '.join(self.held_by)}" if self.held_by else ""
        lag = f" ({self.slowest_consumer}: {self.slowest_consumer_lag} behind)"
        slowest = "" if self.slowest_consumer is None else lag
        orphans = "no removal is on record"
        if self.orphans_removed_at is not None:
            orphans = f"{self.orphans_removed} removed at {self.orphans_removed_at:%Y-%m-%d %H:%M:%S} UTC"
        written = f"{self.bytes_appended:,} bytes appended, {self.bytes_compacted:,} compacted"
        times = "unknown" if self.write_amplification is None else f"{self.write_amplification:.2f} times"
        return [
            f"snapshots      {self.snapshots}, oldest {oldest}, {self.snapshots_to_expire} to expire now{held}",
            f"kept beside    {self.tags} tags, {self.branches} branches, {self.changelogs} long-lived changelogs",
            f"consumers      {self.consumers}{slowest}",
            f"orphans        {orphans}",
            f"written        {times} ({written}, in {self.snapshots_measured} snapshots)",
        ]


@dataclass(frozen=True, kw_only=True)
class TableStatus(FileTotals):
    """The state of a table's files, and its ``upkeep``. ``buckets`` is how many there are, with files of
    ``median_bucket_bytes`` in the middle and ``largest_bucket_bytes`` at most.

    ``level0_hidden``: reads do not show level 0 until it is compacted. ``worst_buckets`` are those of most sorted runs,
    then of most rows in level 0. ``next_compaction`` is None where an ordinary compaction would leave level 0 as it is.
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

    def as_dict(self) -> dict[str, object]:
        """The status as plain values, for a report."""
        return {**asdict(self), "upkeep": self.upkeep.as_dict()}

    def as_text(self) -> str:
        """The status for people, on one screen."""
        compaction = "none is due"
        if self.next_compaction is not None:
            due = self.next_compaction
            compaction = f"{due.files:,} files, {due.bytes:,} bytes in {due.buckets} buckets ({', '.join(due.reasons)})"
        waiting = f"{self.level0_files:,} files, {self.level0_rows:,} rows, oldest {_age(self.level0_age_seconds)}"
        masked = "unknown" if self.rows_masked is None else f"{self.rows_masked:,}"
        lines = [
            f"Table {self.table}, snapshot {self.snapshot_id}",
            f"files          {self.files:,} in {self.buckets} buckets, {self.rows:,} rows, {self.bytes:,} bytes",
            f"level 0        {waiting}" + (", not shown by reads" if self.level0_hidden else ""),
            f"sorted runs    {self.sorted_runs} at most in a bucket",
            f"compaction     {compaction}",
            f"small files    {self.small_files:,}, {self.small_bytes:,} bytes",
            f"bucket sizes   {self.median_bucket_bytes:,} bytes in the middle, {self.largest_bucket_bytes:,} at most",
            f"masked rows    {masked} in {self.files_masked:,} files",
            *self.upkeep.text_lines(),
        ]
        for bucket in self.worst_buckets:
            waits = f"{bucket.sorted_runs} runs, {bucket.level0_files:,} files of {bucket.level0_rows:,} rows in level 0"
            lines.append(f"  {bucket.partition or 'bucket'} {bucket.bucket}: {waits}")
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class CountResult:
    """How many ``rows`` a snapshot has that match (``int(result)`` is the number), and how that was found.

    ``how`` is 'metadata' where manifests and deletion vectors told it and no data file was opened, else 'files', of which
    ``files_opened`` are the data files. ``snapshot_id`` is None for a table without any.
    """

    snapshot_id: int | None
    rows: int
    how: str
    files_opened: int = 0

    def __int__(self) -> int:
        return self.rows


@dataclass(frozen=True, kw_only=True)
class Staleness:
    """How fresh the answers of a lookup are.

    ``snapshot_id`` is the snapshot that answers (None: the table had none), committed at ``committed_at`` (UTC),
    ``age_seconds`` ago. ``newest_snapshot_id`` is the table's newest now, ``snapshots_behind`` how many lie between the
    two: 0 where the answers are the newest, negative where the table was rolled back. ``seconds_since_look``: since a
    lookup or a refresh looked for a newer one. ``cache`` is 'full', 'partial' or 'remote'.
    """

    table: str
    cache: str
    snapshot_id: int | None
    committed_at: datetime | None
    age_seconds: float | None
    newest_snapshot_id: int | None
    snapshots_behind: int
    seconds_since_look: float


@dataclass(frozen=True, kw_only=True)
class CommitResult:
    """What a write did. ``snapshot_id`` is None when it changed nothing.

    ``already_committed``: the same commit user had committed this batch id before, so nothing was written again.
    ``rows`` counts the rows of the new files (one a key). ``compaction`` is the automatic compaction's result, if any;
    its status is 'failed' where it raised an error. ``after_commit_failures`` are other steps after the commit that
    failed. Neither changes that the write is committed.
    ``matched_rows``: how many rows a delete or an update found and wrote anew; None of other operations, and where the
    batch had been committed before.
    """

    snapshot_id: int | None
    already_committed: bool = False
    files: int = 0
    rows: int = 0
    compaction: CompactionResult | None = None
    matched_rows: int | None = None
    after_commit_failures: tuple[Failure, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """The result as plain values, for a report."""
        return {**asdict(self), "compaction": None if self.compaction is None else self.compaction.as_dict()}


def _age(seconds: float | None) -> str:
    return "none" if seconds is None else f"{seconds:.0f} s old"
