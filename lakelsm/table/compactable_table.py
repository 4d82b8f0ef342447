"""The compaction of a table: a method of `Table`, and a step of `TableMaintenance.run_all`."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from lakelsm.arguments import (
    checked_buckets,
    checked_condition,
    checked_flag,
    checked_number,
    checked_seconds,
    checked_task_memory,
)
from lakelsm.commit.commit_identity import commit_identity
from lakelsm.compact.compactor import DEFAULT_TASK_MEMORY, CompactionLimits, Compactor
from lakelsm.environment import SYSTEM
from lakelsm.failures import note_if_interrupted
from lakelsm.maintain.after_commit import after_commit
from lakelsm.operation_log import logged
from lakelsm.plan.compaction_plan import checked_scope
from lakelsm.results import CompactionResult
from lakelsm.table.opened_table import OpenedTable


class CompactableTable(OpenedTable):
    """A table with the call `compact`."""

    @logged("compact")
    def compact(
        self,
        full: bool = False,
        where: str | None = None,
        *,
        buckets: Collection[int] | str | None = None,
        dry_run: bool = False,
        commit_every: int | None = None,
        deadline: float | str | None = None,
        max_task_memory: int | str = DEFAULT_TASK_MEMORY,
        commit_user: str | None = None,
        engine: str | None = None,
    ) -> CompactionResult:
        """Compact the table now, also if it is ``write-only``: one ordinary compaction of each bucket.

        ``full`` merges all files to the top level. ``where`` is a condition on partition columns, ``buckets`` are
        bucket numbers ([0, 1] or '0,1'); both restrict the compaction. ``commit_every`` is the number of buckets in one
        commit (by default all; with a ``deadline`` the number of cores). No commit starts after ``deadline`` seconds
        (or '30 min'). ``max_task_memory`` is bytes a task (or '256mb'). ``engine`` is 'spark' or 'local' (this
        process); by default Spark if a session is given, active, or that of spark-submit. Raises InvalidInputError for
        wrong arguments; a conflict or a failure after the first commit is in the result.
        """
        limits = CompactionLimits(
            None if commit_every is None else checked_number("commit_every", commit_every, min_value=1),
            checked_seconds("deadline", deadline),
            checked_task_memory("max_task_memory", max_task_memory),
        )
        full, dry_run = checked_flag("full", full), checked_flag("dry_run", dry_run)
        numbers = checked_buckets("buckets", buckets)
        checked_condition(where)
        store = self._store().for_writes()
        user, _ = commit_identity(store.options, commit_user, None, SYSTEM.new_uuid)
        chosen = self._engine(engine)
        scope = checked_scope(store, full, None if where is None else chosen.predicate(store, where), numbers)
        result = Compactor(chosen.runner, store).compact(scope, limits, dry_run=dry_run, commit_user=user)
        if not result.snapshot_ids:
            return result
        with note_if_interrupted(store.name, result.snapshot_ids):
            failures = after_commit(store)
        return replace(result, after_commit_failures=result.after_commit_failures + failures)
