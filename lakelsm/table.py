"""Table: the public face of one primary-key table."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakelsm.commit.commit_message import PartitionFilter
from lakelsm.commit.table_store import TableStore
from lakelsm.compact.compaction_plan import CompactionScope
from lakelsm.compact.compactor import (
    DEFAULT_TASK_MEMORY,
    FULL_COMPACTION_PROPERTY,
    CompactionLimits,
    CompactionResult,
    Compactor,
)
from lakelsm.errors import InvalidInputError, LakelsmError, UnsupportedFeatureError
from lakelsm.format.binary_row import encode_row
from lakelsm.format.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, Snapshot
from lakelsm.lsm.compact_trigger import CommitFact, full_compaction_due
from lakelsm.lsm.predicate import Predicate, is_exact
from lakelsm.lsm.predicate import columns as predicate_columns
from lakelsm.lsm.predicate_parser import parse_where
from lakelsm.options import TableOptions
from lakelsm.read.read_plan import ReadPlan, plan_read
from lakelsm.read.scan_frame import scan_frame
from lakelsm.read.system_frames import buckets_frame, files_frame, snapshots_frame
from lakelsm.schema import TableSchema
from lakelsm.spark.columns import quoted_all
from lakelsm.spark.session import resolve_session
from lakelsm.spark.task_errors import first_line, translated
from lakelsm.types import DataField, to_arrow
from lakelsm.write.batch_write import BatchResult, BatchWriter
from lakelsm.write.prepare import prepare


@dataclass(frozen=True)
class CommitResult:
    """What a write did. ``snapshot_id`` is None when it changed nothing.

    ``already_committed``: the same commit user had committed this batch id before, so nothing was written again.
    ``rows`` counts the rows of the new files (one a key). ``compaction`` is the automatic compaction's result, if any.
    """

    snapshot_id: int | None
    already_committed: bool = False
    files: int = 0
    rows: int = 0
    compaction: CompactionResult | None = None


class Table:
    """One table. It follows the table's newest schema: each call looks at it anew."""

    def __init__(self, store: TableStore, spark: SparkSession | None = None) -> None:
        self._opened = store
        self._spark = spark

    @staticmethod
    def for_path(location: str, spark: SparkSession | None = None) -> Table:
        """Open the table whose directory is at a path or ``file:`` URI."""
        return Table(TableStore.open(location), spark)

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
        options: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Upsert the rows of a DataFrame; of rows with one key the later one wins (or as ``sequence.field`` says).

        ``row_kind`` names a column of +I, -U, +U and -D. ``commit_user`` and ``batch_id`` (ascending per user) make a
        rerun a no-op. ``options`` override the table's for this call. Compacts the written buckets afterwards unless the
        table is ``write-only``. Raises InvalidInputError for wrong columns, types or rows; nothing is visible then.
        """
        store = self._store(options)
        user, identifier = _identity(commit_user, batch_id)
        replayed = self._replayed(store, user, identifier)
        if replayed is not None:
            return replayed
        rows = prepare(_checked_frame(frame), store.schema, store.options, row_kind)
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
        ``dynamic-partition-overwrite`` is false. Columns named in ``partition`` may be left out of the frame.
        """
        store = self._store()
        user, identifier = _identity(commit_user, batch_id)
        replayed = self._replayed(store, user, identifier)
        if replayed is not None:
            return replayed
        fixed = _checked_partition(store, partition)
        rows = prepare(_checked_frame(frame), store.schema, store.options, None, fixed)
        written = BatchWriter(self.spark, store).overwrite(rows, _replaced_partitions(store, fixed), user, identifier)
        return self._finish(store, written, user, identifier)

    def delete(self, where: str) -> CommitResult:
        """Delete the rows that match an SQL condition, as they are now, by writing -D rows of their keys."""
        store = self._store()
        if store.options.ignore_delete:
            raise InvalidInputError(f"Table {self.name} ignores deletes (option ignore-delete): it keeps its rows.")
        kind = "_KEY__KIND"
        rows = self.read(where=where).withColumn(kind, F.lit("-D"))
        if store.options.rowkind_field is not None:
            rows = rows.drop(kind).withColumn(store.options.rowkind_field, F.lit("-D"))
            return self.write(rows)
        return self.write(rows, kind)

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
        plan, store = self._plan(where, snapshot_id, timestamp, tag)
        with translated(store.paths.root):
            frame = scan_frame(self.spark, store, plan)
        if where is not None:
            frame = _filtered(frame, where)
        if columns is not None:
            for name in columns:
                store.schema.field(name)
            frame = frame.select(*quoted_all(columns))
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

    def changelog(self, start: int | None = None, end: int | None = None) -> DataFrame:
        """The changes between two snapshots with their row kinds: not built yet."""
        raise UnsupportedFeatureError(f"Reading the changelog of table {self.name} is not built in lakelsm yet.")

    # -- maintenance -----------------------------------------------------------------------------------------------

    def compact(
        self,
        full: bool = False,
        where: str | None = None,
        *,
        buckets: Sequence[int] | None = None,
        dry_run: bool = False,
        commit_every: int | None = None,
        deadline: float | None = None,
        max_task_memory: int = DEFAULT_TASK_MEMORY,
        commit_user: str | None = None,
    ) -> CompactionResult:
        """Compact now, also a ``write-only`` table: everything to the top level, or one ordinary pick per bucket.

        ``where`` is a condition on partition columns, ``buckets`` are bucket numbers. ``commit_every`` commits after so
        many buckets, ``deadline`` begins no further commit after so many seconds, ``max_task_memory`` is bytes a task.
        """
        store = self._store()
        scope = CompactionScope(
            full, self._partition_predicate(store, where), None if buckets is None else frozenset(buckets)
        )
        limits = CompactionLimits(commit_every, deadline, max_task_memory)
        return Compactor(self.spark, store).compact(scope, limits, dry_run=dry_run, commit_user=commit_user)

    # -- looking ---------------------------------------------------------------------------------------------------

    def snapshots(self) -> DataFrame:
        """The retained snapshots, oldest first."""
        return snapshots_frame(self.spark, self._store())

    def files(self, snapshot_id: int | None = None) -> DataFrame:
        """The live data files of a snapshot (the newest by default)."""
        return files_frame(self.spark, *self._at(snapshot_id))

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
        store = self._store()
        return store, store.snapshots.latest() if snapshot_id is None else store.snapshots.get(snapshot_id)

    def _plan(
        self, where: str | None, snapshot_id: int | None, timestamp: str | datetime | None, tag: str | None
    ) -> tuple[ReadPlan, TableStore]:
        store = self._store()
        snapshot = self._chosen_snapshot(store, snapshot_id, timestamp, tag)
        travels = not (snapshot_id is None and timestamp is None and tag is None)
        if travels and snapshot is not None and snapshot.schema_id != store.schema.id:
            # A time-travel read has the columns of its time, as in Paimon.
            store = store.with_schema(store.schemas.get(snapshot.schema_id))
        predicate = None if where is None else self._parsed(store, where)
        return plan_read(store, snapshot, predicate), store

    def _parsed(self, store: TableStore, where: str) -> Predicate:
        return parse_where(where, store.schema.fields, self.spark.conf.get("spark.sql.session.timeZone"))

    def _chosen_snapshot(
        self, store: TableStore, snapshot_id: int | None, timestamp: str | datetime | None, tag: str | None
    ) -> Snapshot | None:
        if sum(choice is not None for choice in (snapshot_id, timestamp, tag)) > 1:
            raise InvalidInputError("Give one of snapshot_id, timestamp and tag.")
        if snapshot_id is not None:
            return store.snapshots.get(snapshot_id)
        if timestamp is not None:
            return store.snapshots.at_or_before(self._millis(timestamp))
        if tag is not None:
            return store.snapshots.tag(tag).snapshot
        return store.snapshots.latest()

    def _millis(self, timestamp: str | datetime) -> int:
        """Epoch millis of a time in the session's zone; Spark reads the text, so its formats are Spark's."""
        if isinstance(timestamp, datetime):
            timestamp = timestamp.isoformat(sep=" ")
        literal = F.try_to_timestamp(F.lit(timestamp))
        millis = self.spark.range(1).select(F.unix_millis(literal)).collect()[0][0]
        if millis is None:
            raise InvalidInputError(f"timestamp {timestamp!r} is no time: write 'YYYY-MM-DD HH:MM:SS'.")
        return int(millis)

    def _partition_predicate(self, store: TableStore, where: str | None) -> Predicate | None:
        if where is None:
            return None
        predicate = self._parsed(store, where)
        others = predicate_columns(predicate) - set(store.schema.partition_keys)
        if others or not is_exact(predicate):
            raise InvalidInputError(
                f"Condition {where!r} must be on partition columns ({', '.join(store.schema.partition_keys) or 'none'}) "
                "alone, compared with literals: a compaction takes partitions whole."
            )
        return predicate

    def _replayed(self, store: TableStore, user: str, identifier: int) -> CommitResult | None:
        earlier = store.committer().committed(user, identifier)
        if earlier is None:
            return None
        return CommitResult(None if earlier.snapshot is None else earlier.snapshot.id, already_committed=True)

    def _finish(self, store: TableStore, batch: BatchResult, user: str, identifier: int) -> CommitResult:
        snapshot = batch.outcome.snapshot
        result = CommitResult(
            None if snapshot is None else snapshot.id,
            batch.outcome.already_committed,
            len(batch.entries),
            sum(entry.file.row_count for entry in batch.entries),
        )
        if store.options.write_only or not batch.entries:
            return result
        full = self._full_compaction_is_due(store)
        touched = frozenset((entry.partition, entry.bucket) for entry in batch.entries)
        scope = CompactionScope(full, only=None if full else touched)
        try:
            compaction = Compactor(self.spark, store).compact(scope, commit_user=user, identifier=identifier)
        except LakelsmError as error:
            committed = f"The write is committed (snapshot {result.snapshot_id}); the compaction after it failed"
            raise type(error)(f"{committed}: {error}") from error
        return replace(result, compaction=compaction)

    def _full_compaction_is_due(self, store: TableStore) -> bool:
        commits = store.options.full_compaction_delta_commits
        if commits is None:
            return False
        newest = store.snapshots.latest_id() or 0
        history = (store.snapshots.try_get(number) for number in range(newest, 0, -1))
        return full_compaction_due(commits, (_fact(snapshot) for snapshot in takewhile(bool, history) if snapshot))


