"""The face of a table's changes: what came between two snapshots, or after the one that a consumer is at."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from lakelsm.arguments import (
    checked_condition,
    checked_consumer,
    checked_flag,
    checked_name,
    checked_point,
    checked_timestamps,
)
from lakelsm.engine import Engine, chosen_engine, local_engine
from lakelsm.maintain.opened_table import OpenedTable
from lakelsm.maintain.versions.consumers import ConsumedChanges, consumer_start
from lakelsm.plan.changelog_plan import ChangelogPlan
from lakelsm.plan.time_travel import changelog_range
from lakelsm.read.changelog_tasks import check_added_columns
from lakelsm.snapshots.table_store import TableStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class TableChanges(OpenedTable):
    """The changelog of a table, on Spark and in this process."""

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
        timestamps: str = "ns",
    ) -> pa.Table:
        """The changes that `changelog` gives as an Arrow table, read in this process; see `changelog_reader`.

        What was handed over is not known to be worked off: say so with `record_consumer`.
        """
        reader, _ = self._read_changes(start, end, where, mode, kind_column, positions, consumer_id, timestamps)
        return reader.read_all()

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
        the consumer's progress is recorded when the stream is asked for more after its last batch: who works each batch
        off before the next gets every change at least once. A stream that is dropped half-way records nothing.
        """
        reader, consumed = self._read_changes(
            start, end, where, mode, kind_column, positions, consumer_id, timestamps
        )
        return reader if consumed is None else pa.RecordBatchReader.from_batches(reader.schema, consumed.of(reader))

    # -- inside ----------------------------------------------------------------------------------------------------

    def _read_changes(
        self,
        start: int | str | datetime | None,
        end: int | str | datetime | None,
        where: str | None,
        mode: str,
        kind_column: str,
        positions: bool,
        consumer_id: str | None,
        timestamps: str,
    ) -> tuple[pa.RecordBatchReader, ConsumedChanges | None]:
        from lakelsm.local.arrow_changes import changes_reader

        form = checked_timestamps("timestamps", timestamps)
        engine = local_engine()
        store, plan, consumed = self._changes(engine, start, end, where, mode, kind_column, positions, consumer_id)
        predicate = engine.exact(store, where)
        reader = changes_reader(
            engine.runner, store, plan, predicate, kind_column=kind_column, positions=positions, timestamps=form
        )
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
        first, last = checked_point("start", start, least=0), checked_point("end", end, least=1)
        checked_condition(where)
        checked_name("mode", mode, "auto, changelog, delta or diff")
        checked_name("kind_column", kind_column, "the name of a column as text")
        checked_flag("positions", positions)
        name, store = checked_consumer("consumer_id", consumer_id), self._store()
        begin = first if name is None else consumer_start(store, name, first)
        between = changelog_range(store, begin, last)
        check_added_columns(store.schema, kind_column, positions)
        plan = between.plan(store, mode, None if where is None else engine.predicate(store, where))
        if name is None or between.after is None:
            return store, plan, None
        return store, plan, ConsumedChanges.begun(store, name, between.first, between.after)
