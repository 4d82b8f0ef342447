"""Executes a compaction plan: tasks rewrite files, commits publish groups of buckets, a lost group is discarded."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lakelsm.commit.attempt_files import AttemptFiles, delete_unpublished
from lakelsm.commit.commit_identity import new_commit_user
from lakelsm.commit.commit_message import CommitMessage, CommitOutcome
from lakelsm.commit.committer import Committer
from lakelsm.compact.bucket_vectors import write_vectors
from lakelsm.compact.remapped_vectors import RemappedVectors, VectorRemapper
from lakelsm.compact.rewrite_task import RewriteTask
from lakelsm.environment import SYSTEM, Environment, login_and_host
from lakelsm.errors import CommitConflictError, VectorsChangedError
from lakelsm.failures import after_commit_step, note_if_interrupted
from lakelsm.format.data_file.key_value_file import FileLayout
from lakelsm.format.file_names import AttemptNames
from lakelsm.format.manifest import FileKind, ManifestEntry
from lakelsm.format.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from lakelsm.merge.changelog import ChangelogRule
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.merge.record_expiry import RecordExpiry
from lakelsm.merge.run_reader import RunReader
from lakelsm.operation_log import log_step
from lakelsm.plan.compaction_plan import (
    FULL_COMPACTION_PROPERTY,
    BucketCompaction,
    CompactionPlan,
    CompactionScope,
    plan_table,
)
from lakelsm.plan.rewrite_units import RewriteUnit, changelog_rule, rewrite_units
from lakelsm.results import CompactionResult, CompactionStatus, Failure
from lakelsm.results.result import sums
from lakelsm.runner.runner import Runner
from lakelsm.runner.task_messages import TaskMessages
from lakelsm.snapshots.maintenance_record import DONE, PARTIAL, MaintenanceRecord
from lakelsm.snapshots.table_store import TableStore

#: The default memory of one compaction task, in bytes.
DEFAULT_TASK_MEMORY = 512 << 20

_LOG = logging.getLogger("lakelsm.compact")
_AGAIN = "Run the compaction again: nothing of this commit is visible, and no data is lost."
_REMEDY = "Some buckets are compacted; run the compaction again for the others."


@dataclass(frozen=True)
class CompactionLimits:
    """The limits of a compaction.

    ``commit_every``: buckets in each commit (None: all of them, or with a deadline as many as the runner has cores).
    ``deadline``: seconds after which no further commit begins. ``task_memory``: memory of a task in bytes.
    """

    commit_every: int | None = None
    deadline: float | None = None
    task_memory: int = DEFAULT_TASK_MEMORY


class Compactor:
    """Compacts one table."""

    def __init__(self, runner: Runner, store: TableStore, environment: Environment = SYSTEM) -> None:
        self._runner = runner
        self._store = store
        self._environment = environment

    def compact(
        self,
        scope: CompactionScope,
        limits: CompactionLimits = CompactionLimits(),
        *,
        dry_run: bool = False,
        commit_user: str | None = None,
        identifier: int = BATCH_COMMIT_IDENTIFIER,
        snapshot: Snapshot | None = None,
        changelog: bool = True,
    ) -> CompactionResult:
        """Compact the buckets of the scope, as of a snapshot (default: the newest).

        Writes the changelog that ``changelog-producer`` needs, unless ``changelog`` is false. An error before the first
        commit is raised. An error after a commit becomes a warning and ends the compaction with status FAILED. A commit
        that loses a race discards its own buckets only; the status is CONFLICT.
        """
        started = self._environment.monotonic()
        store = self._store
        snapshot = snapshot or store.snapshots.latest()
        if snapshot is None:
            return CompactionResult(table=store.name, status=CompactionStatus.NOTHING)
        now = self._environment.clock()
        try:
            with store.while_changed(snapshot):
                plan = plan_table(store, snapshot, scope, self._environment.local_wall_clock(now), now)
        except CommitConflictError as error:
            return self._lost(error)
        log_step(
            _LOG, "Table %s: the compaction of snapshot %d has %d buckets", store.name, snapshot.id, len(plan.buckets)
        )
        if not plan.buckets:
            return CompactionResult(
                table=store.name, status=CompactionStatus.NOTHING, seconds=self._seconds_since(started)
            )
        plan.refuse_other_formats(store)
        if dry_run:
            planned = self._planned(plan, plan.buckets, CompactionStatus.PLANNED)
            return replace(planned, seconds=self._seconds_since(started))
        user = commit_user or new_commit_user(store.options, self._environment.new_uuid)
        size = limits.commit_every or self._commit_size(limits, plan)
        total = CompactionResult(table=store.name, status=CompactionStatus.DONE)
        whole_table = scope == CompactionScope(full=True)
        record = self._new_record(user, now)
        for first in range(0, len(plan.buckets), size):
            if first and limits.deadline is not None and self._seconds_since(started) > limits.deadline:
                total = replace(total, status=_joined(total.status, CompactionStatus.DEADLINE))
                break
            group = plan.buckets[first : first + size]
            last = first + size >= len(plan.buckets) and total.status is CompactionStatus.DONE
            so_far = _continued(record, total, last)
            full = whole_table and last
            work = partial(self._run, plan, group, limits.task_memory, identifier, full, changelog, so_far)
            run = partial(self._run_or_lose, snapshot, work)
            total = combined(total, run() if not total.snapshot_ids else self._run_on(run, total.snapshot_ids))
            if total.status is CompactionStatus.FAILED:
                break
        return replace(total, seconds=self._seconds_since(started))

    def _run_or_lose(self, snapshot: Snapshot, run: Callable[[], CompactionResult]) -> CompactionResult:
        try:
            with self._store.while_changed(snapshot):
                return run()
        except CommitConflictError as error:
            return self._lost(error)

    def _lost(self, error: CommitConflictError) -> CompactionResult:
        lost = Failure.of(error, "the commit of a compaction", _AGAIN)
        return CompactionResult(
            table=self._store.name, status=CompactionStatus.CONFLICT, error=lost, conflicts=(lost,)
        )

    def _run_on(self, run: Callable[[], CompactionResult], committed: tuple[int, ...]) -> CompactionResult:
        """Run a group of buckets after others were committed; its error must not hide their snapshots."""
        result = CompactionResult(table=self._store.name, status=CompactionStatus.NOTHING)
        with (
            note_if_interrupted(self._store.name, committed),
            after_commit_step(self._store.name, "the compaction of further buckets", _REMEDY) as failures,
        ):
            result = run()
        return replace(result, status=CompactionStatus.FAILED, error=failures[0]) if failures else result

    def _new_record(self, user: str, now: int) -> MaintenanceRecord:
        _, host = login_and_host()
        run = self._environment.new_uuid()
        return MaintenanceRecord(run=run[:8], operation="compact", user=user, host=host, started=now, seconds=0.0)

    def _seconds_since(self, started: float) -> float:
        return self._environment.monotonic() - started

    def _commit_size(self, limits: CompactionLimits, plan: CompactionPlan) -> int:
        """Return the default number of buckets in a commit. A deadline is checked between commits."""
        return len(plan.buckets) if limits.deadline is None else self._runner.cores

    def _planned(
        self, plan: CompactionPlan, buckets: Sequence[BucketCompaction], status: CompactionStatus
    ) -> CompactionResult:
        rewritten = [file for bucket in buckets for file in bucket.rewritten_files]
        return CompactionResult(
            table=self._store.name,
            status=status,
            buckets=len(buckets),
            files_rewritten=len(rewritten),
            files_upgraded=sum(len(bucket.plan.upgrades) for bucket in buckets),
            bytes_read=sum(file.size for file in rewritten),
            rows_read=sum(file.row_count for file in rewritten),
        )

    def _run(
        self,
        plan: CompactionPlan,
        buckets: Sequence[BucketCompaction],
        task_memory: int,
        identifier: int,
        completes_full: bool,
        changelog: bool,
        record: MaintenanceRecord,
    ) -> CompactionResult:
        """Rewrite some buckets and commit them as one snapshot. ``record`` is the maintenance record of the run so far.

        Raises CommitConflictError if a concurrent commit, rollback or expiry conflicts.
        """
        store = self._store
        rule = changelog_rule(store.schema, store.options) if changelog else None
        units = [unit for bucket in buckets for unit in rewrite_units(store, plan, bucket, rule is not None)]
        directories = {store.paths.index_dir, *(unit.directory for unit in units)}
        with AttemptFiles(store, AttemptNames.new(self._environment.new_uuid), lambda: directories) as files:
            log_step(_LOG, "Table %s: %d units of %d buckets are rewritten", store.name, len(units), len(buckets))
            written = self._rewrite(plan, units, rule, task_memory, files.names) if units else TaskMessages()
            record = replace(
                record,
                seconds=(self._environment.clock() - record.started) / 1000,
                files=record.files + len(written.entries),
                bytes=record.bytes + sum(entry.file.file_size for entry in written.entries),
            )
            full = {FULL_COMPACTION_PROPERTY: "true"} if completes_full else {}
            commit = partial(
                Committer(store, environment=self._environment).commit,
                CommitKind.COMPACT,
                commit_user=record.user,
                identifier=identifier,
                properties={**full, **record.as_property()},
            )
            outcome, masked, remapped = self._published(plan, buckets, written, files, task_memory, commit)
        ids = () if outcome.snapshot is None else (outcome.snapshot.id,)
        return replace(
            self._planned(plan, buckets, CompactionStatus.DONE),
            snapshot_ids=ids,
            files_written=len(written.entries),
            bytes_written=sum(entry.file.file_size for entry in written.entries),
            rows_written=sum(entry.file.row_count for entry in written.entries),
            changelog_rows=sum(entry.file.row_count for entry in written.changelog_entries),
            rows_masked=masked,
            rows_remapped=remapped,
            after_commit_failures=outcome.failures,
        )

    def _published(
        self,
        plan: CompactionPlan,
        buckets: Sequence[BucketCompaction],
        written: TaskMessages,
        files: AttemptFiles,
        task_memory: int,
        commit: Callable[[CommitMessage], CommitOutcome],
    ) -> tuple[CommitOutcome, int, int]:
        """Commit the written files; if only vectors changed since, map the masked rows to the newest snapshot and retry.

        Returns the outcome, the number of newly masked rows, and how many of them were mapped. Raises
        CommitConflictError as `Committer.commit`.
        """
        store = self._store
        replaced = {file.index for bucket in buckets for file in bucket.rewritten_files}
        stay = [entry for index, entry in enumerate(plan.entries) if index not in replaced]
        remapped = RemappedVectors(
            snapshot=plan.snapshot, vectors=plan.vectors, files=stay, positions=written.positions, found=0
        )
        remapper = VectorRemapper(
            self._runner, store, plan=plan, buckets=buckets, written=written, task_memory=task_memory, names=files.names
        )
        ids = [(bucket.partition, bucket.bucket) for bucket in buckets]
        retries = store.options.commit_max_retries
        while True:
            vectors = write_vectors(
                store, remapped.vectors, remapped.files, ids, positions=remapped.positions, names=files.names
            )
            message = CommitMessage(
                [*_replaced(plan, buckets), *written.entries],
                changelog_entries=written.changelog_entries,
                index_adds=vectors.adds,
                index_deletes=vectors.deletes,
                base_snapshot_id=remapped.snapshot.id,
                base_fingerprint=remapped.snapshot.fingerprint,
            )
            try:
                return files.commit(partial(commit, message)), vectors.masked, remapped.found
            except VectorsChangedError as lost:
                delete_unpublished(store.file_io, (store.paths.index(entry.file.file_name) for entry in vectors.adds))
                latest = store.snapshots.latest()
                retries -= 1
                if latest is None or retries < 0:
                    raise
                log_step(_LOG, "Table %s: masked rows are mapped to snapshot %d: %s", store.name, latest.id, lost)
                remapped = remapper.on(latest, lost)

    def _rewrite(
        self,
        plan: CompactionPlan,
        units: Sequence[RewriteUnit],
        rule: ChangelogRule | None,
        task_memory: int,
        names: AttemptNames,
    ) -> TaskMessages:
        store = self._store
        used = (file.schema_id for unit in units for part in unit.sections for file in part.files)
        schemas = store.schemas_of([store.schema.id, *used], plan.snapshot)
        reader = RunReader(
            store.file_io, store.schema, schemas=schemas, columns=store.schema.field_names, memory_bytes=task_memory // 2
        )
        layout = FileLayout.of(store.schema, store.options, task_memory // 8).for_compaction()
        spec, expiry = MergeSpec.of(store.schema, store.options), RecordExpiry.of(store.options)
        changelog_layout = layout.for_changelog(store.options)
        task = RewriteTask(
            reader=reader,
            layout=layout,
            spec=spec,
            expiry=expiry,
            epoch_millis=plan.epoch_millis,
            rule=rule,
            changelog_layout=changelog_layout,
            names=names,
            environment=self._environment,
        )
        longest_first = sorted(units, key=lambda unit: -sum(section.cost for section in unit.sections))
        return self._runner.messages(longest_first, task, store.paths, names)


def _continued(record: MaintenanceRecord, total: CompactionResult, last: bool) -> MaintenanceRecord:
    """Return the record of a run that has committed ``total``; ``last``: the next commit is its last one."""
    return replace(
        record,
        outcome=DONE if last else PARTIAL,
        files=total.files_written,
        bytes=total.bytes_written,
        snapshot_ids=total.snapshot_ids,
    )


def _replaced(plan: CompactionPlan, buckets: Sequence[BucketCompaction]) -> list[ManifestEntry]:
    """Return DELETE entries of all replaced files, and DELETE and ADD entries of upgraded files."""
    entries: list[ManifestEntry] = []
    for bucket in buckets:
        for file in bucket.rewritten_files:
            entries.append(replace(plan.entries[file.index], kind=FileKind.DELETE))
        for file in bucket.plan.upgrades:
            old = plan.entries[file.index]
            entries.append(replace(old, kind=FileKind.DELETE))
            entries.append(replace(old, kind=FileKind.ADD, file=old.file.upgraded(bucket.plan.output_level)))
    return entries


def combined(total: CompactionResult, part: CompactionResult) -> CompactionResult:
    """Return the result of two compactions together."""
    status = _joined(total.status, part.status)
    error = (part.error or total.error) if status is part.status else total.error
    return replace(total, **{**sums(total, part), "status": status, "error": error})


def _joined(total: CompactionStatus, part: CompactionStatus) -> CompactionStatus:
    """Return FAILED or CONFLICT if one of the two has this status, else the second status."""
    if CompactionStatus.FAILED in (total, part):
        return CompactionStatus.FAILED
    return total if total is CompactionStatus.CONFLICT else part
