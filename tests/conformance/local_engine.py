"""The engine under test: lakelsm's public API in this process, without a JVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lakelsm import Catalog, Table
from tests.conformance.arrow_rows import rows_of, to_table
from tests.conformance.case_tables import CaseTables, free_name
from tests.conformance.cases import Case
from tests.conformance.table_case import KindedRow
from tests.conformance.values import case_fields


class LocalEngine:
    """Creates a table for each case, in one warehouse."""

    def __init__(self, warehouse: Path) -> None:
        self._tables = CaseTables(Catalog(warehouse.as_uri()))

    def create(self, case: Case) -> LocalTable:
        """Create a table with the columns, keys and options of the case."""
        return LocalTable(self._tables.create(case), case.body["columns"])


class LocalTable:
    """The table of one case."""

    def __init__(self, table: Table, columns: Sequence[dict[str, str]]) -> None:
        self._table = table
        self._fields = case_fields(columns)
        self._read_up_to: int | None = None
        self._kind_column = free_name(self._fields)

    def write(self, rows: Sequence[KindedRow], options: Mapping[str, str]) -> None:
        """Commit the rows in this order; the kind column is left out if every row is an insert."""
        row_kind = None if all(row.kind == "+I" for row in rows) else self._kind_column
        frame = self.frame(rows)
        given = frame if row_kind else frame.drop(self._kind_column)
        self._table.write(given, row_kind=row_kind, options=dict(options) or None)

    def frame(self, rows: Sequence[KindedRow]) -> Any:
        """Return the rows and their kinds in the form that the engine writes."""
        return to_table(self._fields, self._kind_column, rows)

    def compact(self, full: bool) -> None:
        """Run a dedicated compaction."""
        self._table.compact(full=full, engine="local")

    def read(self, where: str | None, columns: Sequence[str] | None) -> list[tuple[Any, ...]]:
        """Return the rows of the latest snapshot."""
        return rows_of(self._table.to_arrow(where=where, columns=None if columns is None else list(columns)))

    def changelog(self) -> list[tuple[Any, ...]]:
        """Return the changelog rows since the last call."""
        start, self._read_up_to = self._read_up_to, self._table.explain().snapshot_id
        return rows_of(self._table.changelog_reader(start).read_all())
