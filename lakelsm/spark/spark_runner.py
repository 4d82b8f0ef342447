"""Runs planned units as tasks of a Spark session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from lakelsm.format.file_names import AttemptNames
from lakelsm.format.paths import TablePaths
from lakelsm.runner.runner import Task, Unit
from lakelsm.runner.task_messages import MESSAGE_SCHEMA, TaskMessages
from lakelsm.spark import functions as F
from lakelsm.spark.connect import is_connect
from lakelsm.spark.functions import functions_of
from lakelsm.spark.task_errors import translated_errors
from lakelsm.spark.tasks import collect_messages, read_units, run_units

#: Rows of a range that has at least one row for each core of a cluster.
_RANGE = 1 << 12


class SparkRunner:
    """Runs each unit in a separate task."""

    name = "spark"

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @property
    def cores(self) -> int:
        """Return how many tasks the session runs at a time.

        A Connect session shows it in a job alone, which takes 0.05 s: in how many parts it computes a range.
        """
        if is_connect(self._spark):
            with functions_of(self._spark):
                parts = self._spark.range(_RANGE).select(F.spark_partition_id()).toArrow()
            return len(parts.column(0).unique())
        return int(self._spark.sparkContext.defaultParallelism)

    def messages(self, units: Sequence[Unit], task: Task[Unit], paths: TablePaths, names: AttemptNames) -> TaskMessages:
        """See `Runner.messages`."""
        with functions_of(self._spark), translated_errors(paths.root):
            return collect_messages(run_units(self._spark, units, task, MESSAGE_SCHEMA), paths.root, names)

    def batches(
        self, units: Sequence[Unit], task: Task[Unit], schema: pa.Schema, paths: TablePaths
    ) -> Iterator[pa.RecordBatch]:
        """See `Runner.batches`. The rows of all units are collected on the driver."""
        with functions_of(self._spark), translated_errors(paths.root):
            found = read_units(self._spark, units, task, from_arrow_schema(schema)).toArrow()
        yield from found.to_batches()
