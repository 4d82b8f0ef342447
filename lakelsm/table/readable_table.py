"""The rows of a table or of one of its snapshots: read on Spark and in this process, counted and explained."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from html import escape
from typing import TYPE_CHECKING

import pyarrow as pa

from lakelsm.arguments import (
    checked_condition,
    checked_flag,
    checked_number,
    checked_projection,
    checked_timestamps,
)
from lakelsm.engine import Engine, chosen_engine, local_engine, spark_session
from lakelsm.errors import LakelsmError
from lakelsm.operation_log import TABLE_LOG, OperationLine, log_step, logged, operation_line
from lakelsm.plan.count_plan import combined_count, metadata_count
from lakelsm.plan.fallback_branch import ReadState, combined_plan, fallback_of, read_states, refuse_fallback
from lakelsm.plan.read_plan import ReadPlan, plan_read
from lakelsm.predicate.parser import parse_where
from lakelsm.results import CountResult
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.table_store import TableStore
from lakelsm.table.opened_table import OpenedTable
from lakelsm.table.result_table import ResultTable

if TYPE_CHECKING:
    import pandas
    import polars
    from pyspark.sql import DataFrame, SparkSession

#: What `ReadableTable.read` can do without Spark.
_READ_HERE = "call to_arrow, to_pandas or to_reader"


@dataclass(frozen=True)
class RowsRequest:
    """The arguments of `Table.to_reader`, as a caller passes them and in their order."""

    where: str | None = None
    columns: Sequence[str] | None = None
    limit: int | None = None
    ordered: bool = False
    fresh: bool = False
    timestamps: str = "ns"


class ReadableTable(OpenedTable):
    """What `Table` and `TableView` read: the newest snapshot, or the one that a view is of."""

    @property
    def name(self) -> str:
        """The name that messages use."""
        return self._opened.name

    @property
    @abstractmethod
    def schema(self) -> TableSchema:
        """The schema of the rows."""

    def _repr_html_(self) -> str:
        """The table with its columns and keys, for notebooks."""
        try:
            schema = str(self.schema)
        except LakelsmError as error:  # Such as that of a table that was dropped: a display does not fail.
            schema = str(error)
        return f"<p><code>{escape(repr(self))}</code></p><pre>{escape(schema)}</pre>"

    def read(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        fresh: bool = False,
    ) -> DataFrame:
        """The merged rows as a Spark DataFrame: of the newest snapshot, or of the snapshot of a view (`Table.at`).

        ``where`` (an SQL condition) and ``columns`` do what ``.where`` and ``.select`` do, and also leave out partitions,
        buckets and files by the manifests alone. Tables with deletion vectors or `first-row` show what a compaction has
        merged: ``fresh`` merges in the rows that wait in level 0, as reads of other tables always do. Uses the session
        given or active session, and starts a local one if there is none; `to_arrow` needs none.
        """
        from lakelsm.frames.scan_frame import read_frame

        with operation_line(self._log_name, "read") as line:
            names = checked_projection(columns)
            engine = chosen_engine("spark", self._spark, _READ_HERE)

            def planned() -> DataFrame:
                plans = self._plans(engine, where, fresh)
                line.add(lambda: _planned([plan for _, plan in plans]))
                session = spark_session(self._spark, _READ_HERE)
                frames = [read_frame(session, store, plan, where, names) for store, plan in plans]
                return reduce(lambda one, other: one.unionAll(other), frames)

            return self._on_newest(planned)

    def to_reader(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        ordered: bool = False,
        fresh: bool = False,
        timestamps: str = "ns",
    ) -> pa.RecordBatchReader:
        """The rows that `read` gives as a stream of Arrow record batches, read in this process: no session is needed.

        ``where`` is judged here, so each part of it must be one that lakelsm understands: columns and literals compared,
        IN, BETWEEN, LIKE, IS NULL, joined by AND, OR and NOT. ``limit`` ends the stream after so many rows, whichever
        come first; ``ordered`` gives them in the order of the primary key. ``timestamps`` is the Arrow type of
        TIMESTAMP(7..9), nested ones too: 'ns' (nanoseconds, which hold the years 1678 to 2261 alone), 'us' (microseconds,
        rounded down) or 'text' ('0001-01-01 00:00:00.000000000', those WITH LOCAL TIME ZONE in UTC). The other arguments
        are as in `read`. Memory does not grow with the table. A dropped stream stops its work; its
        ``close`` alone does not. It is for one thread. Raises UnsupportedFeatureError for a part of ``where`` that is not
        understood, and, while rows are taken, CorruptTableError for a damaged file and UnsupportedFeatureError for a time
        that ``timestamps`` 'ns' cannot hold.
        """
        request = RowsRequest(where, columns, limit, ordered, fresh, timestamps)
        with operation_line(self._log_name, "to_reader") as line:
            reader, plans = self._on_newest(lambda: self._rows(request))
            line.add(lambda: _planned(plans))
            return line.count_stream(reader)

    def to_arrow(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        ordered: bool = False,
        fresh: bool = False,
        timestamps: str = "ns",
    ) -> pa.Table:
        """The rows of `to_reader` as one Arrow table, in memory."""
        with operation_line(self._log_name, "to_reader") as line:
            return self._table(line, RowsRequest(where, columns, limit, ordered, fresh, timestamps))

    def to_pandas(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        ordered: bool = False,
        fresh: bool = False,
        timestamps: str = "ns",
    ) -> pandas.DataFrame:
        """The rows of `to_reader` as a pandas DataFrame. Raises UnsupportedFeatureError for values that pandas lacks."""
        from lakelsm.local.shown_rows import as_pandas

        with operation_line(self._log_name, "to_reader") as line:
            rows = self._table(line, RowsRequest(where, columns, limit, ordered, fresh, timestamps))
        return as_pandas(rows)

    def to_polars(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        ordered: bool = False,
        fresh: bool = False,
        timestamps: str = "ns",
    ) -> polars.DataFrame:
        """The rows of `to_reader` as a Polars DataFrame. Raises InvalidInputError where Polars is not installed."""
        from lakelsm.local.shown_rows import as_polars, check_polars

        with operation_line(self._log_name, "to_reader") as line:
            check_polars()
            rows = self._table(line, RowsRequest(where, columns, limit, ordered, fresh, timestamps))
        return as_polars(rows)

    def head(self, rows: int = 10) -> ResultTable:
        """Some rows, to look at: a `ResultTable`, which prints as a table. Which rows they are is not defined."""
        with operation_line(self._log_name, "to_reader") as line:
            most = checked_number("rows", rows, min_value=0)
            found = self._table(line, RowsRequest(limit=most, timestamps="text"))

        def frame(spark: SparkSession) -> DataFrame:
            from lakelsm.frames.system_frames import shown_frame

            return shown_frame(spark, found)

        return ResultTable(self.name, found, frame, self._spark)

    def explain(self, where: str | None = None, *, fresh: bool = False) -> ReadPlan:
        """What `read` would open: its ``files_scanned`` of ``files_live``. Needs no session."""
        engine = chosen_engine(None, self._spark)
        return self._on_newest(lambda: combined_plan([plan for _, plan in self._plans(engine, where, fresh)]))

    @logged("count")
    def count(
        self,
        where: str | None = None,
        *,
        fresh: bool = False,
        engine: str | None = None,
    ) -> CountResult:
        """The number of rows of `read`. ``int()`` of the result is the number; the result has the method too.

        Manifests are enough, without a session, if no files must be merged and ``where`` matches partitions
        whole; otherwise data files are read: by the ``engine`` 'spark' or 'local', this process; by default Spark if a
        session is given, active or that of spark-submit. Arguments and errors are as in `read`, or in `to_reader`.
        """
        checked_flag("fresh", fresh)
        chosen = self._engine(engine)
        return self._on_newest(
            lambda: reduce(
                combined_count, (_counted(chosen, state, where, fresh) for state in self._states(chosen, where))
            )
        )

    # -- inside ----------------------------------------------------------------------------------------------------

    def _table(self, line: OperationLine, request: RowsRequest) -> pa.Table:
        """The rows of a request in memory."""

        def found() -> pa.Table:
            reader, plans = self._rows(request)
            line.add(lambda: _planned(plans))
            return reader.read_all()

        rows = self._on_newest(found)
        line.add(lambda: {"rows": len(rows), "bytes": rows.nbytes})
        return rows

    def _rows(self, request: RowsRequest) -> tuple[pa.RecordBatchReader, list[ReadPlan]]:
        """The stream of a request, and the plans of what it reads."""
        from lakelsm.local.arrow_scan import ArrowScan, chained_reader

        names = checked_projection(request.columns)
        most = None if request.limit is None else checked_number("limit", request.limit, min_value=0)
        ordered, fresh = checked_flag("ordered", request.ordered), checked_flag("fresh", request.fresh)
        form = checked_timestamps("timestamps", request.timestamps)
        engine = local_engine()
        states = self._states(engine, request.where)
        if ordered:
            refuse_fallback(self._store(), "ordered=True")
        scans = [
            ArrowScan.of(
                it.store,
                it.snapshot,
                names,
                engine.exact(it.store, request.where),
                ordered=ordered,
                fresh=fresh,
                timestamps=form,
            )
            for it in states
        ]
        for state, scan in zip(states, scans):
            _log_plan(state.store, scan.plan)
        return chained_reader(scans, engine.runner, most, names), [scan.plan for scan in scans]

    def _plans(
        self,
        engine: Engine,
        where: str | None,
        fresh: bool,
    ) -> list[tuple[TableStore, ReadPlan]]:
        checked_flag("fresh", fresh)
        states = self._states(engine, where)
        predicates = [None if where is None else engine.predicate(state.store, where) for state in states]
        plans: list[tuple[TableStore, ReadPlan]] = []
        for state, predicate in zip(states, predicates):
            with state.store.while_read(state.snapshot):
                plans.append((state.store, plan_read(state.store, state.snapshot, predicate, fresh)))
        for store, plan in plans:
            _log_plan(store, plan)
        return plans

    def _states(
        self,
        engine: Engine,
        where: str | None,
    ) -> list[ReadState]:
        """What is read: the state of the table, and that of the branch that it falls back to, if any."""
        checked_condition(where)
        newest, own, until = self._read_state()
        other = fallback_of(newest)
        predicate = None if where is None or other is None else engine.predicate(own.store, where)
        with own.store.while_read(own.snapshot):
            return read_states(own, other, predicate, until)

    @abstractmethod
    def _read_state(self) -> tuple[TableStore, ReadState, int | None]:
        """The table as it was opened, the state that is read, and the time that the read travels to (None: now)."""


def _planned(plans: Sequence[ReadPlan]) -> dict[str, object]:
    """The log values of a planned read; the snapshot is that of the table itself."""
    return {"snapshot_id": plans[0].snapshot_id, "files": sum(plan.files_scanned for plan in plans)}


def _log_plan(store: TableStore, plan: ReadPlan) -> None:
    log_step(
        TABLE_LOG,
        "Table %s: a read of snapshot %s opens %d of %d files, and merges %d units",
        *(store.name, plan.snapshot_id, plan.files_scanned, plan.files_live, len(plan.units)),
    )


def _counted(engine: Engine, state: ReadState, where: str | None, fresh: bool) -> CountResult:
    """How many rows of a state match: by the manifests, or else by the engine."""
    store, snapshot = state.store, state.snapshot
    predicate = None if where is None else parse_where(where, store.schema.fields)
    with store.while_read(snapshot):
        rows = metadata_count(store, snapshot, predicate, fresh)
        if rows is None:
            return engine.count_rows(store, snapshot, where, fresh)
    return CountResult(snapshot_id=None if snapshot is None else snapshot.id, rows=rows, how="metadata")
