"""Table: the public face of one primary-key table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from lakelsm.arguments import (
    checked_assignments,
    checked_cast,
    checked_condition,
    checked_flag,
    checked_location,
    checked_name,
    checked_snapshot_id,
    checked_tag,
    checked_time,
    option_texts,
    wrong_argument,
)
from lakelsm.commit.commit_identity import commit_identity
from lakelsm.commit.committer import Committer
from lakelsm.compact.after_write import finished_write, result_of
from lakelsm.engine import Engine, chosen_engine, opened_storage
from lakelsm.epoch_time import utc_time
from lakelsm.errors import InvalidInputError
from lakelsm.failures import after_commit_step, commit_stands, warn_committed
from lakelsm.local.arrow_input import is_spark_frame
from lakelsm.maintain.after_commit import after_commit
from lakelsm.maintain.history import recorded
from lakelsm.maintain.versions.rollback import rollback, rollback_target
from lakelsm.moment import Moment
from lakelsm.operation_log import logged
from lakelsm.plan.fallback_branch import ReadState
from lakelsm.plan.overwrite_plan import checked_partition, replaced_partitions
from lakelsm.results import CommitResult, RollbackResult
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.table_store import TableStore
from lakelsm.surroundings import SYSTEM
from lakelsm.table.compactable_table import CompactableTable
from lakelsm.table.readable_table import ReadableTable
from lakelsm.table.table_branches import TableBranches
from lakelsm.table.table_changes import ChangesReader, ChangesRequest
from lakelsm.table.table_consumers import TableConsumers
from lakelsm.table.table_inspection import TableInspection
from lakelsm.table.table_maintenance import TableMaintenance
from lakelsm.table.table_tags import TableTags
from lakelsm.table.table_view import TableView
from lakelsm.write.batch_write import BatchResult, BatchWriter, ChangedRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakelsm.lookup.lookup import Lookup


#: Writes one batch as a commit user and identifier.
_Write: TypeAlias = Callable[[BatchWriter[Any], str, int], BatchResult]


class Table(ReadableTable, ChangesReader, CompactableTable):
    """One table, as its newest schema and snapshot are at each call.

    What belongs together has a namespace: ``maintenance``, ``tags``, ``branches``, ``consumers`` and ``inspect``.
    """

    def __init__(self, store: TableStore, spark: SparkSession | None = None) -> None:
        super().__init__(store, spark)
        self.maintenance = TableMaintenance(store, spark)
        self.tags = TableTags(store, spark)
        self.branches: TableBranches[Table] = TableBranches(store, spark, lambda branch: Table(branch, spark))
        self.consumers = TableConsumers(store, spark)
        self.inspect = TableInspection(store, spark)

    @staticmethod
    def for_path(
        location: str, spark: SparkSession | None = None, *, storage_options: Mapping[str, object] | None = None
    ) -> Table:
        """Open the table whose directory is at a path, a ``file:`` URI, or the URI of an object store (s3, gs, abfss).

        ``storage_options`` are the endpoint and the credentials of an object store, as in `Catalog`.
        """
        storage = opened_storage(checked_location("location", location), spark, storage_options)
        return Table(TableStore.within(*storage), spark)

    @property
    def schema(self) -> TableSchema:
        """The newest schema."""
        return self._store().schema

    def at(
        self,
        *,
        snapshot: int | None = None,
        timestamp: str | datetime | None = None,
        tag: str | None = None,
    ) -> TableView:
        """A read-only view of the table at a snapshot: its id, a time (the newest snapshot not later), or a tag.

        ``timestamp`` is a datetime or 'YYYY-MM-DD HH:MM:SS' (docs/api.md). The view has the columns of its snapshot, and
        does not change. Raises SnapshotNotFoundError where there is no such snapshot, and InvalidInputError unless one of
        the three is given.
        """
        points = (
            checked_snapshot_id("snapshot", snapshot),
            checked_time("timestamp", timestamp),
            checked_tag("tag", tag),
        )
        given = [point for point in points if point is not None]
        if len(given) != 1:
            raise InvalidInputError("Give one of snapshot, timestamp and tag: at(snapshot=3).")
        return TableView(self._store(), self._spark, given[0])

    # -- writing ---------------------------------------------------------------------------------------------------

    @logged("write")
    def write(
        self,
        frame: object,
        row_kind: str | None = None,
        *,
        cast: str = "safe",
        commit_user: str | None = None,
        batch_id: int | None = None,
        options: Mapping[str, object] | None = None,
    ) -> CommitResult:
        """Upsert rows; of those with one key the later one wins (or as ``sequence.field`` says).

        ``frame`` is a Spark DataFrame, or rows that are written in this process: a pyarrow Table, RecordBatch,
        RecordBatchReader or dataset, a pandas or Polars DataFrame, anything with the Arrow C stream interface, a list of
        dicts or a dict of columns. ``cast`` 'safe' takes columns of other types where each value fits; 'strict' takes
        only types whose every value fits.
        ``row_kind`` names a column of +I, -U, +U and -D. ``commit_user`` and ``batch_id`` (ascending per user) make a
        rerun a no-op; a batch that failed may come after later ones. A batch that changes nothing leaves no snapshot: its
        rerun is worked out anew. ``options`` override the table's for this call: those that docs/options.md has for one
        write. Names of columns are found in any case. With `partial-update` the frame may have fewer columns: those it
        lacks stay as they are. Compacts the written buckets afterwards unless the table is ``write-only``. Raises
        InvalidInputError for wrong columns, types or rows; nothing is visible then. Raises BatchHistoryExpiredError for a
        batch id below the user's newest that expired snapshots may hold.
        """
        engine, safe_casts = self._engine_of(frame), checked_cast(cast)
        checked_name("row_kind", row_kind, "the name of a column as text", optional=True)
        store = self._store().with_options(option_texts("options", options)).to_write()

        def append(writer: BatchWriter[Any], user: str, identifier: int) -> BatchResult:
            return writer.append(engine.prepared(store, frame, row_kind, safe_casts=safe_casts), user, identifier)

        return self._commit(engine, store, append, commit_user, batch_id)

    @logged("overwrite")
    def overwrite(
        self,
        frame: object,
        partition: Mapping[str, object] | None = None,
        *,
        cast: str = "safe",
        commit_user: str | None = None,
        batch_id: int | None = None,
    ) -> CommitResult:
        """Replace a partition (its leading or all columns), or the partitions that the frame has rows of, by its rows.

        ``frame`` and ``cast`` are as in `write`. No changelog has what an overwrite replaces or writes: where the table
        has consumers, a warning names them.
        Without ``partition`` a table without partitions is replaced whole, and so is a partitioned one whose
        ``dynamic-partition-overwrite`` is false. Columns named in ``partition`` may be left out of the frame. What is
        replaced by a frame without rows is empty afterwards: a named partition, or the whole table; only where the
        frame's rows say which partitions (neither ``partition`` nor the option set) does such a frame replace none.
        """
        engine, safe_casts = self._engine_of(frame), checked_cast(cast)
        store = self._store().to_write()
        fixed = checked_partition(store, partition)

        def overwrite(writer: BatchWriter[Any], user: str, identifier: int) -> BatchResult:
            rows = engine.prepared(store, frame, None, fixed, safe_casts=safe_casts)
            return writer.overwrite(rows, replaced_partitions(store, fixed), user, identifier)

        result = self._commit(engine, store, overwrite, commit_user, batch_id)
        if result.changed and not result.already_committed:
            _warn_consumers(store, result.snapshot_id)
        return result

    @logged("delete")
    def delete(
        self,
        where: str | None = None,
        *,
        keys: object = None,
        commit_user: str | None = None,
        batch_id: int | None = None,
        engine: str | None = None,
    ) -> CommitResult:
        """Delete the rows that match an SQL condition, or have one of the ``keys``, by writing -D rows of their keys.

        Where none do, nothing is committed. ``keys`` are a list of values, of tuples for a key of several columns, or
        rows of the primary key's columns in a frame as in `write`.
        Which rows these are is judged on the newest snapshot, and again where others write the same keys before this
        commits: a row that no longer matches stays. ``engine`` is 'spark' or 'local', this process, in which a condition
        must be one as in `to_reader`; by default Spark where a session is given, active or that of spark-submit; keys
        say by their kind where they are looked up. ``commit_user`` and ``batch_id`` are as in `write`. Raises
        InvalidInputError where the table's merge engine would not remove the rows, CommitConflictError where others are
        always first.
        """
        store, chosen = self._store().to_write(), self._engine(engine)
        if keys is None:
            checked_condition(where, optional=False)
            rows = partial(chosen.retractions, store, where or "")
        elif where is not None:
            raise wrong_argument("where", where, "left out where keys are given: pass one of the two")
        else:
            chosen = self._engine_of(keys, engine)
            rows = partial(chosen.key_retractions, store, chosen.prepared_keys(store, keys))
        return self._change(chosen, store, "DELETE", rows, commit_user, batch_id)

    @logged("update")
    def update(
        self,
        set: Mapping[str, str],
        where: str,
        *,
        commit_user: str | None = None,
        batch_id: int | None = None,
        engine: str | None = None,
    ) -> CommitResult:
        """Give columns of the rows that match an SQL condition new values, by writing +U rows of their keys.

        ``set`` maps columns to SQL expressions as text, over the columns of the row as it is: {'n': 'n + 1', 'status':
        "'done'", 'note': 'NULL'}. A text is therefore quoted within the text. Numbers are rounded to the column's type.
        Other columns stay as they are. ``where``, ``engine``, ``commit_user`` and ``batch_id`` are as in `delete`, as is
        what happens where others write the same keys. In this process expressions are literals, columns, ``+ - * / %``,
        ``||`` and concat, CASE and if, coalesce, nullif, CAST between numbers and to text, and conditions, as in Spark's
        ANSI mode. Raises InvalidInputError, and nothing is visible, for a column of the key, a merge engine that would
        not show the new rows, a value that the column cannot have, and a row that would lose to the one that is there by
        its sequence; UnsupportedFeatureError for an expression that is not evaluated in this process.
        """
        values, chosen = checked_assignments(set), self._engine(engine)
        checked_condition(where, optional=False)
        store = self._store().to_write()
        rows = partial(chosen.updates, store, where, values)
        return self._change(chosen, store, "UPDATE", rows, commit_user, batch_id)

    # -- changes ----------------------------------------------------------------------------------------------------

    def changelog(
        self,
        start: int | str | datetime | None = None,
        end: int | str | datetime | None = None,
        where: str | None = None,
        *,
        mode: str = "auto",
        kind_column: str = "rowkind",
        positions: bool = False,
        consumer_id: str | None = None,
    ) -> DataFrame:
        """The changes after ``start`` up to ``end`` (inclusive): the row kind (+I, -U, +U, -D), then the table's columns.

        ``start`` and ``end`` are snapshot ids, times (the newest snapshot that is not later) or names of tags. A text is
        a time if it parses as one ('2026-01-31 12:00:00'), else the name of a tag, which 'tag:' may precede; a text that
        is both is refused. They may be expired snapshots whose changelogs are kept. Without them: all retained snapshots.
        ``where`` does what ``.where`` does, and also leaves out partitions early.

        ``mode`` 'changelog' reads what ``changelog-producer`` kept; 'delta' the rows that appends wrote, merged by the
        merge engine; 'diff' compares the two states, which also sees overwrites. 'auto' is Paimon's choice: 'diff'
        between two tags, else 'delta' for tables without a ``changelog-producer``, else 'changelog'. With ``positions``
        the columns _SNAPSHOT_ID and _SEQUENCE_NUMBER follow (NULL where changes of several snapshots were merged).

        With ``consumer_id`` they begin where the consumer is, or where it is new at ``start``, and expiry keeps them for
        it from now on. Call `TableConsumers.record` when they are processed; `changelog_reader` does so by itself. What
        an overwrite replaces is in no changelog: mode 'diff' shows it.
        """
        request = ChangesRequest(
            start=start,
            end=end,
            where=where,
            mode=mode,
            kind_column=kind_column,
            positions=positions,
            consumer_id=consumer_id,
        )
        return self._change_frame(request)

    def changelog_reader(
        self,
        start: int | str | datetime | None = None,
        end: int | str | datetime | None = None,
        where: str | None = None,
        *,
        mode: str = "auto",
        kind_column: str = "rowkind",
        positions: bool = False,
        consumer_id: str | None = None,
        timestamps: str = "ns",
    ) -> pa.RecordBatchReader:
        """The changes that `changelog` gives as a stream of Arrow record batches, read in this process as in `to_reader`.

        The arguments are those of `changelog`; ``where`` is as in `to_reader`. With ``consumer_id``
        the consumer's progress is recorded when the stream is asked for more after its last batch: a caller that
        processes each batch before it asks for the next gets every change at least once. A stream that is not read to its
        end records nothing.
        """
        request = ChangesRequest(
            start=start,
            end=end,
            where=where,
            mode=mode,
            kind_column=kind_column,
            positions=positions,
            consumer_id=consumer_id,
        )
        return self._change_reader(request, timestamps)

    # -- upkeep ----------------------------------------------------------------------------------------------------

    @logged("rollback")
    def rollback(self, to: int | str | datetime, *, dry_run: bool = False) -> RollbackResult:
        """Go back to a snapshot: its id, a time (the newest snapshot that is not later), or the name of a tag.

        A text is a time if it parses as one, else the name of a tag, which 'tag:' may precede. Later snapshots, tags and
        long-lived changelogs are deleted, and the files that nothing else needs; a snapshot that has expired is restored
        from its tag. The schema stays as it is. Commits that are under way on a later snapshot are refused, and
        consumers beyond continue after the snapshot. With ``dry_run`` nothing is changed. A rollback that was killed
        leaves a table that reads; the same call finishes it. Raises SnapshotNotFoundError where there is no such snapshot
        or tag, or where it has expired.
        """
        checked_flag("dry_run", dry_run)
        store, asked = self._store().to_change(), None
        point = self._point(store, "to", to)
        if point is None:
            raise wrong_argument("to", to, "a snapshot id, a time, or the name of a tag")
        if isinstance(point, Moment):
            asked = store.millis_of(point)
            target = store.snapshots.at_or_before(asked)
        else:
            target = rollback_target(store, point)
        with recorded(store, "rollback", dry_run=dry_run) as run:
            result = rollback(store, target, dry_run=dry_run)
            run.files, run.bytes = result.files, result.bytes
        return result if asked is None else replace(result, timestamp=utc_time(asked, "timestamp"))

    # -- lookups ---------------------------------------------------------------------------------------------------

    def lookup(
        self,
        columns: Sequence[str] | None = None,
        *,
        key: Sequence[str] | None = None,
        where: str | None = None,
        refresh: float | str | None = None,
        cache: str | None = None,
        options: Mapping[str, object] | None = None,
        directory: str | Path | None = None,
    ) -> Lookup:
        """Rows by key, kept at hand in this process and fresh as the table changes: no session is needed. Close it.

        ``columns`` are those of the rows (all by default), ``key`` those that rows are found by: the primary key by
        default, without the partition columns where ``scan.partitions`` chooses partitions. ``where`` is as in
        `to_reader`; only rows for which it is true are found. ``refresh`` is how often lookups look for a newer snapshot,
        in seconds (or '10s'): 0 is each time, 'never' is only by `Lookup.refresh`; by default
        ``lookup.continuous.discovery-interval``. ``cache`` is 'full', 'partial', 'memory' or 'auto', in place of
        ``lookup.cache``. ``options`` are other ones of lookups (docs/lookup.md) that hold for this one. ``directory`` is
        where the cache's files lie, for processes of this machine to share; by default a temporary one. Raises
        InvalidInputError for columns, types and options that the table cannot have, UnsupportedFeatureError for a part
        of ``where`` that is not understood.
        """
        from lakelsm.lookup.lookup import open_lookup

        return open_lookup(
            self._store(),
            columns=columns,
            key=key,
            where=where,
            refresh=refresh,
            cache=cache,
            options=options,
            directory=directory,
        )

    def lookup_join(
        self,
        on: Mapping[str, str] | Sequence[str] | str,
        columns: Mapping[str, str] | Sequence[str] | None = None,
        how: str = "left",
        *,
        where: str | None = None,
        refresh: float | str | None = None,
        cache: str | None = None,
        options: Mapping[str, object] | None = None,
        by_bucket: bool = False,
    ) -> Callable[[DataFrame], DataFrame]:
        """What joins a DataFrame of facts, or a stream of them, with the rows of a key: ``facts.transform(it)``.

        Neither side is shuffled: each task looks its facts up in a cache that its executor keeps, also from one
        micro-batch to the next, so that the cost follows the facts and not the table. ``on`` names the fact columns of
        the key, each by the table's name or as {'fact column': 'table column'}. ``columns`` of the table are added, by
        default all but the key's; {'name': 'customer_name'} gives them other names. A fact comes once for each row of
        its key; ``how`` 'left' keeps those without one, with NULL, 'inner' leaves them out. NULL is no key. With
        ``by_bucket`` facts are shuffled by the table's buckets, so that a task opens only some of them. ``where``,
        ``refresh`` ('never' excepted), ``cache`` and ``options`` are as in `lookup`: a task answers from the newest
        snapshot, or one that was within ``refresh``, so that a query may see several. Raises InvalidInputError, where it
        meets the facts too, for columns that are missing, of another type than the key's, or on both sides.
        """
        from lakelsm.lookup.join.lookup_join import lookup_join

        return lookup_join(
            self._store(),
            on=on,
            columns=columns,
            how=how,
            where=where,
            refresh=refresh,
            cache=cache,
            options=options,
            by_bucket=by_bucket,
        )

    # -- inside ----------------------------------------------------------------------------------------------------

    def _read_state(self) -> tuple[TableStore, ReadState, int | None]:
        store = self._store()
        return store, ReadState(store, store.snapshots.latest()), None

    def _engine_of(self, frame: object, named: str | None = None) -> Engine:
        """Where rows are taken: on Spark those of its DataFrames, in this process all others."""
        own = "spark" if is_spark_frame(frame) else "local"
        if named not in (None, own):
            raise wrong_argument("engine", named, f"'{own}' for such rows: leave it out")
        if own == "local":
            return chosen_engine("local", None)
        from lakelsm.spark.session import checked_frame

        checked_frame(frame)  # type: ignore[arg-type]
        return chosen_engine("spark", self._spark)

    def _change(
        self,
        engine: Engine,
        store: TableStore,
        operation: str,
        rows: ChangedRows[Any],
        commit_user: str | None,
        batch_id: int | None,
    ) -> CommitResult:
        def change(writer: BatchWriter[Any], user: str, identifier: int) -> BatchResult:
            return writer.change(operation, rows, user, identifier)

        result = self._commit(engine, store, change, commit_user, batch_id)
        return result if result.already_committed and not result.rows else replace(result, matched_rows=result.rows)

    def _commit(
        self, engine: Engine, store: TableStore, write: _Write, commit_user: str | None, batch_id: int | None
    ) -> CommitResult:
        user, identifier = commit_identity(store.options, commit_user, batch_id, SYSTEM.new_uuid)
        earlier = Committer(store).committed(user, identifier)
        if earlier is not None:
            return result_of(BatchResult(earlier, ()))
        batch = write(BatchWriter(engine.writer(store), store), user, identifier)
        snapshot = batch.outcome.snapshot
        with commit_stands(store.name, [] if snapshot is None else [snapshot.id]):
            result = finished_write(engine.runner, store, batch, user, identifier)
            if snapshot is None:
                return result
            failures = after_commit(store, {entry.partition for entry in batch.entries})
        return replace(result, after_commit_failures=result.after_commit_failures + failures)


def _warn_consumers(store: TableStore, snapshot_id: int | None) -> None:
    """Warn of consumers that do not see a committed overwrite. Raises no Exception."""
    with after_commit_step(store.name, "the look for consumers", "Check table.consumers by yourself."):
        names = store.consumers.names()
        if names:
            warn_committed(
                f"Table {store.name}: snapshot {snapshot_id} is an overwrite, which no changelog has, so that consumers "
                f"({', '.join(names)}) do not see it. Read changelog(mode='diff') over it, or load their tables again."
            )
