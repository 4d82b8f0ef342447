"""Results of maintenance: expiry, orphan removal, analysis, check, partitions, and all upkeep in one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from lakelsm.results.failure import Failure, error_values
from lakelsm.results.result import OperationResult, Result
from lakelsm.text_table import amount


@dataclass(frozen=True, kw_only=True, repr=False)
class ExpiryResult(OperationResult):
    """The result of an expiry of snapshots; with ``dry_run``, of one that would run.

    ``snapshots`` expired; ``earliest_snapshot_id`` is the oldest kept one (None: the table has none). ``older_than`` is
    the age limit as a time in UTC; None if only the number of snapshots decides. ``changelogs_kept`` counts expired
    snapshots that became long-lived changelogs, ``changelogs_expired`` deleted long-lived changelogs. ``data_files``
    (with their indexes), ``changelog_files`` and ``metadata_files`` (manifests, manifest lists, index and statistics
    files) count deleted files, ``bytes`` their size from metadata. ``failures`` names files that could not be deleted;
    orphan removal deletes them. ``held_by`` lists what keeps older snapshots, such as 'consumer etl, which reads
    snapshot 41 next'. ``protected_files`` counts files of expired snapshots that tags, branches or long-lived
    changelogs need. ``complete`` is False if the deadline ended the run.
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
        """True if a snapshot or a long-lived changelog expired."""
        return bool(self.snapshots or self.changelogs_expired)


@dataclass(frozen=True, kw_only=True, repr=False)
class OrphanResult(OperationResult):
    """The result of a removal of orphan files; with ``dry_run``, of one that would run.

    ``files`` counts orphan files, removed except for those in ``failures``; ``kinds`` counts them by kind ('data',
    'manifest', …), ``bytes`` is their size, ``examples`` are some of their paths below the table's directory.
    ``directories`` counts removed empty directories, ``files_listed`` all files of the table. ``files_too_young``
    counts unreferenced files that are kept: they changed at ``older_than`` (UTC) or later, and may belong to a commit
    in progress. If the clock of the store is behind that of this machine, the bound is earlier by the difference.
    ``complete`` is False if the deadline ended the run.
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
        """True if there were orphan files."""
        return self.files > 0


@dataclass(frozen=True, kw_only=True, repr=False)
class AnalyzeResult(OperationResult):
    """The result of an analysis: statistics of ``columns`` of the snapshot ``analyzed_snapshot_id``.

    ``snapshot_id`` is the snapshot that has them. Both ids are None for a table without snapshots, ``snapshot_id`` also
    with ``dry_run``. ``rows`` counts merged rows, ``bytes`` is their share of the data files. ``after_commit_failures``
    are steps that failed after the commit; the commit remains valid.
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
        """True if there was a snapshot to analyze."""
        return self.analyzed_snapshot_id is not None


@dataclass(frozen=True, kw_only=True, repr=False)
class PartitionDropResult(OperationResult):
    """The names of dropped partitions, and the number and bytes of their data files; with ``dry_run``, of those to drop.

    ``snapshot_id`` is the id of the commit (None: no partition matched). Files are deleted when the earlier snapshots
    expire. ``after_commit_failures`` are steps that failed after the commit; the commit remains valid.
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
        """True if a partition matched."""
        return bool(self.partitions)


@dataclass(frozen=True, kw_only=True, repr=False)
class PartitionExpiryResult(OperationResult):
    """The names of dropped partitions in the order of their values, and the commits; with ``dry_run``, of those to drop.

    ``waiting`` counts expired partitions of the next run ('partition.expiration-max-num'). ``unread`` names kept
    partitions with values that are not times. ``older_than`` is the bound in UTC. ``complete`` is False if the deadline
    ended the run, or the ``error`` of a later commit. ``after_commit_failures`` are steps that failed after the
    commits; the commits remain valid.
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
        """True if a partition expired."""
        return bool(self.partitions)

    @property
    def outcome(self) -> str:
        """'failed' if there is an ``error``, else as for every operation."""
        return super().outcome if self.error is None else "failed"

    def as_dict(self) -> dict[str, object]:
        """Return the result as plain values, the error as ``error``, ``error_class``, ``error_kind`` and ``remedy``."""
        return {**super().as_dict(), **error_values(self.error)}


