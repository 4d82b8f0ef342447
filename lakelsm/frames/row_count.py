"""How many rows a read gives where only data files can tell.

Where the rows of a read are rows of files (`deduplicate`, `first-row`) and whole partitions are asked for, the files' row
counts less the rows that merges hide are the answer: only files that overlap others are opened, and of them only the
columns that decide. Else the rows are read and counted.
"""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakelsm.format.row.binary_row_slots import TIMESTAMP_ROOTS
from lakelsm.format.snapshot import Snapshot
from lakelsm.frames.hidden_rows import hidden_rows
from lakelsm.frames.scan_frame import scan_frame
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.plan.count_plan import chooses_partitions
from lakelsm.plan.read_plan import ReadPlan, plan_read
from lakelsm.predicate.predicate import Predicate, columns
from lakelsm.results import CountResult
from lakelsm.schema.system_columns import STALE_WORDS
from lakelsm.snapshots.table_store import TableStore
from lakelsm.spark.conditions import filtered, predicate_of
from lakelsm.spark.task_errors import translated


def counted(
    spark: SparkSession, store: TableStore, snapshot: Snapshot | None, where: str | None, fresh: bool
) -> CountResult:
    """Count the rows of a snapshot that match. Errors are those of a read."""
    predicate = None if where is None else predicate_of(spark, store.schema.fields, where)
    plan = plan_read(store, snapshot, predicate, fresh)
    files = len(plan.merged_files)
    with translated(store.paths.root):
        rows = _less_hidden(spark, store, plan) if predicate is None or _is_exact(store, predicate) else None
        if rows is None:
            frame = scan_frame(spark, store, plan)
            rows, files = (frame if where is None else filtered(frame, where)).count(), plan.files_scanned
    how = "files" if files else "metadata"
    return CountResult(snapshot_id=plan.snapshot_id, rows=rows, how=how, files_opened=files)


def _is_exact(store: TableStore, predicate: Predicate) -> bool:
    """Whether the plan's partitions are those that match: Python cannot compare all dates and times of a calendar."""
    calendar = {field.name for field in store.schema.partition_fields if field.type.root in ("DATE", *TIMESTAMP_ROOTS)}
    return chooses_partitions(store, predicate) and not columns(predicate) & calendar


def _less_hidden(spark: SparkSession, store: TableStore, plan: ReadPlan) -> int | None:
    """The rows of all files less those that vectors mask and merges hide; None where that is not the answer."""
    files = [*plan.raw_files, *plan.merged_files]
    masked = [0 if file.vector is None else file.vector.said_rows(file.row_count) for file in files]
    if None in masked or not MergeSpec.of(store.schema, store.options).keeps_rows:
        return None
    rows = sum(file.row_count for file in files) - sum(filter(None, masked))
    if plan.units:
        schemas = store.schemas_of(file.schema_id for file in plan.merged_files)
        bits = F.aggregate(STALE_WORDS, F.lit(0), lambda total, word: total + F.bit_count(word))
        chunks = hidden_rows(spark, store, schemas, plan.units).chunks
        [(hidden,)] = chunks.agg(F.coalesce(F.sum(bits), F.lit(0))).collect()
        rows -= hidden
    return rows
