"""Rows into a table: written, replaced, updated and deleted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from lakelsm.arguments import (
    checked_assignments,
    checked_cast,
    checked_condition,
    checked_flag,
    checked_name,
    invalid_argument,
    option_texts,
    wrong_argument,
)
from lakelsm.commit.commit_identity import commit_identity
from lakelsm.commit.committer import Committer
from lakelsm.compact.after_write import batch_result, finish_write
from lakelsm.engine import Engine, chosen_engine
from lakelsm.environment import SYSTEM
from lakelsm.failures import after_commit_step, note_if_interrupted, report_schema_on_failure, warn_after_commit
from lakelsm.local.arrow_input import is_spark_frame
from lakelsm.maintain.after_commit import after_commit
from lakelsm.merge.batch_check import ignored_deletes_reason
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.operation_log import logged
from lakelsm.plan.overwrite_plan import checked_partition, replaced_partitions
from lakelsm.results import CommitResult
from lakelsm.snapshots.table_store import TableStore
from lakelsm.table.opened_table import OpenedTable
from lakelsm.table.written_frame import WrittenFrame
from lakelsm.write.batch_write import BatchResult, BatchWriter, ChangedRows

#: Writes one batch as a commit user and identifier.
_Write: TypeAlias = Callable[[BatchWriter[Any], str, int], BatchResult]
#: The same of the rows of a frame.
_WriteFrame: TypeAlias = Callable[[WrittenFrame, BatchWriter[Any], str, int], BatchResult]


class WritableTable(OpenedTable):
    """A table whose rows can be changed. Each call is one commit, and the compaction of the buckets that it wrote to."""

    @logged("write")
    def write(
        self,
        frame: object,
        row_kind: str | None = None,
        *,
        cast: str = "safe",
        merge_schema: bool = False,
        commit_user: str | None = None,
        batch_id: int | None = None,
        options: Mapping[str, object] | None = None,
    ) -> CommitResult:
        """Upsert rows; of those with one key the later one wins (or the one that ``sequence.field`` selects).

        ``frame`` is a Spark DataFrame, or rows that are written in this process: a pyarrow Table, RecordBatch,
        RecordBatchReader or dataset, a pandas or Polars DataFrame, anything with the Arrow C stream interface, a list of
        dicts or a dict of columns. ``cast`` 'safe' takes columns of other types where each value fits; 'strict' takes
        only types whose every value fits. ``merge_schema`` first adds the columns that the table lacks and widens types
        (docs/api.md, Schema merges); the result has the ``schema_changes``.
        ``row_kind`` names a column of +I, -U, +U and -D. ``commit_user`` and ``batch_id`` (ascending per user) make a
        rerun a no-op; a batch that failed may come after later ones. A batch that changes nothing leaves no snapshot: its
        rerun is computed again. ``options`` override the table's for this call: those that docs/options.md has for one
        write. Names of columns are found in any case. With `partial-update` the frame may have fewer columns: those it
        lacks do not change. Rows of kind -U and -D without effect are ``ignored_rows``; a UserWarning reports
        those of kind -D. Compacts the written buckets afterwards unless the table is ``write-only``. Raises
        InvalidInputError for wrong columns, types or rows; nothing is visible then. Raises BatchHistoryExpiredError for a
        batch id below the user's newest that expired snapshots may hold.
        """
        engine, safe_casts = self._engine_of(frame), checked_cast(cast)
        checked_name("row_kind", row_kind, "the name of a column as text", optional=True)
        checked_flag("merge_schema", merge_schema)
        overrides = option_texts("options", options)
        store = self._store().with_options(overrides).for_writes()
        written = WrittenFrame(engine, store, frame, safe_casts=safe_casts, row_kind=row_kind, options=overrides)

        def append(given: WrittenFrame, writer: BatchWriter[Any], user: str, identifier: int) -> BatchResult:
            return writer.append(given.prepared(), user, identifier)

        return self._commit_frame(written, append, merge_schema, commit_user, batch_id)

    @logged("overwrite")
    def overwrite(
        self,
        frame: object,
        partition: Mapping[str, object] | None = None,
        *,
        cast: str = "safe",
        merge_schema: bool = False,
        commit_user: str | None = None,
        batch_id: int | None = None,
    ) -> CommitResult:
        """Replace a partition (its leading or all columns), or the partitions that the frame has rows of, by its rows.

        ``frame``, ``cast`` and ``merge_schema`` are as in `write`. No changelog has what an overwrite replaces or writes:
        where the table has consumers, a warning names them.
        Without ``partition`` a table without partitions is replaced whole, and so is a partitioned one whose
        ``dynamic-partition-overwrite`` is false. Columns named in ``partition`` may be left out of the frame. What is
        replaced by a frame without rows is empty afterwards: a named partition, or the whole table; only where the
        frame's rows select the partitions (neither ``partition`` nor the option set) does such a frame replace none.
        """
        engine, safe_casts = self._engine_of(frame), checked_cast(cast)
        checked_flag("merge_schema", merge_schema)
        store = self._store().for_writes()
        fixed = checked_partition(store, partition)
        written = WrittenFrame(engine, store, frame, safe_casts=safe_casts, fixed=fixed)

        def overwrite(given: WrittenFrame, writer: BatchWriter[Any], user: str, identifier: int) -> BatchResult:
            return writer.overwrite(given.prepared(), replaced_partitions(given.store, fixed), user, identifier)

        result = self._commit_frame(written, overwrite, merge_schema, commit_user, batch_id)
        if result.snapshot_id is not None and not result.already_committed:
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
        select the engine by their type. ``commit_user`` and ``batch_id`` are as in `write`. Raises
        InvalidInputError where the table's merge engine would not remove the rows, CommitConflictError where others are
        always first.
        """
        store, chosen = self._store().for_writes(), self._engine(engine)
        if keys is None:
            checked_condition(where, optional=False)
            rows = partial(chosen.retractions, store, where or "")
        elif where is not None:
            raise invalid_argument("where", "keys are given, too.", "Pass one of the two.")
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
        """Set columns of the rows that match an SQL condition, by writing +U rows of their keys.

        ``set`` maps columns to SQL expressions as text, over the present columns of the row: {'n': 'n + 1', 'status':
        "'done'", 'note': 'NULL'}. A text is therefore quoted within the text. Numbers are rounded to the column's type.
        Other columns do not change. ``where``, ``engine``, ``commit_user`` and ``batch_id`` are as in `delete`, as is
        what happens where others write the same keys. In this process expressions are literals, columns, ``+ - * / %``,
        ``||`` and concat, CASE and if, coalesce, nullif, CAST between numbers and to text, and conditions, as in Spark's
        ANSI mode. Raises InvalidInputError, and nothing is visible, for a column of the key, a merge engine that would
        not show the new rows, a value that the column cannot have, and a row that would lose to the present one by
        its sequence; UnsupportedFeatureError for an expression that is not evaluated in this process.
        """
        values, chosen = checked_assignments(set), self._engine(engine)
        checked_condition(where, optional=False)
        store = self._store().for_writes()
        rows = partial(chosen.updates, store, where, values)
        return self._change(chosen, store, "UPDATE", rows, commit_user, batch_id)

    def _engine_of(self, frame: object, named: str | None = None) -> Engine:
        """Where rows are taken: on Spark those of its DataFrames, in this process all others."""
        own = "spark" if is_spark_frame(frame) else "local"
        if named not in (None, own):
            raise wrong_argument("engine", named, f"'{own}' for such rows", "Leave it out.")
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

        user, identifier, result = _known_batch(store, commit_user, batch_id)
        if result is None:
            result = _committed(engine, store, change, user, identifier)
        return result if result.already_committed and not result.rows else replace(result, matched_rows=result.rows)

    def _commit_frame(
        self, frame: WrittenFrame, write: _WriteFrame, merge_schema: bool, commit_user: str | None, batch_id: int | None
    ) -> CommitResult:
        user, identifier, earlier = _known_batch(frame.store, commit_user, batch_id)
        if earlier is not None:
            return earlier
        written = frame.merged() if merge_schema else frame
        with report_schema_on_failure(written.store.name, written.store.schema.id, written.changes):
            result = _committed(written.engine, written.store, partial(write, written), user, identifier)
        return replace(result, schema_changes=written.changes)


