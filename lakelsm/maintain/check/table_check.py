"""The check of a table: the references of every branch, its newest state by metadata, then its data files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakelsm.environment import SYSTEM, Environment
from lakelsm.errors import InvalidInputError
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.paths import MAIN_BRANCH, TablePaths
from lakelsm.maintain.check.audit_plan import CheckedData
from lakelsm.maintain.check.branch_references import BranchReferences
from lakelsm.maintain.check.data_audit import DataAudit
from lakelsm.maintain.check.findings import Findings
from lakelsm.maintain.check.live_state import LiveState
from lakelsm.maintain.check.manifests import StoredFiles
from lakelsm.maintain.check.rules import BRANCH_UNFINISHED, BRANCH_UNREADABLE
from lakelsm.maintain.check.state_references import CheckedState
from lakelsm.maintain.check.unreferenced_manifests import UnreferencedManifests
from lakelsm.plan.bucket_files import partition_filter
from lakelsm.plan.count_plan import selects_partitions
from lakelsm.predicate.predicate import Predicate
from lakelsm.results import CheckResult
from lakelsm.runner.runner import Runner
from lakelsm.snapshots.deletion_vectors import DeletionVectors
from lakelsm.snapshots.hash_indexes import HashIndexes
from lakelsm.snapshots.manifest_scan import live_entries
from lakelsm.snapshots.schema_store import SchemaStore
from lakelsm.snapshots.table_store import TableStore


@dataclass(frozen=True, kw_only=True)
class CheckScope:
    """The scope of a check: ``partitions`` selects live files (None: all), ``data`` the rows to read of them."""

    data: CheckedData = CheckedData.NONE
    partitions: Predicate | None = None
    deadline: float | None = None


def checked_check_scope(
    store: TableStore, data: CheckedData, partitions: Predicate | None, deadline: float | None
) -> CheckScope:
    """Return the scope of a call. Raises InvalidInputError unless the condition selects whole partitions."""
    if not selects_partitions(store, partitions):
        raise InvalidInputError(
            "where: a check selects whole partitions. Use a condition that compares partition columns "
            f"({', '.join(store.schema.partition_keys) or 'none'}) with literals."
        )
    return CheckScope(data=data, partitions=partitions, deadline=deadline)


def check_table(
    store: TableStore, scope: CheckScope, runner: Runner, environment: Environment = SYSTEM
) -> CheckResult:
    """Check a table with all of its branches. A fault never raises an error: every fault is a finding.

    Metadata is read in this process, data files by tasks of the ``runner``.
    """
    return _Check(store, scope, runner, environment).run()


class _Check:
    def __init__(self, store: TableStore, scope: CheckScope, runner: Runner, environment: Environment) -> None:
        self._store = store
        self._scope = scope
        self._monotonic = environment.monotonic
        self._began = environment.monotonic()
        self._complete = True
        self._findings = Findings()
        self._unreferenced = UnreferencedManifests(store)
        self._references: list[BranchReferences] = []
        self._unfinished: dict[str, str] = {}
        self._snapshots = self._tags = self._manifests = self._files = 0
        self._audit = DataAudit(
            runner, self._findings, scope.data, chance=environment.chance(), has_time=self._has_time
        )

    def run(self) -> CheckResult:
        paths = self._store.branches.paths()
        for each in paths:
            if not self._has_time():
                break
            branch = self._opened(each)
            if branch is not None:
                self._check_branch(branch)
        if self._has_time():
            self._unreferenced.report(self._findings)
        owners = self._findings.owners
        replaced = [owner for references in self._references for owner in references.replaced(owners)]
        removed = [*self._removed_branches(paths), *replaced]
        findings, left_out = self._findings.reported(self._store.file_io, removed)
        return CheckResult(
            table=self._store.name,
            complete=self._complete,
            findings=tuple(findings),
            findings_left_out=left_out,
            snapshots=self._snapshots,
            tags=self._tags,
            manifests=self._manifests,
            files=self._files,
            files_opened=self._audit.counts["files_opened"],
            files_read=self._audit.counts["files_read"],
            rows_read=self._audit.counts["rows_read"],
            seconds=self._monotonic() - self._began,
        )

    def _removed_branches(self, branches: Sequence[TablePaths]) -> Sequence[str]:
        """Return the directories of branches that were deleted or completed since they were checked."""
        existing = {paths.branch_root for paths in self._store.branches.paths()}
        completed = {root for branch, root in self._unfinished.items() if self._store.branches.is_whole(branch)}
        roots = [paths.branch_root for paths in branches]
        return [root for root in roots if root in completed or root not in existing]

    def _opened(self, paths: TablePaths) -> TableStore | None:
        """Return a branch with its newest schema; None if it has no readable schema."""
        if paths.branch == self._store.paths.branch:
            return self._store
        file_io, hint = self._store.file_io, paths.latest_hint
        is_whole = paths.branch == MAIN_BRANCH or self._store.branches.is_whole(paths.branch)
        if not is_whole and not file_io.exists(hint):
            problem = "its creation, renaming or deletion was interrupted, or is still running"
            self._findings.add(BRANCH_UNFINISHED, paths.branch_root, problem)
            self._unfinished[paths.branch] = paths.branch_root
        elif not is_whole:
            problem = f"{paths.schema_file(0)} does not exist, but {hint} does"
            self._findings.add(BRANCH_UNREADABLE, paths.branch_root, problem)
        else:
            with self._findings.errors_as(BRANCH_UNREADABLE, paths.branch_root):
                schema = SchemaStore(file_io, paths).latest()
                return replace(self._store, paths=paths).with_schema(schema)
        return None

    def _check_branch(self, store: TableStore) -> None:
        reads_all = self._scope.data is CheckedData.FULL

        def check_tag(state: CheckedState) -> None:
            self._check_state(store, state, references)

        def check_changelog(entries: Sequence[ManifestEntry], owner: str) -> None:
            self._audit.audit_changelog(store, entries, references.schemas, owner)

        references = BranchReferences(
            store,
            StoredFiles(store),
            self._findings,
            self._has_time,
            named=self._unreferenced.named,
            check_tag=check_tag if reads_all else None,
            check_changelog=check_changelog if reads_all else None,
        )
        self._references.append(references)
        state = references.follow()
        self._snapshots += references.snapshots
        self._tags += references.tags
        self._manifests += references.manifests
        if state is not None and self._has_time():
            self._files += self._check_state(store, state, references)

    def _check_state(self, store: TableStore, state: CheckedState, references: BranchReferences) -> int:
        """Check the live files of a state. Return their number."""
        entries = live_entries(state.batches, partition_filter(store, self._scope.partitions))
        live = LiveState(store, state.snapshot, self._findings, owner=state.owner, schemas=references.schemas.keys())
        sound = live.check_files(entries)
        vectors: DeletionVectors | None = None
        indexes: HashIndexes = {}
        if state.index_entries is not None:
            vectors = live.vectors(entries)
            indexes = live.hash_indexes(entries)
        self._audit.audit(store, sound, references.schemas, vectors=vectors, indexes=indexes, owner=state.owner)
        return len(entries)

    def _has_time(self) -> bool:
        """Return whether there is time left. If not, the check is incomplete."""
        deadline = self._scope.deadline
        if deadline is not None and self._monotonic() - self._began > deadline:
            self._complete = False
        return self._complete
