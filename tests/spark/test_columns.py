"""Columns by their exact names, also those that Spark takes for something else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelsm.spark.columns import quoted, quoted_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = ("a.b", "`tick`", "a", "${x}", "*", "sp ace")


def test_dots_and_backticks_are_part_of_a_name(spark: SparkSession) -> None:
    frame = spark.createDataFrame([tuple(range(len(NAMES)))], list(NAMES))
    assert frame.select(*quoted_all(NAMES)).columns == list(NAMES)
    assert frame.select(quoted("a.b") + quoted("`tick`")).collect()[0][0] == 1
