"""A planned incremental read as a DataFrame of changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from lakelsm.commit.table_store import TableStore
from lakelsm.lsm.splits import pack_in_order
from lakelsm.merge.kernel import SEQUENCE_NUMBER, VALUE_KIND, MergeSpec
from lakelsm.merge.run_reader import MergeUnit, RunReader
from lakelsm.read.changed_rows import Differences, MergedChanges
from lakelsm.read.changelog_plan import ChangelogPlan
from lakelsm.read.scan_frame import FILE_NAME, TASK_MEMORY, file_scans, file_schemas
from lakelsm.read.stale_rows import shown_file_name
from lakelsm.spark.columns import quoted_all
from lakelsm.spark.spark_types import to_struct
from lakelsm.spark.tasks import run_units

#: The row kinds by their code. Persisted: do not change
_KINDS = ("+I", "-U", "+U", "-D")

#: Column of the snapshot that made a change, in reads with positions.
SNAPSHOT_COLUMN = "_SNAPSHOT_ID"

Unit = TypeVar("Unit")


def changelog_frame(
    spark: SparkSession, store: TableStore, plan: ChangelogPlan, kind_column: str, positions: bool
) -> DataFrame:
    """Return the changes: the kind as text in ``kind_column``, then the table's columns; nothing runs before an action.

    With ``positions`` `SNAPSHOT_COLUMN` and the sequence number of the row follow.
    """
    units = [*plan.merged, *(compared.unit for compared in plan.compared)]
    files = [file for _, file in plan.scanned]
    schemas = file_schemas(store, [*files, *(file for unit in units for file in unit.files)])
    system = (SEQUENCE_NUMBER, VALUE_KIND)
    changes = file_scans(spark, store, schemas, files, system=system)
    columns = to_struct(store.schema.fields).add(SEQUENCE_NUMBER, T.LongType()).add(VALUE_KIND, T.ByteType())
    columns = columns.add(FILE_NAME, T.StringType())
    reader = RunReader(store.file_io, store.schema, schemas, store.schema.field_names, TASK_MEMORY)
    spec = MergeSpec.of(store.schema, store.options)
    written = T.StructType(columns.fields[:-1])
    if plan.merged:
        task = MergedChanges(reader, spec, to_arrow_schema(written))
        changes.append(_of_units(spark, store, plan.merged, lambda unit: unit, task, written))
    if plan.compared:
        differences = Differences(reader, spec, to_arrow_schema(written))
        changes.append(_of_units(spark, store, plan.compared, lambda compared: compared.unit, differences, written))
    frame = reduce(DataFrame.unionAll, changes) if changes else spark.createDataFrame([], columns)
    kinds = F.array(*map(F.lit, _KINDS))
    kind = F.get(kinds, F.col(VALUE_KIND).cast("int")).alias(kind_column)
    if not positions:
        return frame.select(kind, *quoted_all(store.schema.field_names))
    names = [(shown_file_name(file.path), snapshot) for snapshot, file in plan.scanned]
    known = spark.createDataFrame(names, f"{FILE_NAME} string, {SNAPSHOT_COLUMN} bigint")
    located = frame.join(F.broadcast(known), FILE_NAME, "left")
    return located.select(kind, *quoted_all([*store.schema.field_names, SNAPSHOT_COLUMN, SEQUENCE_NUMBER]))


def _of_units(
    spark: SparkSession,
    store: TableStore,
    units: Sequence[Unit],
    merged: Callable[[Unit], MergeUnit],
    task: Callable[[list[Unit]], Iterator[pa.RecordBatch]],
    columns: T.StructType,
) -> DataFrame:
    """What a task yields for units, several a task where they are small; without the name of a file."""
    cost, target = store.options.source_split_open_file_cost, store.options.source_split_target_size
    packed = pack_in_order(units, lambda unit: sum(max(f.file_size, cost) for f in merged(unit).files), target)
    return run_units(spark, packed, task, columns).withColumn(FILE_NAME, F.lit(None).cast("string"))
