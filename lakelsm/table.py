"""Table: the public face of one primary-key table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from lakelsm.arguments import (
    checked_assignments,
    checked_buckets,
    checked_condition,
    checked_consumer,
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
from lakelsm.commit.commit_identity import commit_identity
from lakelsm.commit.committer import Committer
from lakelsm.compact.after_write import finished_write, result_of
from lakelsm.compact.compactor import DEFAULT_TASK_MEMORY, CompactionLimits, Compactor
from lakelsm.engine import Engine, chosen_engine, local_engine, opened_storage
from lakelsm.local.arrow_input import is_spark_frame
from lakelsm.maintain.after_commit import after_commit
from lakelsm.maintain.table_inspection import TableInspection
from lakelsm.maintain.table_upkeep import TableUpkeep
from lakelsm.maintain.table_versions import TableVersions
from lakelsm.maintain.versions.consumers import ConsumedChanges, consumer_start
from lakelsm.options import TableOptions
from lakelsm.plan.changelog_plan import ChangelogPlan
from lakelsm.plan.compaction_plan import checked_scope
from lakelsm.plan.count_plan import joined_count, metadata_count
from lakelsm.plan.fallback_branch import ReadState, fallback_of, joined_plan, read_states, refuse_fallback
from lakelsm.plan.overwritten_partitions import checked_partition, replaced_partitions
from lakelsm.plan.read_plan import ReadPlan, plan_read
from lakelsm.plan.time_travel import changelog_range, chosen_state
from lakelsm.predicate.parser import parse_where
from lakelsm.read.changelog_tasks import check_added_columns
from lakelsm.results import CommitResult, CompactionResult, CountResult
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.table_store import TableStore
from lakelsm.surroundings import SYSTEM
from lakelsm.write.batch_write import BatchResult, BatchWriter, ChangedRows

if TYPE_CHECKING:
    import pandas
    from pyspark.sql import DataFrame, SparkSession

    from lakelsm.lookup.lookup import Lookup

#: Writes one batch as a commit user and identifier.
_Write: TypeAlias = Callable[[BatchWriter[Any], str, int], BatchResult]


class Table(TableVersions, TableUpkeep, TableInspection):
    """One table. It follows the table's newest schema: each call looks at it anew."""

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

    @property
    def options(self) -> TableOptions:
        """The options, parsed."""
        return self._store().options

    # -- writing ---------------------------------------------------------------------------------------------------

    def write(
        self,
        frame: object,
        row_kind: str | None = None,
        *,
        commit_user: str | None = None,
        batch_id: int | None = None,
        options: Mapping[str, object] | None = None,
    ) -> CommitResult:
        """Upsert rows; of those with one key the later one wins (or as ``sequence.field`` says).

        ``frame`` is a Spark DataFrame, or rows that are written in this process: a pyarrow Table, RecordBatch,
        RecordBatchReader or dataset, a pandas or Polars DataFrame, anything with the Arrow C stream interface.
        ``row_kind`` names a column of +I, -U, +U and -D. ``commit_user`` and ``batch_id`` (ascending per user) make a
        rerun a no-op; a batch that failed may come after later ones. A batch that changes nothing leaves no snapshot: its
        rerun is worked out anew. ``options`` override the table's for this call: those that docs/options.md has for one
        write. Names of columns are found in any case. With `partial-update` the frame may have fewer columns: those it
        lacks stay as they are. Compacts the written buckets afterwards unless the table is ``write-only``. Raises
        InvalidInputError for wrong columns, types or rows; nothing is visible then. Raises BatchHistoryExpiredError for a
        batch id below the user's newest that expired snapshots may hold.
        """
        engine = self._engine_of(frame)
        checked_name("row_kind", row_kind, "the name of a column as text", optional=True)
        store = self._store(option_texts("options", options))

        def append(writer: BatchWriter[Any], user: str, identifier: int) -> BatchResult:
            return writer.append(engine.prepared(store, frame, row_kind), user, identifier)

        return self._commit(engine, store, append, commit_user, batch_id)

    def overwrite(
        self,
        frame: object,
        partition: Mapping[str, object] | None = None,
        *,
        commit_user: str | None = None,
        batch_id: int | None = None,
    ) -> CommitResult:
        """Replace a partition (its leading or all columns), or the partitions that the frame has rows of, by its rows.

        ``frame`` is as in `write`.
        Without ``partition`` a table without partitions is replaced whole, and so is a partitioned one whose
        ``dynamic-partition-overwrite`` is false. Columns named in ``partition`` may be left out of the frame. What is
        replaced by a frame without rows is empty afterwards: a named partition, or the whole table; only where the
        frame's rows say which partitions (neither ``partition`` nor the option set) does such a frame replace none.
        """
        engine = self._engine_of(frame)
        store = self._store()
        fixed = checked_partition(store, partition)

        def overwrite(writer: BatchWriter[Any], user: str, identifier: int) -> BatchResult:
            rows = engine.prepared(store, frame, None, fixed)
            return writer.overwrite(rows, replaced_partitions(store, fixed), user, identifier)

        return self._commit(engine, store, overwrite, commit_user, batch_id)

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

        Where none do, nothing is committed. ``keys`` are rows of the primary key's columns, in a frame as in `write`.
        Which rows these are is judged on the newest snapshot, and again where others write the same keys before this
        commits: a row that no longer matches stays. ``engine`` is 'spark' or 'local', this process, in which a condition
        must be one as in `to_reader`; by default Spark where a session is given, active or that of spark-submit; keys
        say by their kind where they are looked up. ``commit_user`` and ``batch_id`` are as in `write`. Raises
        InvalidInputError where the table's merge engine would not remove the rows, CommitConflictError where others are
        always first.
        """
        store, chosen = self._store(), self._engine(engine)
        if keys is None:
            checked_condition(where, optional=False)
            rows = partial(chosen.retractions, store, where or "")
        elif where is not None:
            raise wrong_argument("where", where, "left out where keys are given: pass one of the two")
        else:
            chosen = self._engine_of(keys, engine)
            rows = partial(chosen.key_retractions, store, chosen.prepared_keys(store, keys))
        return self._change(chosen, store, "DELETE", rows, commit_user, batch_id)

    def update(
        self, set: Mapping[str, str], where: str, *, commit_user: str | None = None, batch_id: int | None = None
    ) -> CommitResult:
        """Give columns of the rows that match an SQL condition new values, by writing +U rows of their keys.

        ``set`` maps columns to SQL expressions as text, over the columns of the row as it is: {'n': 'n + 1', 'status':
        "'done'", 'note': 'NULL'}. A text is therefore quoted within the text. Numbers are rounded to the column's type.
        Other columns stay as they are. ``where``, ``commit_user`` and ``batch_id`` are as in `delete`, as is what happens
        where others write the same keys. Raises InvalidInputError, and nothing is visible, for a column of the key, a
        merge engine that would not show the new rows, a value that the column cannot have, and a row that would lose to
        the one that is there by its sequence.
        """
        values = checked_assignments(set)
        checked_condition(where, optional=False)
        store = self._store()
        from lakelsm.frames.update import updates

        rows = partial(updates, self.spark, store, where, values)
        return self._change(chosen_engine("spark", self._spark), store, "UPDATE", rows, commit_user, batch_id)

    # -- reading ---------------------------------------------------------------------------------------------------

    def read(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        snapshot_id: int | None = None,
        timestamp: str | datetime | None = None,
        tag: str | None = None,
        fresh: bool = False,
    ) -> DataFrame:
        """The merged rows of the newest snapshot, or of another one, as a DataFrame.

        ``where`` (an SQL condition) and ``columns`` do what ``.where`` and ``.select`` do, and also leave out partitions,
        buckets and files by the manifests alone. ``timestamp`` is a datetime or 'YYYY-MM-DD HH:MM:SS' in the session's
        time zone: the newest snapshot that is not later. At most one of the last three may be given. Tables with deletion
        vectors or `first-row` show what a compaction has merged: ``fresh`` merges in the rows that wait in level 0, as
        reads of other tables always do.
        """
        from lakelsm.frames.scan_frame import read_frame

        names = checked_projection(columns)
        plans = self._plans(chosen_engine("spark", self._spark), where, snapshot_id, timestamp, tag, fresh)
        frames = [read_frame(self.spark, store, plan, where, names) for store, plan in plans]
        return reduce(lambda one, other: one.unionAll(other), frames)

    def to_reader(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        ordered: bool = False,
        snapshot_id: int | None = None,
        timestamp: str | datetime | None = None,
        tag: str | None = None,
        fresh: bool = False,
    ) -> pa.RecordBatchReader:
        """The rows that `read` gives as a stream of Arrow record batches, read in this process: no session is needed.

        ``where`` is judged here, so each part of it must be one that lakelsm understands: columns and literals compared,
        IN, BETWEEN, LIKE, IS NULL, joined by AND, OR and NOT. ``limit`` ends the stream after so many rows, whichever
        come first; ``ordered`` gives them in the order of the primary key. Texts of times are in this machine's time
        zone. The other arguments are as in `read`. Memory does not follow the table's size. A stream that is dropped
        half-way stops its work; its ``close`` alone does not. It is for one thread. Raises UnsupportedFeatureError for a
        part of ``where`` that is not understood, and, while rows are taken, CorruptTableError for a damaged file.
        """
        from lakelsm.local.arrow_scan import ArrowScan, chained_reader

        names = checked_projection(columns)
        most = None if limit is None else checked_number("limit", limit, least=0)
        checked_flag("ordered", ordered)
        checked_flag("fresh", fresh)
        engine = local_engine()
        states = self._states(engine, where, snapshot_id, timestamp, tag)
        if ordered:
            refuse_fallback(self._store(), "ordered=True")
        scans = [
            ArrowScan.of(it.store, it.snapshot, names, engine.exact(it.store, where), ordered=ordered, fresh=fresh)
            for it in states
        ]
        return chained_reader(scans, engine.runner, most, names)

    def to_arrow(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        ordered: bool = False,
        snapshot_id: int | None = None,
        timestamp: str | datetime | None = None,
        tag: str | None = None,
        fresh: bool = False,
    ) -> pa.Table:
        """The rows of `to_reader` as one Arrow table, in memory."""
        return self.to_reader(
            where,
            columns,
            limit=limit,
            ordered=ordered,
            snapshot_id=snapshot_id,
            timestamp=timestamp,
            tag=tag,
            fresh=fresh,
        ).read_all()

    def to_pandas(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        ordered: bool = False,
        snapshot_id: int | None = None,
        timestamp: str | datetime | None = None,
        tag: str | None = None,
        fresh: bool = False,
    ) -> pandas.DataFrame:
        """The rows of `to_reader` as a pandas DataFrame. Raises UnsupportedFeatureError for values that pandas lacks."""
        from lakelsm.local.shown_rows import as_pandas

        return as_pandas(
            self.to_arrow(
                where,
                columns,
                limit=limit,
                ordered=ordered,
                snapshot_id=snapshot_id,
                timestamp=timestamp,
                tag=tag,
                fresh=fresh,
            )
        )

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
        from lakelsm.lookup.open_lookup import open_lookup

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

    def plan(
        self,
        where: str | None = None,
        *,
        snapshot_id: int | None = None,
        timestamp: str | datetime | None = None,
        tag: str | None = None,
        fresh: bool = False,
    ) -> ReadPlan:
        """What `read` would open: its ``files_scanned`` of ``files_live``."""
        plans = self._plans(chosen_engine(None, self._spark), where, snapshot_id, timestamp, tag, fresh)
        return joined_plan([plan for _, plan in plans])

    def count(
        self,
        where: str | None = None,
        *,
        snapshot_id: int | None = None,
        timestamp: str | datetime | None = None,
        tag: str | None = None,
        fresh: bool = False,
        engine: str | None = None,
    ) -> CountResult:
        """How many rows `read` would give. The result is the number for ``int()``, and says how it was found.

        The manifests alone tell it, without a session, where no files have to be merged and ``where`` takes partitions
        whole; else data files are read: by the ``engine`` 'spark' or 'local', this process; by default Spark where a
        session is given, active or that of spark-submit. Arguments and errors are as in `read`, or in `to_reader`.
        """
        checked_flag("fresh", fresh)
        chosen = self._engine(engine)
        states = self._states(chosen, where, snapshot_id, timestamp, tag)
        return reduce(joined_count, (_counted(chosen, state, where, fresh) for state in states))

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

        ``start`` and ``end`` are snapshot ids, tag names, or times (datetime): the newest snapshot that is not later.
        They may be expired ones whose changelogs are kept. Without them: all retained snapshots.
        ``where`` does what ``.where`` does, and also leaves out partitions early.

        ``mode`` 'changelog' reads what ``changelog-producer`` kept; 'delta' the rows that appends wrote, merged by the
        merge engine; 'diff' compares the two states, which also sees overwrites. 'auto' is Paimon's choice: 'diff'
        between two tags, else 'delta' for tables without a ``changelog-producer``, else 'changelog'. With ``positions``
        the columns _SNAPSHOT_ID and _SEQUENCE_NUMBER follow (NULL where changes of several snapshots were merged).

        With ``consumer_id`` they begin where the consumer is, or where it is new at ``start``, and expiry keeps them for
        it from now on. Say with `record_consumer` that they were worked off; `changelog_reader` does so by itself.
        """
        from lakelsm.frames.changelog_frame import change_frame

        engine = chosen_engine("spark", self._spark)
        store, plan, _ = self._changes(engine, start, end, where, mode, kind_column, positions, consumer_id)
        return change_frame(self.spark, store, plan, where, kind_column, positions)

    def changelog_arrow(
        self,
        start: int | str | datetime | None = None,
        end: int | str | datetime | None = None,
        where: str | None = None,
        *,
        mode: str = "auto",
        kind_column: str = "rowkind",
        positions: bool = False,
        consumer_id: str | None = None,
    ) -> pa.Table:
        """The changes that `changelog` gives as an Arrow table, read in this process; see `changelog_reader`.

        What was handed over is not known to be worked off: say so with `record_consumer`.
        """
        return self._read_changes(start, end, where, mode, kind_column, positions, consumer_id)[0].read_all()

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
    ) -> pa.RecordBatchReader:
        """The changes that `changelog` gives as a stream of Arrow record batches, read in this process as in `to_reader`.

        The arguments are those of `changelog`; ``where`` and texts of times are as in `to_reader`. With ``consumer_id``
        the consumer's progress is recorded when the stream is asked for more after its last batch: who works each batch
        off before the next gets every change at least once. A stream that is dropped half-way records nothing.
        """
        reader, consumed = self._read_changes(start, end, where, mode, kind_column, positions, consumer_id)
        return reader if consumed is None else pa.RecordBatchReader.from_batches(reader.schema, consumed.of(reader))

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
        engine: str | None = None,
    ) -> CompactionResult:
        """Compact now, also a ``write-only`` table: everything to the top level, or one ordinary pick per bucket.

        ``where`` is a condition on partition columns, ``buckets`` are bucket numbers ([0, 1] or '0,1'). ``commit_every``
        commits after so many buckets, ``deadline`` begins no further commit after so many seconds (or '30 min'),
        ``max_task_memory`` is bytes a task (or '256mb'). ``engine`` is 'spark' or 'local', this process; by default Spark
        where a session is given, active or that of spark-submit.
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
        user, _ = commit_identity(store.options, commit_user, None, SYSTEM.new_uuid)
        chosen = self._engine(engine)
        scope = checked_scope(store, full, None if where is None else chosen.predicate(store, where), numbers)
        result = Compactor(chosen.runner, store).compact(scope, limits, dry_run=dry_run, commit_user=user)
        if result.snapshot_ids:
            after_commit(store)
        return result

    def __repr__(self) -> str:
        return f"Table({self.name!r} at {self._opened.paths.root!r})"

    # -- inside ----------------------------------------------------------------------------------------------------

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

    def _plans(
        self,
        engine: Engine,
        where: str | None,
        snapshot_id: int | None,
        timestamp: str | datetime | None,
        tag: str | None,
        fresh: bool,
    ) -> list[tuple[TableStore, ReadPlan]]:
        checked_flag("fresh", fresh)
        states = self._states(engine, where, snapshot_id, timestamp, tag)
        predicates = [None if where is None else engine.predicate(state.store, where) for state in states]
        plans = [plan_read(it.store, it.snapshot, predicate, fresh) for it, predicate in zip(states, predicates)]
        return [(state.store, plan) for state, plan in zip(states, plans)]

    def _states(
        self,
        engine: Engine,
        where: str | None,
        snapshot_id: int | None,
        timestamp: str | datetime | None,
        tag: str | None,
    ) -> list[ReadState]:
        """What is read: the table's state, and that of the branch that it falls back to, if any."""
        checked_condition(where)
        snapshot_id = checked_snapshot_id("snapshot_id", snapshot_id)
        timestamp, tag = checked_time("timestamp", timestamp), checked_tag("tag", tag)
        newest = self._store()
        store, snapshot = chosen_state(newest, snapshot_id, timestamp, tag, engine.millis_of)
        other, until = fallback_of(newest), None
        if timestamp is not None:
            until = engine.millis_of(timestamp)
        elif snapshot is not None and (snapshot_id is not None or tag is not None):
            until = snapshot.time_millis
        predicate = None if where is None or other is None else engine.predicate(store, where)
        return read_states(ReadState(store, snapshot), other, predicate, until)

    def _read_changes(
        self,
        start: int | str | datetime | None,
        end: int | str | datetime | None,
        where: str | None,
        mode: str,
        kind_column: str,
        positions: bool,
        consumer_id: str | None,
    ) -> tuple[pa.RecordBatchReader, ConsumedChanges | None]:
        from lakelsm.local.arrow_changes import changes_reader

        engine = local_engine()
        store, plan, consumed = self._changes(engine, start, end, where, mode, kind_column, positions, consumer_id)
        predicate = engine.exact(store, where)
        reader = changes_reader(engine.runner, store, plan, predicate, kind_column=kind_column, positions=positions)
        return reader, consumed

    def _changes(
        self,
        engine: Engine,
        start: int | str | datetime | None,
        end: int | str | datetime | None,
        where: str | None,
        mode: str,
        kind_column: str,
        positions: bool,
        consumer_id: str | None,
    ) -> tuple[TableStore, ChangelogPlan, ConsumedChanges | None]:
        start, end = checked_point("start", start, least=0), checked_point("end", end, least=1)
        checked_condition(where)
        checked_name("mode", mode, "auto, changelog, delta or diff")
        checked_name("kind_column", kind_column, "the name of a column as text")
        checked_flag("positions", positions)
        name, store = checked_consumer("consumer_id", consumer_id), self._store()
        begin = start if name is None else consumer_start(store, name, start)
        between = changelog_range(store, begin, end, engine.millis_of)
        check_added_columns(store.schema, kind_column, positions)
        plan = between.plan(store, mode, None if where is None else engine.predicate(store, where))
        if name is None or between.after is None:
            return store, plan, None
        return store, plan, ConsumedChanges.begun(store, name, between.first, between.after)

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
        earlier = Committer.of(store).committed(user, identifier)
        if earlier is not None:
            return result_of(BatchResult(earlier, ()))
        batch = write(BatchWriter(engine.writer(store), store), user, identifier)
        result = finished_write(engine.runner, store, batch, user, identifier)
        if result.snapshot_id is not None:
            after_commit(store, {entry.partition for entry in batch.entries})
        return result


def _counted(engine: Engine, state: ReadState, where: str | None, fresh: bool) -> CountResult:
    """How many rows of a state match: by the manifests, or else by the engine."""
    store, snapshot = state.store, state.snapshot
    predicate = None if where is None else parse_where(where, store.schema.fields)
    rows = metadata_count(store, snapshot, predicate, fresh)
    if rows is None:
        return engine.counted(store, snapshot, where, fresh)
    return CountResult(snapshot_id=None if snapshot is None else snapshot.id, rows=rows, how="metadata")
