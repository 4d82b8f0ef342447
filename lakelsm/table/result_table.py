"""ResultTable: rows that a call returns for display, made without a Spark session."""

from __future__ import annotations

import sys
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING

import pyarrow as pa

from lakelsm.arguments import checked_number, checked_timestamps
from lakelsm.engine import spark_session
from lakelsm.text_table import PRINTED_ROWS, aligned, html_table, shown_cells

if TYPE_CHECKING:
    import pandas
    import polars
    from pyspark.sql import DataFrame, SparkSession


class ResultTable:
    """Rows that print as a table, and render as HTML in a notebook.

    Metadata is read once, when the result is created. The system tables audit_log, binlog and ro have the rows of the
    table itself: each conversion reads them, and only `show` prints them.
    """

    def __init__(
        self,
        name: str,
        rows: pa.Table | Callable[[str], pa.Table],
        frame: Callable[[SparkSession], DataFrame],
        spark: SparkSession | None,
    ) -> None:
        self._name, self._rows, self._frame, self._spark = name, rows, frame, spark

    def to_arrow(self, *, timestamps: str = "ns") -> pa.Table:
        """Return the rows as an Arrow table.

        ``timestamps`` is the type of TIMESTAMP(7..9) in audit_log, binlog and ro, as in `Table.to_reader`.
        """
        form = checked_timestamps("timestamps", timestamps)
        return self._rows if isinstance(self._rows, pa.Table) else self._rows(form)

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
        count = checked_number("rows", rows, min_value=0)
        found = self.to_arrow()
        more = f"\n… and {len(found) - count:,} more rows" if len(found) > count else ""
        sys.stdout.write(aligned(found.column_names, shown_cells(found.slice(0, count))) + more + "\n")

    def to_spark(self) -> DataFrame:
        """Return the rows as a Spark DataFrame, in the given or active session or a new local one."""
        return self._frame(spark_session(self._spark, "call to_arrow or to_pandas"))

    def __len__(self) -> int:
        return len(self.to_arrow())

    def __repr__(self) -> str:
        if not isinstance(self._rows, pa.Table):
            return f"ResultTable({self._name!r}): call to_arrow(), to_pandas() or to_spark() to read its rows"
        more = _more(self._rows)
        return aligned(self._rows.column_names, _cells(self._rows)) + (f"\n{more}" if more else "")

    def _repr_html_(self) -> str:
        if not isinstance(self._rows, pa.Table):
            return f"<p>{escape(repr(self))}</p>"
        more = _more(self._rows)
        return html_table(_cells(self._rows), self._rows.column_names) + (f"<p>{escape(more)}</p>" if more else "")


def _cells(rows: pa.Table) -> list[tuple[str, ...]]:
    """Return the texts of the printed rows."""
    return shown_cells(rows.slice(0, PRINTED_ROWS))


def _more(rows: pa.Table) -> str:
    """Return a line with the number of rows that are not printed."""
    return f"… and {len(rows) - PRINTED_ROWS:,} more rows" if len(rows) > PRINTED_ROWS else ""
