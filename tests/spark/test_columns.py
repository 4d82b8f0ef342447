"""Columns by their exact names, also those that Spark takes for something else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakelsm.spark.columns import map_in_arrow, quoted, quoted_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = ("a.b", "`tick`", "a", "${x}", "*", "sp ace")


def test_dots_and_backticks_are_part_of_a_name(spark: SparkSession) -> None:
    frame = spark.createDataFrame([tuple(range(len(NAMES)))], list(NAMES))
    assert frame.select(*quoted_all(NAMES)).columns == list(NAMES)
    assert frame.select(quoted("a.b") + quoted("`tick`")).collect()[0][0] == 1


@pytest.mark.parametrize("names", [NAMES, ("a", "b")], ids=["odd names", "plain names"])
def test_a_task_sees_the_names_as_they_are(spark: SparkSession, names: tuple[str, ...]) -> None:
    def seen(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_arrays([pa.array(["|".join(batch.schema.names)] * len(batch))], names=["names"])

    frame = spark.createDataFrame([tuple(range(len(names)))], list(names)).coalesce(1)
    assert [row.names for row in map_in_arrow(frame, seen, "names string").collect()] == ["|".join(names)]
