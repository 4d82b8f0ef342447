"""Rows of tests as DataFrames and as Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelsm.types import output_arrow, parse_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def arrow_of(rows: Sequence[Sequence[Any]], ddl: str) -> pa.Table:
    """Return rows as an Arrow table."""
    fields = parse_columns(ddl)
    columns = list(zip(*rows, strict=True)) or [()] * len(fields)
    arrays = [pa.array(column, output_arrow(field.type)) for column, field in zip(columns, fields, strict=True)]
    return pa.Table.from_arrays(arrays, [field.name for field in fields])


def frame_of(spark: SparkSession, rows: Sequence[Sequence[Any]], ddl: str) -> DataFrame:
    """Return rows as a DataFrame, through Arrow: from a list, PySpark would compute them in Python for each query."""
    return spark.createDataFrame(arrow_of(rows, ddl), ddl)
