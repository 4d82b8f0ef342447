"""Table: the public face of one primary-key table. What it writes and compacts is here; each other face is a module."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from lakelsm.arguments import (
    checked_assignments,
    checked_buckets,
    checked_condition,
    checked_flag,
    checked_location,
    checked_name,
    checked_number,
    checked_seconds,
    checked_task_memory,
    option_texts,
    wrong_argument,
)
from lakelsm.commit.commit_identity import commit_identity
from lakelsm.commit.committer import Committer
from lakelsm.compact.after_write import finished_write, result_of
from lakelsm.compact.compactor import DEFAULT_TASK_MEMORY, CompactionLimits, Compactor
from lakelsm.engine import Engine, chosen_engine, opened_storage
from lakelsm.failures import commit_stands
from lakelsm.local.arrow_input import is_spark_frame
from lakelsm.maintain.after_commit import after_commit
from lakelsm.maintain.table_inspection import TableInspection
from lakelsm.maintain.table_upkeep import TableUpkeep
from lakelsm.maintain.table_versions import TableVersions
from lakelsm.options import TableOptions
from lakelsm.plan.compaction_plan import checked_scope
from lakelsm.plan.overwritten_partitions import checked_partition, replaced_partitions
from lakelsm.results import CommitResult, CompactionResult
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.table_store import TableStore
from lakelsm.surroundings import SYSTEM
from lakelsm.table_changes import TableChanges
from lakelsm.table_reads import TableReads
from lakelsm.write.batch_write import BatchResult, BatchWriter, ChangedRows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: Writes one batch as a commit user and identifier.
_Write: TypeAlias = Callable[[BatchWriter[Any], str, int], BatchResult]


class Table(TableReads, TableChanges, TableVersions, TableUpkeep, TableInspection):
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
        store = self._store(option_texts("options", options)).to_write()

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
        store = self._store().to_write()
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
        store = self._store().to_write()
        from lakelsm.frames.update import updates

        rows = partial(updates, self.spark, store, where, values)
        return self._change(chosen_engine("spark", self._spark), store, "UPDATE", rows, commit_user, batch_id)

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
        store = self._store().to_write()
        user, _ = commit_identity(store.options, commit_user, None, SYSTEM.new_uuid)
        chosen = self._engine(engine)
        scope = checked_scope(store, full, None if where is None else chosen.predicate(store, where), numbers)
        result = Compactor(chosen.runner, store).compact(scope, limits, dry_run=dry_run, commit_user=user)
        if not result.snapshot_ids:
            return result
        with commit_stands(store.name, result.snapshot_ids):
            failures = after_commit(store)
        return replace(result, after_commit_failures=result.after_commit_failures + failures)

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
        snapshot = batch.outcome.snapshot
        with commit_stands(store.name, [] if snapshot is None else [snapshot.id]):
            result = finished_write(engine.runner, store, batch, user, identifier)
            if snapshot is None:
                return result
            failures = after_commit(store, {entry.partition for entry in batch.entries})
        return replace(result, after_commit_failures=result.after_commit_failures + failures)
