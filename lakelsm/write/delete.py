"""The rows that a delete writes: -D rows of the keys that match, as a snapshot has them."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakelsm.format.row_kinds import DELETE, ROW_KINDS
from lakelsm.format.snapshot import Snapshot
from lakelsm.plan.read_plan import plan_read
from lakelsm.read.scan_frame import scan_frame
from lakelsm.schema.system_columns import CHANGED_KIND
from lakelsm.snapshots.table_store import TableStore
from lakelsm.spark.conditions import filtered, predicate_of
from lakelsm.spark.task_errors import translated
from lakelsm.write.prepare import prepare


def retractions(spark: SparkSession, store: TableStore, where: str, snapshot: Snapshot | None) -> DataFrame:
    """The prepared -D rows of what matches the condition in a snapshot (None: an empty table)."""
    return prepared_changes(store, matching_rows(spark, store, where, snapshot), DELETE)


def matching_rows(spark: SparkSession, store: TableStore, where: str, snapshot: Snapshot | None) -> DataFrame:
    """The rows of a snapshot that match, as those who change them judge them: the merged rows of all levels."""
    predicate = predicate_of(spark, store.schema.fields, where)
    with translated(store.paths.root):
        return filtered(scan_frame(spark, store, plan_read(store, snapshot, predicate, fresh=True)), where)


def prepared_changes(store: TableStore, rows: DataFrame, kind: int) -> DataFrame:
    """Rows of the table that are written again, prepared as rows of a kind."""
    own = store.options.rowkind_field
    marked = rows.withColumn(own or CHANGED_KIND, F.lit(ROW_KINDS[kind]))
    return prepare(marked, store.schema, store.options, None if own else CHANGED_KIND, stored=True)
