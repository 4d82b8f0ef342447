"""What the maintenance of a table returns: one frozen result each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta

from lakelsm.failures import Failure, error_values


def _iso(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


@dataclass(frozen=True, kw_only=True)
class ExpiryResult:
    """What an expiry of snapshots did, or with ``dry_run`` would do.

    ``snapshots`` expired; ``earliest_snapshot_id`` is the oldest that is kept (None: the table has none).
    ``older_than`` is the age limit as a time in UTC; None where the number of snapshots alone decides.
    ``changelogs_kept`` of the expired stay as long-lived changelogs, ``changelogs_expired`` of those kept before went.
    ``data_files`` (with their indexes), ``changelog_files`` and ``metadata_files`` (manifests and their lists, index and
    statistics files) were deleted, in all ``bytes`` as metadata tells sizes. ``failures`` names those that could not be;
    orphan removal takes them. ``held_by`` says what keeps older snapshots, such as 'consumer etl, which reads snapshot 41
    next', and ``protected_files`` are those of expired snapshots that tags, branches or long-lived changelogs keep.
    ``complete`` is False where the deadline ended it.
    """

    table: str
    dry_run: bool = False
    older_than: datetime | None = None
    snapshots: int = 0
    earliest_snapshot_id: int | None = None
    changelogs_kept: int = 0
    changelogs_expired: int = 0
    data_files: int = 0
    changelog_files: int = 0
    metadata_files: int = 0
    bytes: int = 0
    failures: tuple[str, ...] = ()
    held_by: tuple[str, ...] = ()
    protected_files: int = 0
    complete: bool = True
    seconds: float = 0.0

    def as_dict(self) -> dict[str, object]:
        """The result as plain values, for a report."""
        return {**asdict(self), "older_than": _iso(self.older_than)}


@dataclass(frozen=True, kw_only=True)
class OrphanResult:
    """What a removal of orphans did, or with ``dry_run`` would do.

    ``files`` were found and removed, except for those that ``failures`` tells of: so many of each of the ``kinds``
    ('data', 'manifest'...), in all ``bytes``. ``examples`` are some of their paths below the table's directory.
    ``directories`` were empty then and went as well. ``files_listed`` are all files of the table that were seen.
    ``files_too_young`` are named by nothing either and stay: they were changed at ``older_than`` (UTC) or later, and may
    be of a commit that is under way. If the store's clock is behind this machine's, the store's times are compared with
    a bound that is earlier by the difference. ``complete`` is False where the deadline ended it.
    """

    table: str
    dry_run: bool = False
    older_than: datetime
    files: int = 0
    kinds: Mapping[str, int] = field(default_factory=dict)
    bytes: int = 0
    examples: tuple[str, ...] = ()
    directories: int = 0
    files_listed: int = 0
    files_too_young: int = 0
    failures: tuple[str, ...] = ()
    complete: bool = True
    seconds: float = 0.0

    def as_dict(self) -> dict[str, object]:
        """The result as plain values, for a report."""
        return {**asdict(self), "older_than": self.older_than.isoformat()}


@dataclass(frozen=True, kw_only=True)
class MaintenanceRun:
    """A run of maintenance: its ``operation`` ('compact', 'remove_orphans'...), who did it, where, when, and how long.

    ``files`` and ``bytes`` are what it wrote, or deleted where it writes none. ``outcome`` is 'done', 'partial' (a
    deadline stopped it, or it goes on) or 'failed: ' with the error's type. ``snapshot_ids`` are the newest
    eight that it published.
    """

    operation: str
    user: str
    host: str
    started: datetime
    seconds: float
    files: int
    bytes: int
    outcome: str
    snapshot_ids: tuple[int, ...]

    def as_dict(self) -> dict[str, object]:
        """The run as plain values, for a report."""
        return {**asdict(self), "started": self.started.isoformat()}


@dataclass(frozen=True, kw_only=True)
class AnalyzeResult:
    """What an analysis found and wrote: statistics of ``columns`` of the snapshot ``analyzed_snapshot_id``.

    ``snapshot_id`` is the one that has them. Both are None where the table has no snapshot: nothing is written then, nor
    with ``dry_run``. ``rows`` are the merged ones, ``bytes`` their share of the data files. ``after_commit_failures`` are
    steps after the commit that failed, which changes nothing of it.
    """

    table: str
    dry_run: bool = False
    columns: tuple[str, ...] = ()
    analyzed_snapshot_id: int | None = None
    snapshot_id: int | None = None
    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0
    after_commit_failures: tuple[Failure, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """The result as plain values, for a report."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class BranchInfo:
    """A branch beside the main one. ``schema_id`` and ``snapshot_id`` are its newest (None: it has no snapshot).

    ``created`` (UTC) and ``schema_id`` are None where its creation or deletion stopped half-way: delete it.
    """

    name: str
    created: datetime | None = None
    schema_id: int | None = None
    snapshot_id: int | None = None

    def as_dict(self) -> dict[str, object]:
        """The result as plain values, for a report."""
        return {**asdict(self), "created": _iso(self.created)}


