"""The engine under test: lakelsm's public API on one Spark session."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakelsm import Catalog, Table
from tests.conformance.case_tables import CaseTables
from tests.conformance.cases import Case
from tests.conformance.frames import to_frame, to_rows
from tests.conformance.local_engine import LocalTable
from tests.conformance.table_case import KindedRow


class SparkEngine:
    """Creates a table for each case, in one warehouse."""

    def __init__(self, spark: SparkSession, warehouse: Path) -> None:
        self._spark = spark
        self._tables = CaseTables(Catalog(warehouse.as_uri(), spark=spark))

    def create(self, case: Case) -> SparkTable:
        """Create a table with the columns, keys and options of the case."""
        return SparkTable(self._spark, self._tables.create(case), case.body["columns"])


class SparkTable(LocalTable):
    """The table of one case."""

    def __init__(self, spark: SparkSession, table: Table, columns: Sequence[dict[str, str]]) -> None:
        super().__init__(table, columns)
        self._spark = spark

    def frame(self, rows: Sequence[KindedRow]) -> DataFrame:
        return to_frame(self._spark, self._fields, self._kind_column, rows)

    def compact(self, full: bool) -> None:
        self._table.compact(full=full)

    def read(self, where: str | None, columns: Sequence[str] | None) -> list[tuple[Any, ...]]:
        return to_rows(self._table.read(where=where, columns=None if columns is None else list(columns)))

    def changelog(self) -> list[tuple[Any, ...]]:
        snapshots = self._table.inspect.snapshots().to_spark()
        start, self._read_up_to = self._read_up_to, snapshots.agg({"snapshot_id": "max"}).collect()[0][0]
        return to_rows(self._table.changelog(start))