def _fact(snapshot: Snapshot) -> CommitFact:
    adds = snapshot.commit_kind in (CommitKind.APPEND, CommitKind.OVERWRITE)
    return CommitFact(adds, (snapshot.properties or {}).get(FULL_COMPACTION_PROPERTY) == "true")


def _identity(commit_user: str | None, batch_id: int | None) -> tuple[str, int]:
    if batch_id is None:
        return commit_user or str(uuid.uuid4()), BATCH_COMMIT_IDENTIFIER
    if not commit_user:
        raise InvalidInputError("batch_id needs commit_user: a batch is known by both.")
    if not isinstance(batch_id, int):
        raise InvalidInputError(f"batch_id is {batch_id!r}; it must be a whole number.")
    if not 0 <= batch_id < BATCH_COMMIT_IDENTIFIER:
        raise InvalidInputError(f"batch_id is {batch_id}; it must be 0 or more, and ascend per commit_user.")
    return commit_user, batch_id


def _checked_partition(store: TableStore, partition: Mapping[str, object] | None) -> dict[str, object]:
    fixed = dict(partition or {})
    unknown = [name for name in fixed if name not in store.schema.partition_keys]
    if unknown:
        keys = ", ".join(store.schema.partition_keys) or "none"
        raise InvalidInputError(f"{', '.join(unknown)} is no partition column of table {store.name}: it has {keys}.")
    return {name: _partition_value(store.schema.field(name), value) for name, value in fixed.items()}


