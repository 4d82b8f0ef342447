"""Table: the public face of one primary-key table."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakelsm.arguments import (
    checked_buckets,
    checked_condition,
    checked_flag,
    checked_location,
    checked_name,
    checked_number,
    checked_point,
    checked_projection,
    checked_seconds,
    checked_snapshot_id,
    checked_tag,
    checked_task_memory,
    checked_time,
    option_texts,
    wrong_argument,
)
from lakelsm.commit.commit_identity import checked_batch_id, checked_commit_user, new_commit_user
from lakelsm.commit.committer import Committer
from lakelsm.compact.after_write import compact_after_write
from lakelsm.compact.compactor import (
    DEFAULT_TASK_MEMORY,
    CompactionLimits,
    Compactor,
)
from lakelsm.errors import InvalidInputError, told_of
from lakelsm.format.row_kinds import DELETE, ROW_KINDS
from lakelsm.format.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from lakelsm.options import TableOptions
from lakelsm.plan.compaction_plan import CompactionScope, check_buckets, check_partition_predicate
from lakelsm.plan.overwritten_partitions import checked_partition, replaced_partitions
from lakelsm.plan.read_plan import ReadPlan, plan_read
from lakelsm.plan.time_travel import changelog_range, chosen_snapshot
from lakelsm.predicate.parser import parse_where, shown_condition
from lakelsm.predicate.predicate import Predicate
from lakelsm.read.changelog_frame import changelog_frame, check_added_columns
from lakelsm.read.scan_frame import scan_frame
from lakelsm.read.system_frames import buckets_frame, files_frame, snapshots_frame
from lakelsm.results import CommitResult, CompactionResult
from lakelsm.schema.engine_rules import check_deletable
from lakelsm.schema.system_columns import DELETED_KIND
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.table_store import TableStore
from lakelsm.spark.columns import quoted
from lakelsm.spark.frames import checked_frame
from lakelsm.spark.session import checked_session, resolve_session
from lakelsm.spark.task_errors import first_line, translated
from lakelsm.spark.times import millis_of
from lakelsm.surroundings import SYSTEM
from lakelsm.write.batch_write import BatchResult, BatchWriter
from lakelsm.write.prepare import prepare

_AND = re.compile(r"\band\b", re.IGNORECASE)

#: From so many ANDs on a condition is a single expression to Spark. It would take them apart and put them together
#: again as a chain, whose depth overflows its stack.
_MANY_ANDS = 500


class Table:
    """One table. It follows the table's newest schema: each call looks at it anew."""

    def __init__(self, store: TableStore, spark: SparkSession | None = None) -> None:
        if not isinstance(store, TableStore):
            raise wrong_argument("store", store, "made by Catalog.table(name) or Table.for_path(location): call these")
        self._opened = store
        self._spark = checked_session(spark)

    @staticmethod
    def for_path(location: str, spark: SparkSession | None = None) -> Table:
        """Open the table whose directory is at a path or ``file:`` URI."""
        return Table(TableStore.open(checked_location("location", location)), spark)

    @property
    def name(self) -> str:
        """The name that messages use."""
        return self._opened.name

    @property
    def schema(self) -> TableSchema:
        """The newest schema."""
        return self._store().schema

    @property
    def options(self) -> TableOptions:
        """The options, parsed."""
        return self._store().options

    # -- writing ---------------------------------------------------------------------------------------------------

    def write(
        self,
        frame: DataFrame,
        row_kind: str | None = None,
        *,
        commit_user: str | None = None,
        batch_id: int | None = None,
        options: Mapping[str, object] | None = None,
    ) -> CommitResult:
        """Upsert the rows of a DataFrame; of rows with one key the later one wins (or as ``sequence.field`` says).

        ``row_kind`` names a column of +I, -U, +U and -D. ``commit_user`` and ``batch_id`` (ascending per user) make a
        rerun a no-op; a batch that failed may come after later ones. A batch that changes nothing leaves no snapshot: its
        rerun is worked out anew. ``options`` override the table's for this call: those that docs/options.md
        has for one write. Names of columns are found in any case. With `partial-update` the frame
        may have fewer columns: those it lacks stay as they are. Compacts the written buckets afterwards unless the table
        is ``write-only``. Raises InvalidInputError for wrong columns, types or rows; nothing is visible then. Raises
        BatchHistoryExpiredError for a batch id below the user's newest that expired snapshots may hold.
        """
        frame = checked_frame(frame)
        checked_name("row_kind", row_kind, "the name of a column as text", optional=True)
        store = self._store(option_texts("options", options))
        user, identifier = _identity(store, commit_user, batch_id)
        replayed = self._replayed(store, user, identifier)
        if replayed is not None:
            return replayed
        rows = prepare(frame, store.schema, store.options, row_kind)
        return self._finish(store, BatchWriter(self.spark, store).append(rows, user, identifier), user, identifier)

    def overwrite(
        self,
        frame: DataFrame,
        partition: Mapping[str, object] | None = None,
        *,
        commit_user: str | None = None,
        batch_id: int | None = None,
    ) -> CommitResult:
        """Replace a partition (its leading or all columns), or the partitions that the frame has rows of, by its rows.

        Without ``partition`` a table without partitions is replaced whole, and so is a partitioned one whose
        ``dynamic-partition-overwrite`` is false. Columns named in ``partition`` may be left out of the frame. What is
        replaced by a frame without rows is empty afterwards: a named partition, or the whole table; only where the
        frame's rows say which partitions (neither ``partition`` nor the option set) does such a frame replace none.
        """
        frame = checked_frame(frame)
        store = self._store()
        fixed = checked_partition(store, partition)
        user, identifier = _identity(store, commit_user, batch_id)
        replayed = self._replayed(store, user, identifier)
        if replayed is not None:
            return replayed
        rows = prepare(frame, store.schema, store.options, None, fixed)
        written = BatchWriter(self.spark, store).overwrite(rows, replaced_partitions(store, fixed), user, identifier)
        return self._finish(store, written, user, identifier)

    def delete(self, where: str, *, commit_user: str | None = None, batch_id: int | None = None) -> CommitResult:
        """Delete the rows that match an SQL condition by writing -D rows of their keys; none: nothing is committed.

        The condition is judged on the newest snapshot, and again where others write the same keys before this commits:
        a row that no longer matches stays. ``commit_user`` and ``batch_id`` are as in `write`. Raises InvalidInputError
        where the table's merge engine would not remove the rows, CommitConflictError where others are always first.
        """
        checked_condition(where, optional=False)
        store = self._store()
        user, identifier = _identity(store, commit_user, batch_id)
        replayed = self._replayed(store, user, identifier)
        if replayed is not None:
            return replayed
        check_deletable(self.name, store.options)
        predicate = self._parsed(store, where)

        def retractions(snapshot: Snapshot | None) -> DataFrame:
            with translated(store.paths.root):
                rows = _filtered(scan_frame(self.spark, store, plan_read(store, snapshot, predicate)), where)
            kind = store.options.rowkind_field or DELETED_KIND
            marked = rows.withColumn(kind, F.lit(ROW_KINDS[DELETE]))
            name = None if store.options.rowkind_field else kind
            return prepare(marked, store.schema, store.options, name, stored=True)

        return self._finish(store, BatchWriter(self.spark, store).delete(retractions, user, identifier), user, identifier)

    # -- reading ---------------------------------------------------------------------------------------------------

    def read(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        snapshot_id: int | None = None,
        timestamp: str | datetime | None = None,
        tag: str | None = None,
    ) -> DataFrame:
        """The merged rows of the newest snapshot, or of another one, as a DataFrame.

        ``where`` (an SQL condition) and ``columns`` do what ``.where`` and ``.select`` do, and also leave out partitions,
        buckets and files by the manifests alone. ``timestamp`` is a datetime or 'YYYY-MM-DD HH:MM:SS' in the session's
        time zone: the newest snapshot that is not later. At most one of the last three may be given.
        """
        names = checked_projection(columns)
        plan, store = self._plan(where, snapshot_id, timestamp, tag)
        with translated(store.paths.root):
            frame = scan_frame(self.spark, store, plan)
        if where is not None:
            frame = _filtered(frame, where)
        if names is not None:
            frame = frame.select(*(quoted(store.schema.column_name(name)).alias(name) for name in names))
        return frame

    def plan(
        self,
        where: str | None = None,
        *,
        snapshot_id: int | None = None,
        timestamp: str | datetime | None = None,
        tag: str | None = None,
    ) -> ReadPlan:
        """What `read` would open: its ``files_scanned`` of ``files_live``."""
        return self._plan(where, snapshot_id, timestamp, tag)[0]

    def changelog(
        self,
        start: int | str | datetime | None = None,
        end: int | str | datetime | None = None,
        where: str | None = None,
        *,
        mode: str = "auto",
        kind_column: str = "rowkind",
        positions: bool = False,
    ) -> DataFrame:
        """The changes after ``start`` up to ``end`` (inclusive): the row kind (+I, -U, +U, -D), then the table's columns.

        ``start`` and ``end`` are snapshot ids, tag names, or times (datetime): the newest snapshot that is not later.
        Without them: all retained snapshots. ``where`` does what ``.where`` does, and also leaves out partitions early.

        ``mode`` 'changelog' reads what ``changelog-producer`` kept; 'delta' the rows that appends wrote, merged by the
        merge engine; 'diff' compares the two states, which also sees overwrites. 'auto' is Paimon's choice: 'diff'
        between two tags, else 'delta' for tables without a ``changelog-producer``, else 'changelog'. With ``positions``
        the columns _SNAPSHOT_ID and _SEQUENCE_NUMBER follow (NULL where changes of several snapshots were merged).
        """
        start, end = checked_point("start", start, least=0), checked_point("end", end, least=1)
        checked_condition(where)
        checked_name("mode", mode, "auto, changelog, delta or diff")
        checked_name("kind_column", kind_column, "the name of a column as text")
        checked_flag("positions", positions)
        store = self._store()
        between = changelog_range(store, start, end, self._millis)
        check_added_columns(store.schema, kind_column, positions)
        predicate = None if where is None else self._parsed(store, where)
        with translated(store.paths.root):
            plan = between.plan(store, mode, predicate)
            frame = changelog_frame(self.spark, store, plan, kind_column, positions)
        return frame if where is None else _filtered(frame, where)

    # -- maintenance -----------------------------------------------------------------------------------------------

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
    ) -> CompactionResult:
        """Compact now, also a ``write-only`` table: everything to the top level, or one ordinary pick per bucket.

        ``where`` is a condition on partition columns, ``buckets`` are bucket numbers ([0, 1] or '0,1'). ``commit_every``
        commits after so many buckets, ``deadline`` begins no further commit after so many seconds (or '30 min'),
        ``max_task_memory`` is bytes a task (or '256mb').
        """
        limits = CompactionLimits(
            None if commit_every is None else checked_number("commit_every", commit_every, least=1),
            checked_seconds("deadline", deadline),
            checked_task_memory("max_task_memory", max_task_memory),
        )
        full, dry_run = checked_flag("full", full), checked_flag("dry_run", dry_run)
        numbers = checked_buckets("buckets", buckets)
        checked_condition(where)
        store = self._store()
        user, _ = _identity(store, commit_user)
        predicate = None if where is None else self._parsed(store, where)
        if predicate is not None:
            check_partition_predicate(store, predicate)
        if numbers is not None:
            check_buckets(store, numbers)
        scope = CompactionScope(full, partitions=predicate, buckets=numbers)
        return Compactor(self.spark, store).compact(scope, limits, dry_run=dry_run, commit_user=user)

    # -- looking ---------------------------------------------------------------------------------------------------

    def snapshots(self) -> DataFrame:
        """The retained snapshots, oldest first.

        ``operation`` is what was done: WRITE, DELETE, OVERWRITE, COMPACT, or what another engine says (NULL: nothing).
        ``delta_record_count`` is the rows of the files that it added less those of the files that it deleted,
        ``changelog_record_count`` the changes that it recorded. A file that moved up a level is added and deleted.
        """
        return snapshots_frame(self.spark, self._store())

    def files(self, snapshot_id: int | None = None) -> DataFrame:
        """The live data files of a snapshot (the newest by default). ``partition`` is like 'dt=2025-12-31/hh=12'."""
        store, snapshot = self._at(snapshot_id)
        return files_frame(self.spark, store, snapshot)

    def buckets(self, snapshot_id: int | None = None) -> DataFrame:
        """Files, rows and bytes by partition, bucket and level."""
        return buckets_frame(self.files(snapshot_id))

    @property
    def spark(self) -> SparkSession:
        """The session that the table works in."""
        return resolve_session(self._spark)

    def __repr__(self) -> str:
        return f"Table({self.name!r} at {self._opened.paths.root!r})"

    # -- inside ----------------------------------------------------------------------------------------------------

    def _store(self, overrides: Mapping[str, str] | None = None) -> TableStore:
        return self._opened.refreshed().with_options(overrides)

    def _at(self, snapshot_id: int | None) -> tuple[TableStore, Snapshot | None]:
        snapshot_id = checked_snapshot_id("snapshot_id", snapshot_id)
        store = self._store()
        return store, store.snapshots.latest() if snapshot_id is None else store.snapshots.get(snapshot_id)

    def _plan(
        self, where: str | None, snapshot_id: int | None, timestamp: str | datetime | None, tag: str | None
    ) -> tuple[ReadPlan, TableStore]:
        checked_condition(where)
        snapshot_id = checked_snapshot_id("snapshot_id", snapshot_id)
        timestamp, tag = checked_time("timestamp", timestamp), checked_tag("tag", tag)
        store = self._store()
        snapshot = chosen_snapshot(store, snapshot_id, timestamp, tag, self._millis)
        travels = not (snapshot_id is None and timestamp is None and tag is None)
        if travels and snapshot is not None and snapshot.schema_id != store.schema.id:
            # A time-travel read has the columns of its time, as in Paimon.
            store = store.with_schema(store.schemas.get(snapshot.schema_id))
        predicate = None if where is None else self._parsed(store, where)
        return plan_read(store, snapshot, predicate), store

    def _parsed(self, store: TableStore, where: str) -> Predicate:
        return parse_where(where, store.schema.fields, self.spark.conf.get("spark.sql.session.timeZone"))

    def _millis(self, timestamp: str | datetime) -> int:
        return millis_of(self.spark, timestamp)

    def _replayed(self, store: TableStore, user: str, identifier: int) -> CommitResult | None:
        earlier = Committer.of(store).committed(user, identifier)
        if earlier is None:
            return None
        snapshot = earlier.snapshot
        return CommitResult(snapshot_id=None if snapshot is None else snapshot.id, already_committed=True)

    def _finish(self, store: TableStore, batch: BatchResult, user: str, identifier: int) -> CommitResult:
        snapshot = batch.outcome.snapshot
        result = CommitResult(
            snapshot_id=None if snapshot is None else snapshot.id,
            already_committed=batch.outcome.already_committed,
            files=len(batch.entries),
            rows=sum(entry.file.row_count for entry in batch.entries),
        )
        if store.options.write_only or not batch.entries:
            return result
        with told_of(f"The write is committed (snapshot {result.snapshot_id}); the compaction after it failed"):
            return replace(result, compaction=compact_after_write(self.spark, store, batch, user, identifier))


def _identity(store: TableStore, commit_user: str | None, batch_id: int | None = None) -> tuple[str, int]:
    if commit_user is None and batch_id is not None:
        raise InvalidInputError("batch_id needs commit_user: a batch is known by both.")
    user = new_commit_user(store.options, SYSTEM.new_uuid) if commit_user is None else checked_commit_user(commit_user)
    return user, BATCH_COMMIT_IDENTIFIER if batch_id is None else checked_batch_id(batch_id)


def _filtered(frame: DataFrame, where: str) -> DataFrame:
    try:
        if len(_AND.findall(where)) < _MANY_ANDS:
            return frame.where(where)
        return frame.where(F.expr(where).eqNullSafe(True))
    except (PySparkException, Py4JJavaError) as error:
        raise InvalidInputError(f"Condition {shown_condition(where)} is wrong: {first_line(error)}") from error
