"""Streams into a table: each micro-batch of a streaming query is one commit, exactly once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from lakelsm.arguments import checked_cast, checked_flag, checked_name, checked_number, invalid_argument
from lakelsm.commit.commit_identity import checked_commit_user, commit_user_of_query
from lakelsm.engine import Engine, chosen_engine
from lakelsm.errors import InvalidInputError
from lakelsm.operation_log import operation_line
from lakelsm.results import CommitResult
from lakelsm.snapshots.table_store import TableStore
from lakelsm.table.opened_table import OpenedTable
from lakelsm.table.writable_table import known_batch, publish_batch, repeated_batch, warn_consumers
from lakelsm.table.written_frame import WrittenFrame
from lakelsm.write.batch_write import BatchResult, BatchWriter
from lakelsm.write.event_time import EventTime

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


class StreamedTable(OpenedTable):
    """A table into which streaming queries write."""

    def write_stream(
        self,
        stream: object,
        *,
        row_kind: str | None = None,
        overwrite: bool = False,
        cast: str = "safe",
        commit_user: str | None = None,
        compact_every: int = 1,
        event_time: str | None = None,
        event_time_delay: timedelta | float | str | None = None,
    ) -> StreamingQuery:
        """Start a streaming query of Spark that writes each of its micro-batches as one commit, exactly once.

        ``stream`` is ``df.writeStream`` with the trigger, name, checkpoint location and output mode of the query, or a
        streaming DataFrame, whose checkpoint then is that of the session's settings. Each batch is upserted as in
        `write`, with the same ``row_kind``, ``cast``, ``event_time`` and ``event_time_delay``. With ``overwrite`` each
        batch replaces the whole table (Spark's output mode 'complete'). A batch without rows commits nothing.

        A batch that Spark repeats after a failure changes nothing: its commit has a commit user, Spark's batch id and the
        id of the query, which the checkpoint keeps. ``commit_user`` is by default derived from the query id. A user
        belongs to one query: a batch of another one ends with CommitUserTakenError.

        ``compact_every`` is the number of batches between two compactions of what was written: 1 compacts after each
        batch, 0 never, for a table that a job of its own compacts. With more than 1, buckets with
        ``num-sorted-run.stop-trigger`` runs or more are compacted after each batch that writes them. A failed compaction
        is a warning, and the next one does its work.

        Returns the query, which runs until it is stopped, fails, or has processed what its trigger requests. Raises
        InvalidInputError, before the query starts, for wrong arguments, columns and types, and without a checkpoint. A
        batch that `write` refuses ends the query with the same error.
        """
        from lakelsm.frames.stream_query import StreamQuery

        sink = StreamSink(
            opened=self._opened,
            row_kind=checked_name("row_kind", row_kind, "the name of a column as text", optional=True),
            overwrite=checked_flag("overwrite", overwrite),
            safe_casts=checked_cast(cast),
            commit_user=None if commit_user is None else checked_commit_user(commit_user),
            compact_every=checked_number("compact_every", compact_every, min_value=0),
            event_time=EventTime.checked(event_time, event_time_delay),
        )
        if sink.overwrite and sink.row_kind is not None:
            raise invalid_argument("row_kind", "rows that replace the table have no row kinds.", "Leave it out.")
        with operation_line(self._log_name, "start stream", only_failures=True):
            query = StreamQuery.checked(stream, overwrite=overwrite)
            sink.check(query.frame)
            return query.start(sink.write)


@dataclass(frozen=True, kw_only=True)
class StreamSink:
    """Writes the batches of one streaming query. The arguments are those of `StreamedTable.write_stream`, checked."""

    opened: TableStore
    row_kind: str | None
    overwrite: bool
    safe_casts: bool
    commit_user: str | None
    compact_every: int
    event_time: EventTime | None

    def check(self, stream: DataFrame) -> None:
        """Raise the errors of a write of this stream's columns, before its query starts."""
        store = self.opened.refreshed().for_writes()
        check_compact_every(store, self.compact_every)
        written = self._frame(store, stream)
        written.prepared()
        written.event_column()

    def write(self, batch: DataFrame, batch_id: int, query_id: str) -> None:
        """Write a batch, unless it was committed before, and log it."""
        with operation_line(self.opened.name, "write_stream") as line:
            line.add(lambda: {"batch_id": batch_id, "query_id": query_id})
            line.add_result(self.written(batch, batch_id, query_id))

    def written(self, batch: DataFrame, batch_id: int, query_id: str) -> CommitResult:
        """Write a batch of a query, and return the result."""
        from lakelsm.frames.stream_query import compute

        newest = self.opened.refreshed().for_writes()
        if self.opened.is_recreated():
            raise InvalidInputError(
                f"Table {self.opened.name}: it was dropped and created again while a query wrote into it, and lacks the "
                "earlier batches. Start a query with a new checkpoint."
            )
        frame = self._frame(newest, batch)
        engine, store = frame.engine, frame.store
        user = self.commit_user or commit_user_of_query(query_id)
        user, identifier, earlier = known_batch(store, user, batch_id, query_id=query_id)
        if earlier is not None:
            compute(batch)
            return repeated_batch(engine, store, earlier, user, identifier, compact_every=self.compact_every)
        write = partial(self._publish, frame)
        result = publish_batch(
            engine, store, write, user, identifier, query_id=query_id, compact_every=self.compact_every
        )
        if self.overwrite and result.snapshot_id is not None and not result.already_committed:
            warn_consumers(store, result.snapshot_id)
        return result

    def _frame(self, store: TableStore, rows: DataFrame) -> WrittenFrame:
        engine: Engine = chosen_engine("spark", rows.sparkSession)
        return WrittenFrame(
            engine, store, rows, safe_casts=self.safe_casts, row_kind=self.row_kind, event_time=self.event_time
        )

    def _publish(self, frame: WrittenFrame, writer: BatchWriter[Any], user: str, identifier: int) -> BatchResult:
        rows, event = frame.prepared(), frame.event_column()
        if self.overwrite:
            return writer.overwrite(rows, _whole_table, user, identifier, event_time=event)
        return writer.append(rows, user, identifier, event_time=event)


def check_compact_every(store: TableStore, number: int, name: str = "compact_every") -> None:
    """Raise InvalidInputError for a number of batches that has no effect. ``name`` is the argument or option."""
    if store.options.write_only and number > 1:
        raise invalid_argument(
            name, f"table {store.name} has the option 'write-only', so {number} batches compact nothing.", "Leave it out."
        )


def _whole_table(written: set[bytes]) -> Callable[[bytes], bool] | None:
    """Return that an overwrite replaces all partitions."""
    return None
