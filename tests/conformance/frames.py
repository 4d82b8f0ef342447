"""Rows of cases as Spark DataFrames, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lakelsm.types import DataField
from tests.conformance.table_case import KindedRow
from tests.conformance.values import arrow_type, spark_ddl


def to_frame(
    spark: SparkSession, fields: Sequence[DataField], kind_column: str, rows: Sequence[KindedRow]
) -> DataFrame:
    """The rows in one partition, so that their order is the case's; the last column has their kinds."""
    arrow_fields = [pa.field(field.name, arrow_type(field.type)) for field in fields]
    schema = pa.schema([*arrow_fields, pa.field(kind_column, pa.string())])
    ddl = ", ".join(f"`{field.name}` {spark_ddl(field.type)}" for field in fields)
    columns = [[row.values[i] for row in rows] for i in range(len(fields))] + [[row.kind for row in rows]]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    table = pa.Table.from_arrays(arrays, schema=schema)
    return spark.createDataFrame(table, schema=f"{ddl}, `{kind_column}` STRING").coalesce(1)


def to_rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    """All rows of a DataFrame as tuples of Python values."""
    arrow = frame.toArrow()
    return list(zip(*(column.to_pylist() for column in arrow.columns), strict=True))
