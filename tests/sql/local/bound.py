"""Queries that DuckDB runs on one Arrow table, as SQL in this process has them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lakelsm.sql.local.local_query import local_query
from lakelsm.sql.query_source import FrameSource
from lakelsm.sql.syntax.query_text import QueryText

ONE_ROW = pa.table({"one": pa.array([1], pa.int32())})


def table_of(text: str, rows: pa.Table = ONE_ROW) -> pa.Table:
    """Return the rows of a query in which every table is ``rows``."""
    query = QueryText.of(text)
    return local_query(query, {each.start: FrameSource("t", rows) for each in query.references}).to_arrow()


def value_of(expression: str, rows: pa.Table = ONE_ROW) -> Any:
    """Return the value of an expression for the only row."""
    (value,) = table_of(f"SELECT {expression} FROM t", rows).column(0).to_pylist()
    return value


def type_of(expression: str) -> str:
    """Return the Arrow type of an expression."""
    return str(table_of(f"SELECT {expression} FROM t").schema.types[0])
