"""`Table.maintenance`: what keeps a table small and sound."""

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

#: Files of this age are orphans by default.
ORPHANS_OLDER_THAN = "1 day"
#: Snapshots that one `TableMaintenance.run_all` expires: more than `snapshot.expire.limit`, which is for what follows
#: each commit.
_MAX_EXPIRED = 10_000
#: The compaction may take this share of the time that is left before a deadline.
_OF_COMPACTION = 0.5
_CHECKED_DATA = [each.value for each in CheckedData]
_REMEDY = "The other steps have run. Run this one again when the cause is removed."


class TableMaintenance(OpenedTable):
    """Expiry, orphans, partitions, statistics and the check of a table, and all its upkeep in one call."""

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
        """Run all the upkeep of a table: ``steps`` (by default all), in this order, each by the table's options.

        'tags' deletes the tags whose retention time has passed. 'consumers' deletes consumers, and 'partitions' drops
        partitions, where consumer.expiration-time and partition.expiration-time are set. 'compact' is an ordinary
        compaction, in half of the time that is left. 'expire' expires snapshots, 10,000 at most whatever
        snapshot.expire.limit is. 'orphans' removes orphan files that are ``orphans_older_than``, an hour at least.
        'check' checks the table and opens ``data`` as `check` does. With ``dry_run`` each step reports what it would do.
        No step begins after ``deadline`` seconds (or '30 min'). ``engine`` is as in `compact`. A step that fails does not
        stop the others: its error is in the result. Raises InvalidInputError for wrong arguments.
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
        """One step of `run_all`. No Exception leaves it."""
        if limits.deadline is not None and limits.deadline < 0:
            return UpkeepStep(name=name, outcome="deadline", reason="not begun, the deadline had passed")
        try:
            found = _STEPS[name](self, limits)
        except Exception as error:  # noqa: BLE001  The other steps run, whatever it is.
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
        """Let the oldest snapshots go, and delete the files that nothing needs then.

        The last ``retain_last`` are kept. Of the others, snapshots ``older_than`` an age ('7 days', a timedelta, seconds)
        or a moment expire, and those beyond the newest ``retain_max`` of any age. With ``retain_last`` only,
        all others expire. The defaults are ``snapshot.num-retained.*`` and ``snapshot.time-retained``, and for
        ``max_deletes``, the limit of one run, ``snapshot.expire.limit``. A snapshot is as old as the one after it.
        Snapshots that consumers still read are kept, and so are the files that tags, branches and long-lived changelogs
        need; changelogs expire by their own options. With ``dry_run`` nothing changes. With a ``deadline`` (seconds, or
        '30 min') they expire in groups, and no group begins after it: another run continues. A killed run does no damage:
        the next completes it. Raises CorruptTableError, with nothing deleted, where anything that keeps
        files cannot be read.
        """
        least = None if retain_last is None else checked_number("retain_last", retain_last, min_value=1)
        most = None if retain_max is None else checked_number("retain_max", retain_max, min_value=1)
        limit = None if max_deletes is None else checked_number("max_deletes", max_deletes, min_value=1)
        age, dry = checked_age("older_than", older_than), checked_flag("dry_run", dry_run)
        within = checked_seconds("deadline", deadline)
        store, now = self._store().for_changes(), SYSTEM.clock()
        retention = requested_retention(
            store.options,
            now,
            retain_last=least,
            retain_max=most,
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
        """Remove files that no snapshot, tag or long-lived changelog of any branch names, as crashed writers leave.

        ``older_than`` is an age or a time; younger files are kept, because they may belong to a commit in progress: a
        writer that needs longer from its first file to its commit would lose its files. An age of less than an hour is
        refused without ``force``. Only names that writers of the table use are removed. ``dry_run`` only reports.
        ``engine`` is 'spark', where tasks list the files, or 'local', this process; by default as in `compact`. It ends
        after a ``deadline`` (seconds, or '30 min') with what was proven and removed until then. Raises
        CorruptTableError, with nothing removed, where something retained cannot be read.
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
        """Drop the partitions that match a condition on partition columns, as a whole and in one commit.

        Rows that others write to them before the commit are dropped too. If there are none, nothing is committed.
        Files are deleted when the snapshots before it expire. Raises InvalidInputError for a condition on other columns.
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
        """Drop partitions that are older than 'partition.expiration-time', or than '90 d' or a time.

        ``strategy``, by default 'partition.expiration-strategy', selects how their age is determined: 'values-time', from
        their values by 'partition.timestamp-pattern' and '-formatter', or 'update-time', from their newest file. A run
        drops 'partition.expiration-max-num' of them, 'partition.expiration-batch-size' in each commit. No commit begins
        after a ``deadline`` (seconds, or '30 min'). Partitions whose values are not times are kept. Raises
        InvalidInputError without a time and for a table without partitions, UnsupportedFeatureError for another strategy
        or formatter.
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
                f"Table {store.name} has no option 'partition.expiration-time': set it, or pass older_than ('90 d')."
            )
        return expire_partitions(store, bound, strategy=strategy, dry_run=dry_run, deadline=within)

    @logged("mark_partitions_done")
    def mark_partitions_done(self, where: str | None = None, *, dry_run: bool = False) -> list[str]:
        """Mark the partitions that match a condition on partition columns (by default all) as done; return their names.

        A file _SUCCESS in the directory of each records when it was first and last marked, as Paimon's 'success-file' of
        'partition.mark-done-action' does; with ``dry_run`` none is written. Raises
        UnsupportedFeatureError for other actions, InvalidInputError for a table without partitions.
        """
        checked_condition(where)
        store, dry = self._store().for_changes(), checked_flag("dry_run", dry_run)
        return list(mark_partitions_done(store, self._on_partitions(store, where), dry_run=dry))

    @logged("analyze")
    def analyze(
        self,
        columns: Sequence[str] | None = None,
        *,
        dry_run: bool = False,
        commit_user: str | None = None,
        engine: str | None = None,
    ) -> AnalyzeResult:
        """Write statistics of the newest snapshot's merged rows, as Paimon's ANALYZE does; `system` shows 'statistics'.

        Of each of the ``columns`` (in any case; by default all but nested ones; [] for rows and bytes alone) how many
        values are distinct (about: the standard error is 2.3 %), the least and the greatest (not of texts and binary),
        NULLs, and lengths. ``commit_user`` is the user that the snapshot names. ``engine`` is 'spark' or 'local', this
        process; by default as in `compact`. An empty table gets none, and with ``dry_run`` they are not written. Raises
        InvalidInputError for a column that there is not, or a nested one.
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
        """Whether the table is sound: every reference resolves, and every rule of the format holds (docs/check.md).

        Reads, and changes nothing; what is wrong is a finding and no error. All that any snapshot, tag, branch or
        long-lived changelog names is looked for; live data files are judged by the newest snapshot, of the partitions
        that ``where`` chooses. Of these ``data`` opens nothing ('none'), the 'footers', all rows of some files too
        ('sample'), or of all ('full'). After ``deadline`` seconds (or '30 min') it ends. ``engine`` is
        'spark' or 'local', this process; by default Spark where a session is given, active or that of spark-submit.
        """
        opened = CheckedData(checked_choice("data", data, _CHECKED_DATA) or CheckedData.SAMPLE)
        checked_condition(where)
        deadline = checked_seconds("deadline", deadline)
        chosen = self._engine(engine)
        try:
            store = self._store()
        except CorruptTableError:
            store = self._opened  # Of the schema that the table was opened with; the check finds what is wrong.
        store = replace(store, file_io=store.file_io.uncached())
        scope = checked_check_scope(store, opened, None if where is None else chosen.predicate(store, where), deadline)
        return check_table(store, scope, chosen.runner)

    def _on_partitions(self, store: TableStore, where: str | None) -> Predicate | None:
        return None if where is None else self._engine(None).predicate(store, where)


@dataclass(frozen=True, kw_only=True)
class _Limits:
    """What a step of `TableMaintenance.run_all` may do. ``deadline`` is the seconds that are left."""

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
    own = None if limits.deadline is None else limits.deadline * _OF_COMPACTION
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


#: The steps by name, each of which returns its result or why it has nothing to do. In their order: what expires is not
#: compacted before, and what a step releases a later one deletes.
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
