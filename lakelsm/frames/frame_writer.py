"""Writes a DataFrame's rows to level-0 files: Spark assigns buckets, shuffles and sorts, then tasks merge and write.

A shuffle of 80,000 rows costs more than the rest of the write: two stages, a plan for each, and generated code for the
hash of the bucket. Therefore one task writes a small input. Spark's estimate before execution decides; it starts no job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lakelsm.format.manifest import ManifestEntry
from lakelsm.frames.bucket_expression import with_bucket
from lakelsm.frames.dynamic_bucket_frame import with_dynamic_bucket
from lakelsm.frames.row_order import row_order
from lakelsm.frames.scan_frame import file_scans
from lakelsm.plan.merge_units import MergeUnits
from lakelsm.runner.task_messages import MESSAGE_SCHEMA, TaskMessages
from lakelsm.schema.system_columns import BUCKET, FILE_NAME, SEQUENCE_NUMBER, VALUE_KIND
from lakelsm.snapshots.table_store import TableStore
from lakelsm.spark import functions as F
from lakelsm.spark.connect import is_connect
from lakelsm.spark.expressions import quoted_all, union_all
from lakelsm.spark.functions import functions_of
from lakelsm.spark.shared_disk import check_shared_disk
from lakelsm.spark.spark_runner import SparkRunner
from lakelsm.spark.task_errors import translated_errors
from lakelsm.spark.tasks import collect_messages, map_in_arrow
from lakelsm.write.dynamic_bucket import BucketPolicy
from lakelsm.write.fixed_buckets import FixedBuckets
from lakelsm.write.level0_task import Level0Job

#: Writes the rows of one task, and returns its messages.
WriteTask: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class FrameWriter:
    """Writes DataFrames that `prepare` returned."""

    def __init__(self, spark: SparkSession, store: TableStore) -> None:
        self._spark = spark
        self._store = store

    @property
    def runner(self) -> SparkRunner:
        """The runner of its tasks."""
        return SparkRunner(self._spark)

    def write(self, rows: DataFrame, job: Level0Job) -> TaskMessages:
        """See `RowWriter.write`."""
        with functions_of(rows), translated_errors(job.paths.root):
            return self._written(rows, job)

    def _written(self, rows: DataFrame, job: Level0Job) -> TaskMessages:
        order = row_order(self._store.schema, job)
        job = replace(job, interleaved=order.interleaved)
        task: WriteTask = job
        if job.hash_indexes is not None or not is_small_input(rows):
            arranged = self._shuffled(rows, job)
        elif order.interleaved:
            arranged, task = rows.coalesce(1), partial(_in_buckets, self._buckets(), job)
        else:
            arranged = self._with_bucket(rows).coalesce(1)
        task = _on_shared_disk(job.paths.root, task)
        frame = map_in_arrow(arranged.sortWithinPartitions(*order.columns), task, MESSAGE_SCHEMA)
        return collect_messages(frame, job.paths.root, job.names)

    def written_rows(self, entries: Sequence[ManifestEntry]) -> DataFrame:
        """See `RowWriter.written_rows`."""
        store = self._store
        files = list(map(MergeUnits(store, entries).file_of, entries))
        system = (VALUE_KIND, SEQUENCE_NUMBER)
        with functions_of(self._spark):
            scans = file_scans(self._spark, store, {store.schema.id: store.schema}, files, system=system)
            return union_all(scans).drop(FILE_NAME)

    def _with_bucket(self, rows: DataFrame) -> DataFrame:
        return with_bucket(rows, self._buckets())

    def _buckets(self) -> FixedBuckets:
        return FixedBuckets.of(self._store.schema, self._store.options)

    def _shuffled(self, rows: DataFrame, job: Level0Job) -> DataFrame:
        """Return the rows with their bucket, shuffled so that all rows of a key are in one task."""
        schema, options = self._store.schema, self._store.options
        heads = [*quoted_all(schema.partition_keys), F.col(BUCKET)]
        if job.hash_indexes is not None:
            policy = BucketPolicy.of(options)
            return with_dynamic_bucket(rows, schema, policy, job.file_io, job.hash_indexes).repartition(*heads)
        arranged = self._with_bucket(rows)
        if options.bucket >= self.runner.cores or _has_planned_rows(rows):
            return arranged.repartition(*heads)
        # Fewer buckets than cores: split buckets by key, so that several tasks write disjoint files of a bucket. Spark
        # computes the rows twice for it, because it samples them first. For a batch of a stream that is too expensive.
        return arranged.repartitionByRange(*heads, *quoted_all(schema.trimmed_primary_keys))


def _on_shared_disk(root: str, task: WriteTask) -> WriteTask:
    """Return a task that first calls `check_shared_disk`."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        check_shared_disk(root)
        return task(batches)

    return run


def _in_buckets(buckets: FixedBuckets, job: Level0Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run the job as a task whose input has no bucket yet."""
    return job(map(buckets.added, batches))


#: Up to this number of bytes, as Spark estimates the input (for files, their size), one task writes all rows.
SMALL_BYTES = 8 << 20

#: Operators that are cheap for each row and do not multiply rows. Any other may need all cores even for small input.
_CHEAP_STEPS = frozenset(
    {"Project", "Filter", "SubqueryAlias", "View", "Union", "LocalRelation", "LogicalRelation", "Range", "OneRowRelation"}
)
#: The rows of a query that is planned already, such as those of a batch of a stream.
_PLANNED_ROWS = "LogicalRDD"
_COSTLY_EXPRESSIONS = ("PYTHON_UDF", "SCALA_UDF")
#: A plan with more operators is not examined.
_MAX_STEPS = 40


def _has_planned_rows(frame: DataFrame) -> bool:
    """Return whether the rows are those of a query that is planned already. Spark Connect does not show it."""
    if is_connect(frame):
        return False
    plan = frame._jdf.queryExecution().analyzed()
    while plan.children().size() == 1:
        plan = plan.children().apply(0)
    return bool(plan.nodeName() == _PLANNED_ROWS)


def is_small_input(frame: DataFrame) -> bool:
    """Return whether one task should compute and write the rows. Spark Connect has no estimate before execution.

    The rows of a planned query are small only if one task computes them anyway: its steps are unknown, and Spark
    estimates the rows of a batch of a stream without those of its state.
    """
    if is_connect(frame):
        return False
    plan = frame._jdf.queryExecution().analyzed()
    steps = [plan]
    for step in steps:
        is_planned = step.nodeName() == _PLANNED_ROWS and step.rdd().getNumPartitions() == 1
        if (step.nodeName() not in _CHEAP_STEPS and not is_planned) or len(steps) > _MAX_STEPS:
            return False
        children = step.children()
        steps += [children.apply(at) for at in range(children.size())]
    jvm: Any = frame.sparkSession.sparkContext._jvm
    patterns = jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    if any(plan.containsPattern(patterns.withName(name)) for name in _COSTLY_EXPRESSIONS):
        return False
    return int(str(plan.stats().sizeInBytes())) <= SMALL_BYTES
