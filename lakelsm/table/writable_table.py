"""Writes to a table: upserts, overwrites, deletes and updates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
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
from lakelsm.commit.commit_message import CommitOutcome
from lakelsm.commit.committer import Committer
from lakelsm.compact.after_write import batch_result, finish_write
from lakelsm.engine import Engine, chosen_engine
from lakelsm.environment import SYSTEM
from lakelsm.failures import after_commit_step, note_if_interrupted, report_schema_on_failure, warn_after_commit
from lakelsm.format.row_kinds import DELETE, INSERT, UPDATE_AFTER
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
from lakelsm.text_table import amount
from lakelsm.write.batch_write import BatchResult, BatchWriter, ChangedRows
from lakelsm.write.event_time import EventTime

#: Writes one batch under a commit user and an identifier.
_Write: TypeAlias = Callable[[BatchWriter[Any], str, int], BatchResult]
#: The same for the rows of a frame.
_WriteFrame: TypeAlias = Callable[[WrittenFrame, BatchWriter[Any], str, int], BatchResult]


class WritableTable(OpenedTable):
    """A table whose rows can be changed. Each call is one commit, followed by a compaction of the written buckets."""

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
        event_time: str | None = None,
        event_time_delay: timedelta | float | str | None = None,
    ) -> CommitResult:
        """Upsert rows. Of rows with one key the last one wins, or the one that ``sequence.field`` selects.

        ``frame`` is a Spark DataFrame, or rows that this process writes: a pyarrow Table, RecordBatch,
        RecordBatchReader or dataset, a pandas or Polars DataFrame, any object with the Arrow C stream interface, a list
        of dicts, or a dict of columns. Column names match in any case. With `partial-update` the frame may lack
        columns, which do not change. ``row_kind`` names a column of +I, -U, +U and -D. ``cast`` 'safe' accepts columns
        of other types if each value fits, 'strict' only types whose every value fits. ``merge_schema`` first adds
        missing columns to the table and widens types (docs/api.md, Schema merges); ``schema_changes`` of the result
        lists them. A rerun with the same ``commit_user`` and ``batch_id`` (ascending for each user) changes nothing;
        but a batch that changed nothing leaves no snapshot, so its rerun is computed again. A batch may be committed
        after later ones. ``options`` override options of the table for this call: those of one write in
        docs/options.md. ``event_time`` names a column of type DATE or TIMESTAMP: the watermark of the snapshot becomes
        the maximum of its values less ``event_time_delay`` (such as '10 minutes'), and never lower than before. Values
        without a time zone are in that of the table, else in UTC. ``ignored_rows`` of the result counts rows of kind
        -U and -D without effect; a UserWarning reports those of kind -D. Compacts the written buckets afterwards unless
        the table is ``write-only``. Raises InvalidInputError for wrong columns, types or rows, and then commits nothing;
        BatchHistoryExpiredError for a batch id below the user's newest that expired snapshots may contain.
        """
        engine, safe_casts = self._engine_of(frame), checked_cast(cast)
        checked_name("row_kind", row_kind, "the name of a column as text", optional=True)
        checked_flag("merge_schema", merge_schema)
        overrides = option_texts("options", options)
        event = EventTime.checked(event_time, event_time_delay)
        store = self._store().with_options(overrides).for_writes()
        written = WrittenFrame(
            engine, store, frame, safe_casts=safe_casts, row_kind=row_kind, options=overrides, event_time=event
        )

        def append(given: WrittenFrame, writer: BatchWriter[Any], user: str, identifier: int) -> BatchResult:
            return writer.append(given.prepared(), user, identifier, event_time=given.event_column())

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
        """Replace a partition (given by its leading or all columns), or the partitions of the rows, by these rows.

        ``frame``, ``cast`` and ``merge_schema`` are as in `write`; the frame may lack the columns of ``partition``.
        Without ``partition`` a table without partitions is replaced as a whole, and so is a partitioned one with
        ``dynamic-partition-overwrite`` = false. A frame without rows empties the partition or table; but if the rows of
        the frame select the partitions (neither ``partition`` nor the option is set), it replaces nothing. No changelog
        contains what an overwrite replaces or writes: if the table has consumers, a warning names them.
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
            warn_consumers(store, result.snapshot_id)
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
        """Delete the rows that match an SQL condition, or that have one of the ``keys``, by writing -D rows.

        ``keys`` are a list of values, of tuples for a key of several columns, or a frame as in `write` with the columns
        of the primary key. Rows are selected in the newest snapshot, and again if others write the same keys before the
        commit: a row that no longer matches remains. If no row matches, nothing is committed. ``engine`` is 'spark' or
        'local' (this process, with conditions as in `to_reader`); by default Spark if a session is given, active, or
        that of spark-submit; the type of ``keys`` selects their engine. ``commit_user`` and ``batch_id`` are as in
        `write`. Raises InvalidInputError if the merge engine of the table would not remove the rows,
        CommitConflictError if others commit first in every attempt.
        """
        store, chosen = self._store().for_writes(), self._engine(engine)
        if keys is None:
            checked_condition(where, optional=False)
            rows = partial(chosen.retractions, store, where or "")
        elif where is not None:
            raise invalid_argument("where", "cannot be combined with keys.", "Pass one of the two.")
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
        """Set columns of the rows that match an SQL condition, by writing +U rows.

        ``set`` maps columns to SQL expressions as text, on the current columns of the row: {'n': 'n + 1', 'status':
        "'done'", 'note': 'NULL'}; text values need quotes within the text. Numbers are rounded to the type of the
        column. ``where``, ``engine``, ``commit_user``, ``batch_id`` and concurrent writes of the same keys are as in
        `delete`. This process evaluates literals, columns, ``+ - * / %``, ``||`` and concat, CASE and if, coalesce,
        nullif, CAST between numbers and to text, and conditions, as in Spark's ANSI mode. Raises InvalidInputError, and
        commits nothing, for a column of the key, a merge engine that would not return the new rows, a value that the
        column cannot have, and a row whose sequence is below that of the current one; UnsupportedFeatureError for an
        expression that this process cannot evaluate.
        """
        values, chosen = checked_assignments(set), self._engine(engine)
        checked_condition(where, optional=False)
        store = self._store().for_writes()
        rows = partial(chosen.updates, store, where, values)
        return self._change(chosen, store, "UPDATE", rows, commit_user, batch_id)

    def _engine_of(self, frame: object, named: str | None = None) -> Engine:
        """Return the engine for rows: Spark for Spark DataFrames, this process for all others."""
        own = "spark" if is_spark_frame(frame) else "local"
        if named not in (None, own):
            raise wrong_argument("engine", named, f"'{own}' for rows of this type", "Leave it out.")
        if own == "local":
            return chosen_engine("local", None)
        from lakelsm.spark.session import checked_frame, session_of_rows

        rows = checked_frame(frame)  # type: ignore[arg-type]
        return chosen_engine("spark", session_of_rows("frame", rows, self._spark))

    def _change(
        self,
        engine: Engine,
        store: TableStore,
        operation: str,
        rows: ChangedRows[Any],
        commit_user: str | None,
        batch_id: int | None,
    ) -> CommitResult:
        return commit_change(engine, store, operation, rows, commit_user, batch_id)

    def _commit_frame(
        self, frame: WrittenFrame, write: _WriteFrame, merge_schema: bool, commit_user: str | None, batch_id: int | None
    ) -> CommitResult:
        user, identifier, earlier = known_batch(frame.store, commit_user, batch_id)
        if earlier is not None:
            return earlier
        written = frame.merged() if merge_schema else frame
        with report_schema_on_failure(written.store.name, written.store.schema.id, written.changes):
            result = publish_batch(written.engine, written.store, partial(write, written), user, identifier)
        return replace(result, schema_changes=written.changes)


