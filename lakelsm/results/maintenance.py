"""What maintenance returns: expiry, orphan removal, analysis, check, and work on partitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from lakelsm.results.failure import Failure, error_values
from lakelsm.results.result import OperationResult, Result


@dataclass(frozen=True, kw_only=True, repr=False)
class ExpiryResult(OperationResult):
    """What an expiry of snapshots did, or with ``dry_run`` would do.

    ``snapshots`` expired; ``earliest_snapshot_id`` is the oldest that is kept (None: the table has none).
    ``older_than`` is the age limit as a time in UTC; None where the number of snapshots alone decides.
    ``changelogs_kept`` of the expired stay as long-lived changelogs, ``changelogs_expired`` of those kept before went.
    ``data_files`` (with their indexes), ``changelog_files`` and ``metadata_files`` (manifests and their lists, index and
    statistics files) were deleted, in all ``bytes`` from metadata. ``failures`` names those that could not be;
    orphan removal deletes them. ``held_by`` is what keeps older snapshots, such as 'consumer etl, which reads snapshot 41
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

    @property
    def changed(self) -> bool:
        """Whether a snapshot or a long-lived changelog expired."""
        return bool(self.snapshots or self.changelogs_expired)


@dataclass(frozen=True, kw_only=True, repr=False)
class OrphanResult(OperationResult):
    """What a removal of orphans did, or with ``dry_run`` would do.

    ``files`` were found and removed, except for those in ``failures``: so many of each of the ``kinds``
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

    @property
    def changed(self) -> bool:
        """Whether there were orphans."""
        return self.files > 0


@dataclass(frozen=True, kw_only=True, repr=False)
class AnalyzeResult(OperationResult):
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

    @property
    def changed(self) -> bool:
        """Whether there was a snapshot to analyze."""
        return self.analyzed_snapshot_id is not None


@dataclass(frozen=True, kw_only=True, repr=False)
class PartitionDropResult(OperationResult):
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

    @property
    def changed(self) -> bool:
        """Whether there were partitions to drop."""
        return bool(self.partitions)


@dataclass(frozen=True, kw_only=True, repr=False)
class PartitionExpiryResult(OperationResult):
    """Which partitions expired, or with ``dry_run`` would, in the order of their values, and the commits of it.

    ``waiting`` are expired and wait for the next run ('partition.expiration-max-num'). The time of ``unread`` could
    not be read from their values, so they are kept. ``older_than`` is the bound in UTC. ``complete`` is False if the
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

    @property
    def changed(self) -> bool:
        """Whether a partition expired."""
        return bool(self.partitions)

    @property
    def outcome(self) -> str:
        """As of every operation, or 'failed' where there is an ``error``."""
        return super().outcome if self.error is None else "failed"

    def as_dict(self) -> dict[str, object]:
        """The result as plain values. ``error`` becomes its text, with ``error_class``, ``error_kind`` and ``remedy``."""
        return {**super().as_dict(), **error_values(self.error)}


@dataclass(frozen=True, kw_only=True, repr=False)
class CheckFinding(Result):
    """Something of a table that is not as it must be.

    ``severity`` is 'error' (reads of a retained state fail or give wrong rows, or will) or 'warning'. ``rule`` is the
    name of the rule that is broken (docs/check.md), ``thing`` what breaks it: the path of a file, or a bucket.
    ``problem`` describes it, ``remedy`` says what to do.
    """

    severity: str
    rule: str
    thing: str
    problem: str
    remedy: str


@dataclass(frozen=True, kw_only=True, repr=False)
class CheckResult(OperationResult):
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

    @property
    def changed(self) -> bool:
        """False: a check changes nothing."""
        return False

    @property
    def outcome(self) -> str:
        """'findings' (there is an error), 'warnings', 'done' (nothing was found), or 'deadline'."""
        if any(finding.severity == "error" for finding in self.findings):
            return "findings"
        if not self.complete:
            return "deadline"
        return "warnings" if self.findings else "done"

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

    def as_dict(self) -> dict[str, object]:
        """The result as plain values, with ``ok``."""
        return {**super().as_dict(), "ok": self.ok}


@dataclass(frozen=True, kw_only=True, repr=False)
class UpkeepStep(Result):
    """A step of `UpkeepResult`: its ``name``, how it ended, and what the call of the step returned or raised.

    ``outcome`` is that of the ``result`` ('done', 'nothing', 'planned', 'deadline', 'findings', 'warnings', 'conflict' or
    'failed'). Without a result it is 'conflict' or 'failed' with the ``error`` that was raised, or 'nothing' or
    'deadline' with the ``reason`` why the step was left out.
    """

    name: str
    outcome: str
    result: Result | None = None
    error: Failure | None = None
    reason: str | None = None


#: The outcomes of steps, the most severe first.
_MOST_SEVERE = ("failed", "findings", "conflict", "deadline", "warnings", "planned", "done", "nothing")


@dataclass(frozen=True, kw_only=True, repr=False)
class UpkeepResult(OperationResult):
    """What all the upkeep of a table did, or with ``dry_run`` would do: its ``steps``, in the order that they ran in."""

    table: str
    dry_run: bool = False
    steps: tuple[UpkeepStep, ...] = ()
    seconds: float = 0.0

    @property
    def outcome(self) -> str:
        """The most severe outcome of a step, in the order 'failed', 'findings', 'conflict', and those without a fault."""
        return min((step.outcome for step in self.steps), key=_MOST_SEVERE.index, default="nothing")

    @property
    def changed(self) -> bool:
        """Whether a step had anything to do."""
        return self.outcome != "nothing"

    @property
    def ok(self) -> bool:
        """Whether no step failed, lost to another commit or found damage."""
        return self.outcome not in _MOST_SEVERE[:3]