def _partition_value(field: DataField, value: object) -> object:
    """A partition's value as its column has it; text is read as the column's type."""
    target = to_arrow(field.type)
    try:
        scalar = pa.scalar(value, pa.string()).cast(target) if isinstance(value, str) else pa.scalar(value, target)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise InvalidInputError(f"Partition value {field.name}={value!r} is no {field.type.sql()}: {error}") from error
    if not scalar.is_valid and not field.type.nullable:
        raise InvalidInputError(f"Partition value {field.name} is NULL, and the column is {field.type.sql()}.")
    return scalar.cast(pa.int32()).as_py() if pa.types.is_time32(target) else scalar.as_py()


def _checked_frame(frame: object) -> DataFrame:
    if not isinstance(frame, DataFrame):
        raise InvalidInputError(f"A Spark DataFrame is needed, not {type(frame).__name__}: make one of it first.")
    return frame


def _filtered(frame: DataFrame, where: str) -> DataFrame:
    try:
        return frame.where(where)
    except AnalysisException as error:
        raise InvalidInputError(f"Condition {where!r} is wrong: {first_line(error)}") from error


def _replaced_partitions(
    store: TableStore, fixed: Mapping[str, object]
) -> Callable[[set[bytes]], PartitionFilter | None]:
    """What an overwrite replaces, given the partitions that it wrote."""

    def choose(written: set[bytes]) -> PartitionFilter | None:
        if fixed:
            wanted = {name: encode_row([value], [store.schema.field(name).type]) for name, value in fixed.items()}

            def matches(partition: bytes) -> bool:
                values = store.partition_values(partition)
                return all(
                    encode_row([values[name]], [store.schema.field(name).type]) == row for name, row in wanted.items()
                )

            return matches
        if store.schema.partition_keys and store.options.dynamic_partition_overwrite:
            return written.__contains__
        return None

    return choose
