"""Reads of a table or of one of its snapshots, on Spark and in this process."""

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

    from lakelsm.local.arrow_scan import ArrowScan

#: The alternatives to `ReadableTable.read` without Spark, for messages.
_READ_HERE = "call to_arrow, to_pandas or to_reader"


@dataclass(frozen=True)
class RowsRequest:
    """The unchecked arguments of `Table.to_reader`, in their order."""

    where: str | None = None
    columns: Sequence[str] | None = None
    limit: int | None = None
    ordered: bool = False
    fresh: bool = False
    timestamps: str = "ns"


class ReadableTable(OpenedTable):
    """The reads that `Table` (of the newest snapshot) and `TableView` (of its snapshot) share."""

    @property
    def name(self) -> str:
        """The name of the table in messages: 'database.table' if a catalog opened it, else its path."""
        return self._opened.name

    @property
    @abstractmethod
    def schema(self) -> TableSchema:
        """The schema of the rows."""

    def _repr_html_(self) -> str:
        """Return the table with its columns and keys, for notebooks."""
        try:
            schema = str(self.schema)
        except LakelsmError as error:  # For example of a dropped table: a display does not raise.
            schema = str(error)
        return f"<p><code>{escape(repr(self))}</code></p><pre>{escape(schema)}</pre>"

    def read(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        fresh: bool = False,
    ) -> DataFrame:
        """Return the merged rows as a Spark DataFrame: of the newest snapshot, or of the snapshot of a view (`Table.at`).

        ``where`` (an SQL condition) and ``columns`` select rows and columns as ``.where`` and ``.select`` do, and also
        skip partitions, buckets and files by the manifests alone. Reads of tables with deletion vectors or `first-row`
        return compacted rows; ``fresh`` also merges the rows on level 0, as reads of other tables always do. Uses the
        given or the active session, or starts a local one; `to_arrow` needs no session.
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
        """Return the rows of `read` as a stream of Arrow record batches, read in this process without a Spark session.

        ``where`` is evaluated in this process: comparisons of columns and literals, IN, BETWEEN, LIKE and IS NULL,
        combined with AND, OR and NOT. ``limit`` is the maximum number of rows; which rows these are is not defined,
        except with ``ordered``, which sorts by the primary key. ``timestamps`` is the Arrow type of TIMESTAMP(7..9),
        also of nested ones: 'ns' (nanoseconds, for the years 1678 to 2261 only), 'us' (microseconds, rounded down) or
        'text' ('0001-01-01 00:00:00.000000000', in UTC for types WITH LOCAL TIME ZONE). Other arguments are as in
        `read`. Memory does not grow with the table. A stream is for one thread; deleting the last reference to it stops
        its work, ``close`` alone does not. Raises UnsupportedFeatureError for another condition and, while rows are
        read, CorruptTableError for a damaged file, UnsupportedFeatureError for a time outside of the range of 'ns'.
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
        """Return the rows of `to_reader` as one Arrow table in memory."""
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
        """Return the rows of `to_reader` as a pandas DataFrame. Raises UnsupportedFeatureError for values it lacks."""
        from lakelsm.local.output_rows import as_pandas

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
        """Return the rows of `to_reader` as a Polars DataFrame. Raises InvalidInputError if Polars is not installed."""
        from lakelsm.local.output_rows import as_polars, check_polars

        with operation_line(self._log_name, "to_reader") as line:
            check_polars()
            rows = self._table(line, RowsRequest(where, columns, limit, ordered, fresh, timestamps))
        return as_polars(rows)

    def head(self, rows: int = 10) -> ResultTable:
        """Return some ``rows`` as a `ResultTable`, which prints as a table. Which rows these are is not defined."""
        with operation_line(self._log_name, "to_reader") as line:
            limit = checked_number("rows", rows, min_value=0)
            found = self._table(line, RowsRequest(limit=limit, timestamps="text"))

        def frame(spark: SparkSession) -> DataFrame:
            from lakelsm.frames.system_frames import shown_frame

            return shown_frame(spark, found)

        return ResultTable(self.name, found, frame, self._spark)

    def explain(self, where: str | None = None, *, fresh: bool = False) -> ReadPlan:
        """Return the plan of `read`, with the number of files that it would open. Needs no session."""
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
        """Return the number of rows of `read` as a `CountResult`; ``int()`` of it is the number.

        Manifests are enough, without a session, if no files must be merged and ``where`` selects whole partitions.
        Otherwise the ``engine`` reads data files: 'spark' or 'local' (this process); by default Spark if a session is
        given, active, or that of spark-submit. Other arguments and errors are as in `read` or `to_reader`.
        """
        checked_flag("fresh", fresh)
        chosen = self._engine(engine)
        return self._on_newest(
            lambda: reduce(
                combined_count, (_counted(chosen, state, where, fresh) for state in self._states(chosen, where))
            )
        )

    # -- internal --------------------------------------------------------------------------------------------------

    def _table(self, line: OperationLine, request: RowsRequest) -> pa.Table:
        """Return the rows of a request in memory."""

        def found() -> pa.Table:
            reader, plans = self._rows(request)
            line.add(lambda: _planned(plans))
            return reader.read_all()

        rows = self._on_newest(found)
        line.add(lambda: {"rows": len(rows), "bytes": rows.nbytes})
        return rows

    def _rows(self, request: RowsRequest) -> tuple[pa.RecordBatchReader, list[ReadPlan]]:
        """Return the stream of a request, and the plans of its reads."""
        from lakelsm.local.arrow_scan import chained_reader

        limit = None if request.limit is None else checked_number("limit", request.limit, min_value=0)
        scans = self._scans(request)
        return chained_reader(scans, local_engine().runner, limit, request.columns), [scan.plan for scan in scans]

    def _scans(self, request: RowsRequest) -> list[ArrowScan]:
        """Plan the reads of a request: of the table, and of its fallback branch, if it has one."""
        from lakelsm.local.arrow_scan import ArrowScan

        names = checked_projection(request.columns)
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
                engine.evaluable_predicate(it.store, request.where),
                ordered=ordered,
                fresh=fresh,
                timestamps=form,
            )
            for it in states
        ]
        for state, scan in zip(states, scans):
            _log_plan(state.store, scan.plan)
        return scans

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
        """Return the states to read: that of the table, and that of its fallback branch, if it has one."""
        checked_condition(where)
        newest, own, until = self._read_state()
        other = fallback_of(newest)
        predicate = None if where is None or other is None else engine.predicate(own.store, where)
        with own.store.while_read(own.snapshot):
            return read_states(own, other, predicate, until)

    @abstractmethod
    def _read_state(self) -> tuple[TableStore, ReadState, int | None]:
        """Return the table as it was opened, the state to read, and the time of time travel (None: no time travel)."""


