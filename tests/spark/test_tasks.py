"""What a task does for the worker that it runs in."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from lakelsm.spark.tasks import run_units

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def frozen_objects(unit: int) -> Iterator[pa.RecordBatch]:
    yield pa.record_batch([pa.array([unit]), pa.array([gc.get_freeze_count()])], names=["unit", "frozen"])


def test_each_unit_has_a_task_and_loaded_modules_are_left_out_of_garbage_collections(spark: SparkSession) -> None:
    rows = run_units(spark, [3, 5, 8], frozen_objects, "unit bigint, frozen bigint").collect()
    assert sorted(row.unit for row in rows) == [3, 5, 8]
    assert min(row.frozen for row in rows) > 10_000
