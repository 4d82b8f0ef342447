"""Small tables for tests of reading."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelsm import Catalog, Table
from lakelsm.spark.session import resolve_session
from lakelsm.spark.spark_types import to_struct
from lakelsm.types import to_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def create(spark: SparkSession, warehouse: Path, columns: str, key: Sequence[str], **more: Any) -> Table:
    """Create a table that compacts only on request; ``options`` are added."""
    options = {"bucket": "1", "write-only": "true", **more.pop("options", {})}
    return Catalog(str(warehouse), spark).create_table("db.t", columns, primary_key=key, options=options, **more)


def frame(table: Table, rows: Iterable[Sequence[Any]]) -> DataFrame:
    """Return rows of all columns of a table as a DataFrame."""
    struct = to_struct(table.schema.fields)
    columns = list(zip(*rows, strict=True)) or [()] * len(struct)
    arrays = [pa.array(column, to_arrow(field.type)) for column, field in zip(columns, table.schema.fields, strict=True)]
    return resolve_session(table._spark).createDataFrame(pa.Table.from_arrays(arrays, struct.names), struct)


def rows_of(found: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, found.collect()), key=repr)