def planned_scans(table: ReadableTable, request: RowsRequest) -> list[ArrowScan]:
    """Plan the rows of `ReadableTable.to_reader` without reading them: all scans together have them."""
    return table._on_newest(lambda: table._scans(request))


def _planned(plans: Sequence[ReadPlan]) -> dict[str, object]:
    """Return the log fields of a planned read. The snapshot is that of the table, not of the fallback branch."""
    return {"snapshot_id": plans[0].snapshot_id, "files": sum(plan.files_scanned for plan in plans)}


def _log_plan(store: TableStore, plan: ReadPlan) -> None:
    log_step(
        TABLE_LOG,
        "Table %s: the read of snapshot %s opens %d of %d files and merges %d units",
        *(store.name, plan.snapshot_id, plan.files_scanned, plan.files_live, len(plan.units)),
    )


def _counted(engine: Engine, state: ReadState, where: str | None, fresh: bool) -> CountResult:
    """Return the number of matching rows of a state: from manifests if they are enough, else from the engine."""
    store, snapshot = state.store, state.snapshot
    predicate = None if where is None else parse_where(where, store.schema.fields)
    with store.while_read(snapshot):
        rows = metadata_count(store, snapshot, predicate, fresh)
        if rows is None:
            return engine.count_rows(store, snapshot, where, fresh)
    return CountResult(snapshot_id=None if snapshot is None else snapshot.id, rows=rows, how="metadata")
