"""QueryResult: the rows of a query that this process runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from lakelsm.arguments import checked_number
from lakelsm.text_table import PRINTED_ROWS, aligned, html_table, shown_cells

if TYPE_CHECKING:
    import pandas
    import polars


class Run(Protocol):
    """Runs the query, for at most ``limit`` rows (None: all)."""

    def __call__(self, limit: int | None = None) -> pa.RecordBatchReader:
        """Return the rows as a stream."""


class QueryResult:
    """The rows of a query. Each call runs the query again, on the same snapshots.

    It prints its first rows as a table, and renders them as HTML in a notebook.
    """

    def __init__(self, run: Run, schema: pa.Schema) -> None:
        """``schema`` is that of the rows."""
        self._run = run
        self.schema = schema

    @property
    def columns(self) -> list[str]:
        """The names of the columns. Several columns can have one name."""
        return list(self.schema.names)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream of Arrow record batches. Memory does not grow with the number of rows."""
        return self._run()

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        return self._run().read_all()

    def to_pandas(self) -> pandas.DataFrame:
        """Return the rows as a pandas DataFrame. Raises UnsupportedFeatureError for values that pandas lacks."""
        from lakelsm.local.output_rows import as_pandas

        return as_pandas(self.to_arrow())

    def to_polars(self) -> polars.DataFrame:
        """Return the rows as a Polars DataFrame. Raises InvalidInputError if Polars is not installed."""
        from lakelsm.local.output_rows import as_polars, check_polars

        check_polars()
        return as_polars(self.to_arrow())

    def show(self, rows: int = 20) -> None:
        """Print the first ``rows`` rows as a table."""
        sys.stdout.write(self._text(checked_number("rows", rows, min_value=0)) + "\n")

    def __repr__(self) -> str:
        return self._text(PRINTED_ROWS)

    def _repr_html_(self) -> str:
        names, cells, more = self._cells(PRINTED_ROWS)
        return html_table(cells, names) + ("<p>… and more rows</p>" if more else "")

    def _text(self, rows: int) -> str:
        names, cells, more = self._cells(rows)
        return aligned(names, cells) + ("\n… and more rows" if more else "")

    def _cells(self, rows: int) -> tuple[list[str], list[tuple[str, ...]], bool]:
        found = self._run(rows + 1).read_all()
        return self.columns, shown_cells(found.slice(0, rows)), len(found) > rows
