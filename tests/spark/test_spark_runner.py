"""Units that run on Spark's executors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.format.paths import TablePaths

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = pa.schema([("n", pa.int64())])
PATHS = TablePaths("/t")


def counted(unit: int) -> Iterator[pa.RecordBatch]:
    if unit < 0:
        raise CorruptTableError("file 1 is damaged")
    yield pa.record_batch([pa.array([unit, unit])], schema=SCHEMA)


def test_batches_are_in_the_order_of_the_units_and_failures_are_raised_unchanged(spark: SparkSession) -> None:
    from lakelsm.spark.spark_runner import SparkRunner

    runner = SparkRunner(spark)
    assert (runner.name, runner.cores) == ("spark", spark.sparkContext.defaultParallelism)
    found = pa.Table.from_batches(runner.batches([3, 1, 2], counted, SCHEMA, PATHS))
    assert found.column("n").to_pylist() == [3, 3, 1, 1, 2, 2]
    with pytest.raises(CorruptTableError, match="file 1 is damaged"):
        list(runner.batches([1, -1], counted, SCHEMA, PATHS))
