"""What the operations on a table return: one frozen result each."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from enum import Enum


class CompactionStatus(str, Enum):
    """How a compaction ended. It is its text: ``status == "done"``. Schedulers read the texts: do not change.

    ``CONFLICT``: some of the work lost to another commit and was discarded (nothing of the other's is lost).
    ``DEADLINE``: stopped between commits; run it again for the rest. ``PLANNED``: a dry run.
    """

    DONE = "done"
    NOTHING = "nothing"
    CONFLICT = "conflict"
    DEADLINE = "deadline"
    PLANNED = "planned"

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, kw_only=True)
class CompactionResult:
    """What a compaction did. Counts are files, rows and bytes; ``seconds`` is wall time.

    ``rows_masked``: rows of files that deletion vectors mask from now on. ``rows_remapped``: those of them that were
    found again by key in other files, because another commit had changed vectors or files while this one worked.
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

    def as_dict(self) -> dict[str, object]:
        """The result as plain values, for a report."""
        return {**asdict(self), "status": self.status.value}


@dataclass(frozen=True, kw_only=True)
class FileTotals:
    """What the live data files of a bucket, or of all buckets, come to.

    ``rows`` are those of the files, older versions and retractions included. ``sorted_runs`` is what a read of the bucket
    merges at most (of all buckets: the most). ``level0_`` tells of the files that wait for a compaction;
    ``level0_age_seconds`` is the age of the oldest of them (None: there is none, or no file says). ``rows_masked`` of
    ``files_masked`` are left out by deletion vectors (None: one of them does not say how many).
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
class TableStatus(FileTotals):
    """The state of a table's files. ``buckets`` is how many there are.

    ``level0_hidden``: reads do not show level 0 until it is compacted. ``worst_buckets`` are those of most sorted runs,
    then of most rows in level 0. ``next_compaction`` is None where an ordinary compaction would leave level 0 as it is.
    """

    table: str
    snapshot_id: int | None
    buckets: int = 0
    level0_hidden: bool = False
    worst_buckets: tuple[BucketStatus, ...] = ()
    next_compaction: PlannedCompaction | None = None

    def as_dict(self) -> dict[str, object]:
        """The status as plain values, for a report."""
        return asdict(self)


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
    ``rows`` counts the rows of the new files (one a key). ``compaction`` is the automatic compaction's result, if any.
    ``matched_rows``: how many rows a delete or an update found and wrote anew; None of other operations, and where the
    batch had been committed before.
    """

    snapshot_id: int | None
    already_committed: bool = False
    files: int = 0
    rows: int = 0
    compaction: CompactionResult | None = None
    matched_rows: int | None = None
