"""A planned incremental read as a DataFrame of changes, with tasks that merge or compare its units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from lakelsm.format.row_kinds import ROW_KINDS
from lakelsm.frames.scan_frame import file_scans
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.merge.merge_unit import MergeUnit
from lakelsm.merge.run_reader import RunReader
from lakelsm.plan.changelog_plan import ChangelogPlan
from lakelsm.plan.merge_units import pack_for_tasks
from lakelsm.read.changelog_tasks import Differences, MergedChanges
from lakelsm.read.snapshot_guard import SnapshotGuard
from lakelsm.read.stored_rows import TASK_MEMORY
from lakelsm.schema.system_columns import (
    FILE_NAME,
    SEQUENCE_NUMBER,
    SNAPSHOT,
    SNAPSHOT_ID,
    SYSTEM_FIELDS,
    VALUE_KIND,
)
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.table_store import TableStore
from lakelsm.spark import functions as F
from lakelsm.spark.expressions import filtered, quoted_all, union_all
from lakelsm.spark.functions import of_session
from lakelsm.spark.spark_types import to_spark_arrow, to_struct
from lakelsm.spark.task_errors import translated_errors
from lakelsm.spark.tasks import read_units

#: Up to this number of snapshots, each has a separate scan. Above it, one scan is sorted.
_MAX_SCANS = 32

Unit = TypeVar("Unit")


@of_session
def change_frame(
    spark: SparkSession, store: TableStore, plan: ChangelogPlan, where: str | None, kind_column: str, positions: bool
) -> DataFrame:
    """Return the changes of the plan that match a condition; see `changelog_frame`."""
    with translated_errors(store.paths.root):
        frame = changelog_frame(spark, store, plan, kind_column, positions)
    return frame if where is None else filtered(frame, where)


def changelog_frame(
    spark: SparkSession, store: TableStore, plan: ChangelogPlan, kind_column: str, positions: bool
) -> DataFrame:
    """Return the changes: the kind as text in ``kind_column``, then the table's columns. Nothing runs before an action.

    With ``positions``, `SNAPSHOT_ID` and the row's sequence number follow. The changes of a key are in their order,
    which a write of the frame preserves.
    """
    units = [*plan.merged, *(compared.unit for compared in plan.compared)]
    files = [file for _, files in plan.scanned for file in files]
    schemas = store.schemas_of(file.schema_id for file in (*files, *(file for unit in units for file in unit.files)))
    reader = RunReader(
        store.file_io, store.schema, schemas=schemas, columns=store.schema.field_names, memory_bytes=TASK_MEMORY
    )
    stored = (*store.schema.fields, *SYSTEM_FIELDS)
    columns, arrow = to_struct(stored), to_spark_arrow(stored)
    spec = MergeSpec.of(store.schema, store.options)
    changes = _scanned(spark, store, schemas, plan)
    if plan.merged:
        task = SnapshotGuard(store, plan.ends, MergedChanges(reader, spec, arrow), not plan.reads_states)
        merged = _task_changes(spark, store, plan.merged, lambda unit: unit, task, columns)
        changes.append(_with_snapshot(merged, None))
    if plan.compared:
        differences = SnapshotGuard(store, plan.ends, Differences(reader, spec, arrow))
        compared = _task_changes(spark, store, plan.compared, lambda compared: compared.unit, differences, columns)
        changes.append(_with_snapshot(compared, None))
    if not changes:
        changes.append(_with_snapshot(spark.createDataFrame([], columns), None))
    kind = F.get(F.array(*map(F.lit, ROW_KINDS)), F.col(VALUE_KIND).cast("int")).alias(kind_column)
    last = [F.col(SNAPSHOT).alias(SNAPSHOT_ID), F.col(SEQUENCE_NUMBER)] if positions else []
    return union_all(changes).select(kind, *quoted_all(store.schema.field_names), *last)


def _scanned(
    spark: SparkSession, store: TableStore, schemas: dict[int, TableSchema], plan: ChangelogPlan
) -> list[DataFrame]:
    """Return scans in the order of the snapshots: Spark keeps the order of a union, but not of files within a scan."""
    system = (SEQUENCE_NUMBER, VALUE_KIND)
    if len(plan.scanned) <= _MAX_SCANS:
        return [
            _with_snapshot(part.drop(FILE_NAME), snapshot)
            for snapshot, files in plan.scanned
            for part in file_scans(spark, store, schemas, files, system=system)
        ]
    files = [file for _, files in plan.scanned for file in files]
    names = [(file.name, snapshot) for snapshot, files in plan.scanned for file in files]
    known = F.broadcast(spark.createDataFrame(names, f"{FILE_NAME} string, {SNAPSHOT} bigint"))
    scan = union_all(file_scans(spark, store, schemas, files, system=system))
    return [scan.join(known, FILE_NAME).drop(FILE_NAME).orderBy(SNAPSHOT, *system)]


def _with_snapshot(frame: DataFrame, snapshot: int | None) -> DataFrame:
    return frame.withColumn(SNAPSHOT, F.lit(snapshot).cast("bigint"))


def _task_changes(
    spark: SparkSession,
    store: TableStore,
    units: Sequence[Unit],
    merged: Callable[[Unit], MergeUnit],
    task: Callable[[list[Unit]], Iterator[pa.RecordBatch]],
    columns: T.StructType,
) -> DataFrame:
    """Return the rows that a task yields for units; a task gets several small units."""
    packed = pack_for_tasks(store.options, units, lambda unit: merged(unit).files)
    return read_units(spark, packed, task, columns)