def commit_change(
    engine: Engine,
    store: TableStore,
    operation: str,
    rows: ChangedRows[Any],
    commit_user: str | None,
    batch_id: int | None,
) -> CommitResult:
    """Commit rows that are computed from a snapshot, and again if others write their keys before the commit."""
    written: list[BatchResult] = []

    def change(writer: BatchWriter[Any], user: str, identifier: int) -> BatchResult:
        written.append(writer.change(operation, rows, user, identifier))
        return written[-1]

    user, identifier, result = known_batch(store, commit_user, batch_id)
    if result is None:
        result = publish_batch(engine, store, change, user, identifier)
    if result.already_committed and not result.rows:
        return result
    if operation != "MERGE":
        return replace(result, matched_rows=result.rows)
    kinds = next(each.row_kinds for each in reversed(written))
    return replace(
        result, updated_rows=kinds[UPDATE_AFTER], deleted_rows=kinds[DELETE], inserted_rows=kinds[INSERT]
    )


def known_batch(
    store: TableStore, commit_user: str | None, batch_id: int | None, *, query_id: str | None = None
) -> tuple[str, int, CommitResult | None]:
    """Return the commit user and the identifier of a call, and its result if the batch was committed before.

    ``query_id`` is the streaming query of the batch. Raises CommitUserTakenError if the user belongs to another one.
    """
    user, identifier = commit_identity(store.options, commit_user, batch_id, SYSTEM.new_uuid)
    earlier = Committer(store).committed(user, identifier, query_id)
    return user, identifier, None if earlier is None else batch_result(BatchResult(earlier, ()))