def _known_batch(
    store: TableStore, commit_user: str | None, batch_id: int | None
) -> tuple[str, int, CommitResult | None]:
    """The commit user and the identifier of a call, and the result where this batch was committed before."""
    user, identifier = commit_identity(store.options, commit_user, batch_id, SYSTEM.new_uuid)
    earlier = Committer(store).committed(user, identifier)
    return user, identifier, None if earlier is None else batch_result(BatchResult(earlier, ()))


def _committed(engine: Engine, store: TableStore, write: _Write, user: str, identifier: int) -> CommitResult:
    """Write and commit one batch, and do what follows a commit."""
    batch = write(BatchWriter(engine.writer(store), store), user, identifier)
    snapshot = batch.outcome.snapshot
    with note_if_interrupted(store.name, [] if snapshot is None else [snapshot.id]):
        if batch.ignored_deletes:
            reason = ignored_deletes_reason(MergeSpec.of(store.schema, store.options))
            warn_after_commit(f"Table {store.name}: rows of kind -D without effect: {batch.ignored_deletes}. {reason}")
        result = finish_write(engine.runner, store, batch, user, identifier)
        if snapshot is None:
            return result
        failures = after_commit(store, {entry.partition for entry in batch.entries})
    return replace(result, after_commit_failures=result.after_commit_failures + failures)


def _warn_consumers(store: TableStore, snapshot_id: int | None) -> None:
    """Warn of consumers that do not see a committed overwrite. Raises no Exception."""
    with after_commit_step(store.name, "the look for consumers", "Check table.consumers by yourself."):
        names = store.consumers.names()
        if names:
            warn_after_commit(
                f"Table {store.name}: snapshot {snapshot_id} is an overwrite, which no changelog has, so that consumers "
                f"({', '.join(names)}) do not see it. Read changelog(mode='diff') over it, or load their tables again."
            )