@dataclass(frozen=True, kw_only=True)
class FastForwardResult:
    """What a fast-forward of the main branch did, or with ``dry_run`` would do: snapshots and tags taken over, and those
    of its own that went.
    """

    table: str
    branch: str
    snapshot_id: int
    dry_run: bool = False
    snapshots_added: int = 0
    snapshots_removed: int = 0
    tags_added: tuple[str, ...] = ()
    tags_removed: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """The result as plain values, for a report."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class PartitionInfo:
    """A partition, such as 'dt=2025-12-31/hh=12': rows (older versions included), data files and bytes of them.

    ``updated_at`` is when the newest file was made (its writer's wall clock, without a zone; None: no file says).
    """

    partition: str
    rows: int
    files: int
    bytes: int
    updated_at: datetime | None = None

    def as_dict(self) -> dict[str, object]:
        """The partition as plain values, for a report."""
        return {**asdict(self), "updated_at": _iso(self.updated_at)}


@dataclass(frozen=True, kw_only=True)
class PartitionDropResult:
    """Which partitions were dropped, or with ``dry_run`` would be, and the data files that went out of sight with them.

    ``snapshot_id`` is that of the commit (None: there was nothing to drop). Files are deleted when the snapshots before
    it expire. ``after_commit_failures`` are steps after the commit that failed, which changes nothing of it.
    """

    table: str
    dry_run: bool = False
    partitions: tuple[str, ...] = ()
    files: int = 0
    bytes: int = 0
    snapshot_id: int | None = None
    after_commit_failures: tuple[Failure, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """The result as plain values, for a report."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class PartitionExpiryResult:
    """Which partitions expired, or with ``dry_run`` would, in the order of their values, and the commits of it.

    ``waiting`` have expired too and wait for the next run ('partition.expiration-max-num'). The time of ``unread`` could
    not be told by their values, so they stay. ``older_than`` is the bound in UTC. ``complete`` is False if the
    deadline ended it, or the ``error`` of a later commit. ``after_commit_failures`` are steps after the commits that
    failed, which changes nothing of them.
    """

    table: str
    dry_run: bool = False
    older_than: datetime
    partitions: tuple[str, ...] = ()
    waiting: int = 0
    unread: tuple[str, ...] = ()
    files: int = 0
    bytes: int = 0
    snapshot_ids: tuple[int, ...] = ()
    complete: bool = True
    error: Failure | None = None
    after_commit_failures: tuple[Failure, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """The result as plain values, for a report: of the ``error`` its text, class, kind and remedy."""
        return {**asdict(self), "older_than": _iso(self.older_than), **error_values(self.error)}


@dataclass(frozen=True, kw_only=True)
class TagInfo:
    """A tag: the snapshot that it names, with its schema, rows (of its files, older versions included) and commit time.

    ``created_at`` (the writer's wall clock, without a zone) and ``time_retained`` are None for a tag that never expires.
    """

    name: str
    snapshot_id: int
    schema_id: int
    rows: int
    committed_at: datetime
    created_at: datetime | None = None
    time_retained: timedelta | None = None

    def as_dict(self) -> dict[str, object]:
        """The tag as plain values, for a report: times are ISO texts, the retention is in seconds."""
        retained = self.time_retained
        return {
            **asdict(self),
            "committed_at": self.committed_at.isoformat(),
            "created_at": _iso(self.created_at),
            "time_retained": None if retained is None else retained.total_seconds(),
        }


@dataclass(frozen=True, kw_only=True)
class TagDeletionResult:
    """What a deletion of tags did, or with ``dry_run`` would do.

    ``tags`` are the names of those that went, ``files`` and ``bytes`` (as metadata tells sizes) what no snapshot, other
    tag, branch or long-lived changelog needs without them. ``failures`` names files that could not be deleted; orphan
    removal takes them. ``older_than`` is the bound in UTC of an expiry that has one.
    """

    table: str
    dry_run: bool = False
    older_than: datetime | None = None
    tags: tuple[str, ...] = ()
    files: int = 0
    bytes: int = 0
    failures: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """The result as plain values, for a report."""
        return {**asdict(self), "older_than": _iso(self.older_than)}


@dataclass(frozen=True, kw_only=True)
class CheckFinding:
    """Something of a table that is not as it must be.

    ``severity`` is 'error' (reads of a retained state fail or give wrong rows, or will) or 'warning'. ``rule`` is the
    name of the rule that is broken (docs/check.md), ``thing`` what breaks it: the path of a file, or a bucket.
    ``problem`` says what is wrong, ``remedy`` what to do.
    """

    severity: str
    rule: str
    thing: str
    problem: str
    remedy: str


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """What a check found. ``findings`` has errors first; ``findings_left_out`` more were counted only.

    ``complete`` is False where the deadline ended it. ``snapshots``, ``tags``, ``manifests`` were read, of all branches;
    ``files`` live data files were judged by their entries, of which ``files_opened`` by their footers and ``files_read``,
    with ``rows_read`` rows, in full.
    """

    table: str
    complete: bool = True
    findings: tuple[CheckFinding, ...] = ()
    findings_left_out: int = 0
    snapshots: int = 0
    tags: int = 0
    manifests: int = 0
    files: int = 0
    files_opened: int = 0
    files_read: int = 0
    rows_read: int = 0
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether all was looked at, and nothing found that makes rows wrong."""
        return self.complete and not any(finding.severity == "error" for finding in self.findings)

    def as_dict(self) -> dict[str, object]:
        """The result as plain values, for a report."""
        return {**asdict(self), "ok": self.ok}

    def as_text(self) -> str:
        """The result for people: a line of what was looked at, then each finding with its remedy."""
        looked = f"{self.snapshots} snapshots, {self.tags} tags, {self.manifests} manifests, {self.files} data files"
        opened = f"{self.files_opened} opened, {self.files_read} read in full with {self.rows_read} rows"
        ended = "" if self.complete else "; the deadline ended it early"
        lines = [f"Table {self.table}: {len(self.findings) or 'no'} findings in {looked} ({opened}){ended}."]
        for finding in self.findings:
            lines.append(f"{finding.severity} {finding.rule}: {finding.thing}")
            lines += [f"  {finding.problem}", f"  {finding.remedy}"]
        if self.findings_left_out:
            lines.append(f"And {self.findings_left_out} more findings of the same rules.")
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class RollbackResult:
    """What a rollback did, or with ``dry_run`` would do.

    The table is at ``snapshot_id``, which was ``restored`` from a tag where it had expired. ``snapshots``, ``tags`` and
    ``changelogs`` (long-lived ones, by their ids) are those that went, all of later snapshots; ``consumers`` now read the
    snapshot after it next, as they were beyond. ``files`` and ``bytes`` (as metadata tells sizes) are what no snapshot,
    tag, branch or long-lived changelog needs any more. ``failures`` names files that could not be deleted; orphan removal
    takes them. ``timestamp`` is the time in UTC that the snapshot was chosen by (None: by its id or a tag).
    """

    table: str
    snapshot_id: int
    dry_run: bool = False
    timestamp: datetime | None = None
    restored: bool = False
    snapshots: tuple[int, ...] = ()
    tags: tuple[str, ...] = ()
    changelogs: tuple[int, ...] = ()
    consumers: tuple[str, ...] = ()
    files: int = 0
    bytes: int = 0
    failures: tuple[str, ...] = ()
    seconds: float = 0.0

    def as_dict(self) -> dict[str, object]:
        """The result as plain values, for a report."""
        return {**asdict(self), "timestamp": _iso(self.timestamp)}


@dataclass(frozen=True, kw_only=True)
class ConsumerInfo:
    """A consumer: ``next_snapshot_id`` is what it reads next, ``recorded_at`` (UTC) when that was recorded."""

    name: str
    next_snapshot_id: int
    recorded_at: datetime | None = None

    def as_dict(self) -> dict[str, object]:
        """The consumer as plain values, for a report."""
        return {**asdict(self), "recorded_at": _iso(self.recorded_at)}


@dataclass(frozen=True, kw_only=True)
class ConsumerExpiryResult:
    """What an expiry of consumers did, or with ``dry_run`` would do: ``consumers`` are the names of those that went.

    ``older_than`` is the bound in UTC.
    """

    table: str
    dry_run: bool = False
    older_than: datetime
    consumers: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """The result as plain values, for a report."""
        return {**asdict(self), "older_than": _iso(self.older_than)}