def publish_batch(
    engine: Engine,
    store: TableStore,
    write: _Write,
    user: str,
    identifier: int,
    *,
    query_id: str | None = None,
    compact_every: int | None = None,
) -> CommitResult:
    """Write and commit one batch, and run the compaction and the upkeep that follow a commit.

    A batch of a stream has a ``query_id``, as in `known_batch`, and ``compact_every``, as in `finish_write`.
    """
    batch = write(BatchWriter(engine.writer(store), store, query_id=query_id), user, identifier)
    snapshot = batch.outcome.snapshot
    with note_if_interrupted(store.name, [] if snapshot is None else [snapshot.id]):
        if batch.ignored_deletes:
            reason = ignored_deletes_reason(MergeSpec.of(store.schema, store.options))
            warn_after_commit(f"Table {store.name}: ignored {amount(batch.ignored_deletes, 'row')} of kind -D. {reason}")
        result = finish_write(engine.runner, store, batch, user, identifier, compact_every=compact_every)
        if snapshot is None:
            return result
        failures = after_commit(store, {entry.partition for entry in batch.entries})
    return replace(result, after_commit_failures=result.after_commit_failures + failures)


def repeated_batch(
    engine: Engine, store: TableStore, earlier: CommitResult, user: str, identifier: int, *, compact_every: int
) -> CommitResult:
    """Return the result of a batch of a stream that was committed before; compact it if its first run did not."""
    snapshot = None if earlier.snapshot_id is None else store.snapshots.try_get(earlier.snapshot_id)
    if snapshot is None:
        return earlier
    batch = BatchResult(CommitOutcome(snapshot, already_committed=True, files_published=False), ())
    return finish_write(engine.runner, store, batch, user, identifier, compact_every=compact_every)


def warn_consumers(store: TableStore, snapshot_id: int | None) -> None:
    """Warn about consumers that do not see a committed overwrite. Raises no Exception."""
    with after_commit_step(store.name, "the search for consumers", "Check table.consumers.list()."):
        names = store.consumers.names()
        if names:
            warn_after_commit(
                f"Table {store.name}: no changelog contains snapshot {snapshot_id}, an overwrite, so consumers "
                f"({', '.join(names)}) do not see it. Read changelog(mode='diff') for them, or load their tables again."
            )
