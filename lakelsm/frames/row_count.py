"""How many rows a read gives where only data files can tell, counted by Spark.

Where whole partitions are asked for, tasks count the rows that merges hide (see `lakelsm.read.hidden_count`). Else the
rows are read and counted.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from lakelsm.format.snapshot import Snapshot
from lakelsm.frames.scan_frame import read_frame
from lakelsm.plan.count_plan import takes_partitions_whole
from lakelsm.plan.read_plan import plan_read
from lakelsm.read.hidden_count import rows_less_hidden
from lakelsm.results import CountResult
from lakelsm.snapshots.table_store import TableStore
from lakelsm.spark.conditions import predicate_of
from lakelsm.spark.spark_runner import SparkRunner
from lakelsm.spark.task_errors import translated


def counted(
    spark: SparkSession, store: TableStore, snapshot: Snapshot | None, where: str | None, fresh: bool
) -> CountResult:
    """Count the rows of a snapshot that match. Errors are those of a read."""
    predicate = None if where is None else predicate_of(spark, store.schema.fields, where)
    plan = plan_read(store, snapshot, predicate, fresh)
    files = len(plan.merged_files)
    whole = takes_partitions_whole(store, predicate)
    rows = rows_less_hidden(SparkRunner(spark), store, plan) if whole else None
    if rows is None:
        with translated(store.paths.root):
            rows, files = read_frame(spark, store, plan, where, store.schema.primary_keys).count(), plan.files_scanned
    how = "files" if files else "metadata"
    return CountResult(snapshot_id=plan.snapshot_id, rows=rows, how=how, files_opened=files)