@dataclass(frozen=True, kw_only=True, repr=False)
class CheckFinding(Result):
    """One fault of a table that `check` found.

    ``severity`` is 'error' (reads of a retained snapshot fail or return wrong rows, now or later) or 'warning'.
    ``rule`` is the name of the broken rule (docs/check.md), ``thing`` the path of the file, or the bucket, that breaks
    it. ``problem`` describes the fault, ``remedy`` the recommended action.
    """

    severity: str
    rule: str
    thing: str
    problem: str
    remedy: str


@dataclass(frozen=True, kw_only=True, repr=False)
class CheckResult(OperationResult):
    """The result of a check. ``findings`` lists errors first; ``findings_left_out`` counts further findings.

    ``complete`` is False if the deadline ended the check. ``snapshots``, ``tags`` and ``manifests`` count what was
    read, of all branches. ``files`` counts live data files whose entries were checked, ``files_opened`` those whose
    footers were read, ``files_read`` those whose ``rows_read`` rows were read.
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
        """True if the check is complete and found no error."""
        return self.complete and not any(finding.severity == "error" for finding in self.findings)

    @property
    def changed(self) -> bool:
        """False, because a check changes nothing."""
        return False

    @property
    def outcome(self) -> str:
        """'findings' (there is an error), 'warnings', 'done' (no findings), or 'deadline'."""
        if any(finding.severity == "error" for finding in self.findings):
            return "findings"
        if not self.complete:
            return "deadline"
        return "warnings" if self.findings else "done"

    def as_text(self) -> str:
        """Return a line of totals, then each finding with its remedy."""
        checked = [(self.snapshots, "snapshot"), (self.tags, "tag"), (self.manifests, "manifest")]
        scope = ", ".join(amount(*each) for each in [*checked, (self.files, "data file")])
        opened = f"{self.files_opened} opened, {self.files_read} read in full with {self.rows_read:,} rows"
        ended = "" if self.complete else "; stopped at the deadline"
        lines = [f"Table {self.table}: {amount(len(self.findings), 'finding')} in {scope} ({opened}){ended}."]
        for finding in self.findings:
            lines.append(f"{finding.severity} {finding.rule}: {finding.thing}")
            lines += [f"  {finding.problem}", f"  {finding.remedy}"]
        if self.findings_left_out:
            lines.append(f"{self.findings_left_out} more findings of the same rules are not shown.")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, object]:
        """Return the result as plain values, with ``ok``."""
        return {**super().as_dict(), "ok": self.ok}


@dataclass(frozen=True, kw_only=True, repr=False)
class UpkeepStep(Result):
    """One step of `TableMaintenance.run_all`: its ``name``, its outcome, and its result or error.

    ``outcome`` is that of the ``result`` ('done', 'nothing', 'planned', 'deadline', 'findings', 'warnings', 'conflict'
    or 'failed'). Without a result it is 'conflict' or 'failed' with the ``error`` that was raised, or 'nothing' or
    'deadline' with the ``reason`` why the step did not run.
    """

    name: str
    outcome: str
    result: Result | None = None
    error: Failure | None = None
    reason: str | None = None


#: The outcomes of steps, most severe first.
_MOST_SEVERE = ("failed", "findings", "conflict", "deadline", "warnings", "planned", "done", "nothing")


@dataclass(frozen=True, kw_only=True, repr=False)
class UpkeepResult(OperationResult):
    """The result of `TableMaintenance.run_all`: its ``steps``, in the order in which they ran."""

    table: str
    dry_run: bool = False
    steps: tuple[UpkeepStep, ...] = ()
    seconds: float = 0.0

    @property
    def outcome(self) -> str:
        """The most severe outcome of a step: 'failed', 'findings', 'conflict', else one that is not a fault."""
        return min((step.outcome for step in self.steps), key=_MOST_SEVERE.index, default="nothing")

    @property
    def changed(self) -> bool:
        """True if a step had anything to do."""
        return self.outcome != "nothing"

    @property
    def ok(self) -> bool:
        """True if no step failed, conflicted with another commit, or found damage."""
        return self.outcome not in _MOST_SEVERE[:3]
