"""Rows of cases as Spark DataFrames, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakelsm.types import DataField
from tests.conformance.arrow_rows import rows_of, to_table
from tests.conformance.table_case import KindedRow
from tests.conformance.values import spark_ddl


def to_frame(
    spark: SparkSession, fields: Sequence[DataField], kind_column: str, rows: Sequence[KindedRow]
) -> DataFrame:
    """Return the rows in one partition, so that they keep the order of the case; the last column has their kinds."""
    ddl = ", ".join(f"`{field.name}` {spark_ddl(field.type)}" for field in fields)
    table = to_table(fields, kind_column, rows)
    return spark.createDataFrame(table, schema=f"{ddl}, `{kind_column}` STRING").coalesce(1)


def to_rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    """Return all rows of a DataFrame as tuples of Python values."""
    return rows_of(frame.toArrow())
