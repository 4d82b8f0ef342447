"""The engine under test: lakelsm's public API on one Spark session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from lakelsm import Catalog, Table
from tests.conformance.case_tables import CaseTables, free_name
from tests.conformance.cases import Case
from tests.conformance.frames import to_frame, to_rows
from tests.conformance.table_case import KindedRow
from tests.conformance.values import case_fields


class SparkEngine:
    """Makes a table for each case, in one warehouse."""

    def __init__(self, spark: SparkSession, warehouse: Path) -> None:
        self._spark = spark
        self._tables = CaseTables(Catalog(warehouse.as_uri(), spark=spark))

    def create(self, case: Case) -> SparkTable:
        """A new table with the columns, keys and options of the case."""
        return SparkTable(self._spark, self._tables.create(case), case.body["columns"])


class SparkTable:
    """One case's table."""

    def __init__(self, spark: SparkSession, table: Table, columns: Sequence[dict[str, str]]) -> None:
        self._spark, self._table = spark, table
        self._fields = case_fields(columns)
        self._read_up_to: int | None = None
        self._kind_column = free_name(self._fields)

    def write(self, rows: Sequence[KindedRow], options: Mapping[str, str]) -> None:
        """One commit of the rows in this order; the kind column is left out where every row is an insert."""
        frame = to_frame(self._spark, self._fields, self._kind_column, rows)
        row_kind: str | None = self._kind_column
        if all(row.kind == "+I" for row in rows):
            frame, row_kind = frame.drop(self._kind_column), None
        self._table.write(frame, row_kind=row_kind, options=dict(options) or None)

    def compact(self, full: bool) -> None:
        """A dedicated compaction."""
        self._table.compact(full=full)

    def read(self, where: str | None, columns: Sequence[str] | None) -> list[tuple[Any, ...]]:
        """The rows of the latest snapshot."""
        return to_rows(self._table.read(where=where, columns=None if columns is None else list(columns)))

    def changelog(self) -> list[tuple[Any, ...]]:
        """The changelog rows since the last call."""
        start, newest = (
            self._read_up_to,
            self._table.inspect.snapshots().to_spark().agg({"snapshot_id": "max"}).collect()[0][0],
        )
        self._read_up_to = newest
        return to_rows(self._table.changelog(start))
