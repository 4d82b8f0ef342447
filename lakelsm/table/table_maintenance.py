"""`Table.maintenance`: expiry, orphan removal, partitions, statistics and checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lakelsm.arguments import (
    checked_age,
    checked_choice,
    checked_condition,
    checked_flag,
    checked_names,
    checked_number,
    checked_seconds,
    wrong_argument,
)
from lakelsm.commit.commit_identity import commit_identity
from lakelsm.environment import SYSTEM
from lakelsm.errors import CommitConflictError, CorruptTableError, InvalidInputError
from lakelsm.maintain.check.audit_plan import CheckedData
from lakelsm.maintain.check.table_check import check_table, checked_check_scope
from lakelsm.maintain.expiry.retention import requested_retention
from lakelsm.maintain.expiry.snapshot_expiry import expire_snapshots, expire_until
from lakelsm.maintain.history import recorded
from lakelsm.maintain.orphans.orphan_removal import MIN_AGE, remove_orphans
from lakelsm.maintain.partitions.idle_partitions import idle_partitions
from lakelsm.maintain.partitions.partition_done import mark_partitions_done
from lakelsm.maintain.partitions.partition_drop import drop_partitions
from lakelsm.maintain.partitions.partition_expiry import expire_partitions
from lakelsm.operation_log import logged
from lakelsm.options.partition_options import EXPIRATION_STRATEGIES
from lakelsm.predicate.predicate import Predicate
from lakelsm.results import (
    AnalyzeResult,
    CheckResult,
    ExpiryResult,
    Failure,
    OrphanResult,
    PartitionDropResult,
    PartitionExpiryResult,
    UpkeepResult,
    UpkeepStep,
)
from lakelsm.results.result import OperationResult
from lakelsm.snapshots.table_store import TableStore
from lakelsm.table.compactable_table import CompactableTable
from lakelsm.table.opened_table import OpenedTable
from lakelsm.table.table_consumers import TableConsumers
from lakelsm.table.table_tags import TableTags

#: Default minimum age of removed orphan files.
ORPHANS_OLDER_THAN = "1 day"
#: Maximum number of snapshots that `TableMaintenance.run_all` expires: more than `snapshot.expire.limit`, which is
#: meant for the expiry after each commit.
_MAX_EXPIRED = 10_000
#: The share of the remaining time before a deadline that the compaction may use.
_COMPACTION_SHARE = 0.5
_CHECKED_DATA = [each.value for each in CheckedData]
_REMEDY = "The other steps ran. Run this step again after the cause is fixed."


class TableMaintenance(OpenedTable):
    """The upkeep of a table: one call for each operation, and `run_all` for all of them."""

    @logged("run_all")
    def run_all(
        self,
        steps: Sequence[str] | None = None,
        *,
        orphans_older_than: str | float | timedelta | datetime = ORPHANS_OLDER_THAN,
        data: str = "footers",
        dry_run: bool = False,
        deadline: float | str | None = None,
        engine: str | None = None,
    ) -> UpkeepResult:
        """Run all upkeep of the table by its options, or only the given ``steps``, in this order.

        'tags' deletes tags whose retention time has passed. 'consumers' deletes consumers, and 'partitions' drops
        partitions, if consumer.expiration-time and partition.expiration-time are set. 'compact' is an ordinary
        compaction, for at most half of the time that is left. 'expire' expires at most 10,000 snapshots
        (snapshot.expire.limit has no effect). 'orphans' removes orphan files older than ``orphans_older_than``, at
        least an hour. 'check' runs `check` with ``data``. ``dry_run`` changes nothing. No step starts after
        ``deadline`` seconds (or '30 min'). ``engine`` is as in `compact`. If a step fails, the other steps still run,
        and its error is in the result. Raises InvalidInputError for wrong arguments.
        """
        names = list(_STEPS) if steps is None else checked_names("steps", steps)
        for name in names:
            checked_choice("steps", name, list(_STEPS))
        age = checked_age("orphans_older_than", orphans_older_than)
        now = SYSTEM.clock()
        if age is None or now - age.bound(now, self._opened.text_zone) < MIN_AGE:
            raise wrong_argument("orphans_older_than", orphans_older_than, "an age of an hour or more, such as '1 day'")
        checked_choice("data", data, _CHECKED_DATA)
        self._engine(engine)
        limits = _Limits(
            dry_run=checked_flag("dry_run", dry_run),
            engine=engine,
            orphans_older_than=orphans_older_than,
            data=data,
            deadline=checked_seconds("deadline", deadline),
        )
        started, done = SYSTEM.monotonic(), []
        for name in filter(names.__contains__, _STEPS):
            passed = SYSTEM.monotonic() - started
            left = None if limits.deadline is None else limits.deadline - passed
            done.append(self._step(name, replace(limits, deadline=left)))
        seconds = SYSTEM.monotonic() - started
        return UpkeepResult(table=self._opened.name, dry_run=limits.dry_run, steps=tuple(done), seconds=seconds)

    def _step(self, name: str, limits: _Limits) -> UpkeepStep:
        """Run one step of `run_all`. Raises no Exception."""
        if limits.deadline is not None and limits.deadline < 0:
            return UpkeepStep(name=name, outcome="deadline", reason="not started before the deadline")
        try:
            found = _STEPS[name](self, limits)
        except Exception as error:  # noqa: BLE001  The other steps run after any error.
            outcome = "conflict" if isinstance(error, CommitConflictError) else "failed"
            return UpkeepStep(name=name, outcome=outcome, error=Failure.of(error, f"the step '{name}'", _REMEDY))
        if isinstance(found, str):
            return UpkeepStep(name=name, outcome="nothing", reason=found)
        return UpkeepStep(name=name, outcome=found.outcome, result=found)

    @logged("expire_snapshots")
    def expire_snapshots(
        self,
        retain_last: int | None = None,
        older_than: timedelta | datetime | float | str | None = None,
        *,
        retain_max: int | None = None,
        max_deletes: int | None = None,
        dry_run: bool = False,
        deadline: float | str | None = None,
    ) -> ExpiryResult:
        """Expire the oldest snapshots, and delete the files that only they need.

        Keeps the newest ``retain_last`` snapshots. Of the others, expires snapshots older than ``older_than`` (an age:
        '7 days', a timedelta, seconds; or a time), and all beyond the newest ``retain_max``. With ``retain_last``
        alone, all others expire. The defaults are ``snapshot.num-retained.*`` and ``snapshot.time-retained``, and for
        ``max_deletes``, the limit of one run, ``snapshot.expire.limit``. The age of a snapshot is that of its
        successor. Keeps snapshots that consumers have not read, and files that tags, branches and long-lived changelogs
        need; changelogs expire by their own options. ``dry_run`` changes nothing. With a ``deadline`` (seconds, or '30
        min') snapshots expire in groups, and no group starts after it: run it again. The next run completes an
        interrupted one. Raises CorruptTableError, and deletes nothing, if a file that protects other files cannot be
        read.
        """
        min_retained = None if retain_last is None else checked_number("retain_last", retain_last, min_value=1)
        max_retained = None if retain_max is None else checked_number("retain_max", retain_max, min_value=1)
        limit = None if max_deletes is None else checked_number("max_deletes", max_deletes, min_value=1)
        age, dry = checked_age("older_than", older_than), checked_flag("dry_run", dry_run)
        within = checked_seconds("deadline", deadline)
        store, now = self._store().for_changes(), SYSTEM.clock()
        retention = requested_retention(
            store.options,
            now,
            retain_last=min_retained,
            retain_max=max_retained,
            older_than=None if age is None else age.bound(now, store.text_zone),
            max_deletes=limit,
        )
        with recorded(store, "expire_snapshots", dry_run=dry) as run:
            if within is None or dry:
                result = expire_snapshots(store, retention, dry_run=dry)
            else:
                result = expire_until(store, retention, within)
            run.files, run.bytes = result.data_files + result.changelog_files + result.metadata_files, result.bytes
            run.complete = result.complete
        return result

    @logged("remove_orphans")
    def remove_orphans(
        self,
        older_than: str | float | timedelta | datetime = ORPHANS_OLDER_THAN,
        *,
        dry_run: bool = False,
        force: bool = False,
        engine: str | None = None,
        deadline: float | str | None = None,
    ) -> OrphanResult:
        """Delete orphan files: files that no snapshot, tag or long-lived changelog of any branch references.

        ``older_than`` is an age or a time. Younger files are kept, because they may belong to a commit in progress: a
        writer that needs more time from its first file to its commit would lose files. An age of less than an hour
        needs ``force``. Only files with names that writers of the table use are deleted. ``dry_run`` deletes nothing.
        ``engine`` is 'spark', where tasks list the files, or 'local' (this process); by default as in `compact`. The
        run ends after ``deadline`` seconds (or '30 min') with its result so far. Raises CorruptTableError, and deletes
        nothing, if a retained file that references others cannot be read.
        """
        age = checked_age("older_than", older_than)
        if age is None:
            raise wrong_argument("older_than", older_than, "an age such as '1 day', or a datetime")
        dry_run, force = checked_flag("dry_run", dry_run), checked_flag("force", force)
        within = checked_seconds("deadline", deadline)
        store, chosen = self._store().for_changes(), self._engine(engine)
        bound = age.bound(SYSTEM.clock(), store.text_zone)
        with recorded(store, "remove_orphans", dry_run=dry_run) as run:
            result = remove_orphans(chosen.runner, store, bound, dry_run=dry_run, force=force, deadline=within)
            run.files, run.bytes = result.files, result.bytes
            run.complete = result.complete
        return result

    @logged("drop_partitions")
    def drop_partitions(
        self, where: str, *, dry_run: bool = False, commit_user: str | None = None
    ) -> PartitionDropResult:
        """Drop all partitions that match a condition on partition columns, in one commit.

        Concurrently written rows of these partitions are dropped too. If no partition matches, nothing is committed.
        Files are deleted when the earlier snapshots expire. Raises InvalidInputError for a condition on other columns.
        """
        checked_condition(where, optional=False)
        store, dry_run = self._store().for_writes(), checked_flag("dry_run", dry_run)
        user, _ = commit_identity(store.options, commit_user, None, SYSTEM.new_uuid)
        predicate = self._engine(None).predicate(store, where)
        return drop_partitions(store, predicate, commit_user=user, dry_run=dry_run)

    @logged("expire_partitions")
    def expire_partitions(
        self,
        older_than: float | str | timedelta | datetime | None = None,
        *,
        strategy: str | None = None,
        dry_run: bool = False,
        deadline: float | str | None = None,
    ) -> PartitionExpiryResult:
        """Drop partitions that are older than 'partition.expiration-time', or than ``older_than`` ('90 d', or a time).

        ``strategy`` is the source of their age, by default 'partition.expiration-strategy': 'values-time' (their values
        by 'partition.timestamp-pattern' and '-formatter') or 'update-time' (their newest file). A run drops at most
        'partition.expiration-max-num' of them, 'partition.expiration-batch-size' in each commit. No commit starts after
        a ``deadline`` (seconds, or '30 min'). Partitions whose values are not times are kept. ``dry_run`` drops
        nothing. Raises InvalidInputError without a time and for a table without partitions, UnsupportedFeatureError for
        another strategy or formatter.
        """
        age = checked_age("older_than", older_than)
        checked_choice("strategy", strategy, EXPIRATION_STRATEGIES)
        checked_flag("dry_run", dry_run)
        within = checked_seconds("deadline", deadline)
        store, now = self._store().for_writes(), SYSTEM.clock()
        if age is not None:
            bound = age.bound(now, store.text_zone)
        elif store.options.partition_expiration_time is not None:
            bound = now - store.options.partition_expiration_time
        else:
            raise InvalidInputError(
                f"Table {store.name}: option 'partition.expiration-time' is not set. Set it, or pass older_than='90 d'."
            )
        return expire_partitions(store, bound, strategy=strategy, dry_run=dry_run, deadline=within)

    @logged("mark_partitions_done")
    def mark_partitions_done(
        self, where: str | None = None, *, idle_only: bool = False, dry_run: bool = False
    ) -> list[str]:
        """Mark partitions as done, all or those that match a condition on partition columns, and return their names.

        A file _SUCCESS in the directory of each records when it was first and last marked, like Paimon's 'success-file'
        of 'partition.mark-done-action'. ``idle_only``: only those that are not marked since their last write and are
        done by 'partition.idle-time-to-done', as after a commit. ``dry_run`` writes none. Raises
        UnsupportedFeatureError for other actions, InvalidInputError for a table without partitions, or without the
        options of ``idle_only``.
        """
        checked_condition(where)
        store, dry = self._store().for_changes(), checked_flag("dry_run", dry_run)
        only = idle_partitions if checked_flag("idle_only", idle_only) else None
        return list(mark_partitions_done(store, self._on_partitions(store, where), only=only, dry_run=dry))

    @logged("analyze")
    def analyze(
        self,
        columns: Sequence[str] | None = None,
        *,
        dry_run: bool = False,
        commit_user: str | None = None,
        engine: str | None = None,
    ) -> AnalyzeResult:
        """Write statistics of the merged rows of the newest snapshot, like Paimon's ANALYZE.

        The system table 'statistics' shows them. For each of ``columns`` (in any case; by default all except nested
        ones; [] for rows and bytes alone) they have the number of distinct values (approximate, standard error 2.3 %),
        minimum and maximum (not of texts and binary), NULLs and lengths. ``commit_user`` is the user of the new
        snapshot. ``engine`` is 'spark' or 'local' (this process); by default as in `compact`. An empty table gets none.
        ``dry_run`` writes nothing. Raises InvalidInputError for an unknown or nested column.
        """
        from lakelsm.maintain.analyze import analyze, analyzed_columns

        names = None if columns is None else checked_names("columns", columns)
        dry = checked_flag("dry_run", dry_run)
        store, chosen = self._store().for_writes(), self._engine(engine)
        user, _ = commit_identity(store.options, commit_user, None, SYSTEM.new_uuid)
        return analyze(chosen, store, analyzed_columns(store, names), user, dry_run=dry)

    @logged("check")
    def check(
        self,
        *,
        data: str = "sample",
        where: str | None = None,
        engine: str | None = None,
        deadline: float | str | None = None,
    ) -> CheckResult:
        """Check that every reference of the table resolves, and every rule of the format holds (docs/check.md).

        Changes nothing; a fault is a finding, not an error. Checks all files that any snapshot, tag, branch or
        long-lived changelog references, and the live data files of the newest snapshot, in the partitions that
        ``where`` selects. ``data`` selects what is read of these: 'none', 'footers', also all rows of some files
        ('sample') or of all ('full'). The check ends after ``deadline`` seconds (or '30 min'). ``engine`` is 'spark' or
        'local' (this process); by default Spark if a session is given, active, or that of spark-submit.
        """
        opened = CheckedData(checked_choice("data", data, _CHECKED_DATA) or CheckedData.SAMPLE)
        checked_condition(where)
        deadline = checked_seconds("deadline", deadline)
        chosen = self._engine(engine)
        try:
            store = self._store()
        except CorruptTableError:
            store = self._opened  # Keeps the schema of the opening; the check reports the damage.
        store = replace(store, file_io=store.file_io.uncached())
        scope = checked_check_scope(store, opened, None if where is None else chosen.predicate(store, where), deadline)
        return check_table(store, scope, chosen.runner)

    def _on_partitions(self, store: TableStore, where: str | None) -> Predicate | None:
        return None if where is None else self._engine(None).predicate(store, where)


@dataclass(frozen=True, kw_only=True)
class _Limits:
    """The limits of a step of `TableMaintenance.run_all`. ``deadline`` is the time left, in seconds."""

    dry_run: bool
    engine: str | None
    orphans_older_than: str | float | timedelta | datetime
    data: str
    deadline: float | None


def _tags(table: TableMaintenance, limits: _Limits) -> OperationResult:
    return TableTags(table._opened, table._spark).expire(dry_run=limits.dry_run)


def _consumers(table: TableMaintenance, limits: _Limits) -> OperationResult | str:
    if table._store().options.consumer_expiration_time is None:
        return "consumer.expiration-time is not set"
    return TableConsumers(table._opened, table._spark).expire(dry_run=limits.dry_run)


def _partitions(table: TableMaintenance, limits: _Limits) -> OperationResult | str:
    if table._store().options.partition_expiration_time is None:
        return "partition.expiration-time is not set"
    return table.expire_partitions(dry_run=limits.dry_run, deadline=limits.deadline)


def _compact(table: TableMaintenance, limits: _Limits) -> OperationResult:
    own = None if limits.deadline is None else limits.deadline * _COMPACTION_SHARE
    compactable = CompactableTable(table._opened, table._spark)
    return compactable.compact(dry_run=limits.dry_run, deadline=own, engine=limits.engine)


def _expire(table: TableMaintenance, limits: _Limits) -> OperationResult:
    return table.expire_snapshots(max_deletes=_MAX_EXPIRED, dry_run=limits.dry_run, deadline=limits.deadline)


def _orphans(table: TableMaintenance, limits: _Limits) -> OperationResult:
    return table.remove_orphans(
        limits.orphans_older_than, dry_run=limits.dry_run, engine=limits.engine, deadline=limits.deadline
    )


def _check(table: TableMaintenance, limits: _Limits) -> OperationResult:
    return table.check(data=limits.data, engine=limits.engine, deadline=limits.deadline)


#: The steps by name; each returns its result, or the reason why it has nothing to do. Their order avoids work: expired
#: partitions are not compacted, and a later step deletes the files that an earlier one releases.
_STEPS: Mapping[str, Callable[[TableMaintenance, _Limits], OperationResult | str]] = {
    "tags": _tags,
    "consumers": _consumers,
    "partitions": _partitions,
    "compact": _compact,
    "expire": _expire,
    "orphans": _orphans,
    "check": _check,
}
#: The names of the steps in their order.
UPKEEP_STEPS = tuple(_STEPS)
