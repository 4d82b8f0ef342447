"""Columns by their exact names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T


def quoted(name: str) -> Column:
    """The column of this exact name: dots and backticks are part of it."""
    return F.col("`" + name.replace("`", "``") + "`")


def quoted_all(names: Iterable[str]) -> list[Column]:
    """The columns of these exact names."""
    return [quoted(name) for name in names]


def map_in_arrow(
    frame: DataFrame, task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: T.StructType | str
) -> DataFrame:
    """``frame.mapInArrow(task, schema)`` for columns of any names: PySpark's own fails where a name has a dot."""
    names = frame.columns
    if not any(character in name for name in names for character in ".`"):
        return frame.mapInArrow(task, schema)

    def renamed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return task(batch.rename_columns(names) for batch in batches)

    return frame.toDF(*(f"column_{number}" for number in range(len(names)))).mapInArrow(renamed, schema)
