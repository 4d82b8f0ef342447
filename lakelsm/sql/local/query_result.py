"""QueryResult: the rows of a query that this process runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from lakelsm.arguments import checked_number
from lakelsm.text_table import aligned, html_table, shown_values

if TYPE_CHECKING:
    import pandas
    import polars

#: Rows and characters of a cell that are printed.
_PRINTED_ROWS, _PRINTED_CHARACTERS = 40, 60


class Run(Protocol):
    """Runs the query, for at most ``limit`` rows (None: all)."""

    def __call__(self, limit: int | None = None) -> pa.RecordBatchReader:
        """Return the rows as a stream."""


class QueryResult:
    """The rows of a query. Each call runs the query again, on the same snapshots.

    It prints its first rows as a table, and renders them as HTML in a notebook.
    """

    def __init__(self, run: Run) -> None:
        self._run = run

    @property
    def columns(self) -> list[str]:
        """The names of the columns. Several columns can have one name."""
        return list(self._run(0).schema.names)

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
        return self._text(_PRINTED_ROWS)

    def _repr_html_(self) -> str:
        names, cells, more = self._cells(_PRINTED_ROWS)
        return html_table(cells, names) + ("<p>… and more rows</p>" if more else "")

    def _text(self, rows: int) -> str:
        names, cells, more = self._cells(rows)
        return aligned(names, cells) + ("\n… and more rows" if more else "")

    def _cells(self, rows: int) -> tuple[list[str], list[tuple[str, ...]], bool]:
        found = self._run(rows + 1).read_all()
        columns = [[_cell(value) for value in shown_values(column)] for column in found.slice(0, rows).columns]
        return list(found.schema.names), list(zip(*columns)), len(found) > rows


def _cell(value: object) -> str:
    text = "-" if value is None else " ".join(str(value).split())
    return text if len(text) <= _PRINTED_CHARACTERS else f"{text[: _PRINTED_CHARACTERS - 1]}…"
