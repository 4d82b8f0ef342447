"""A read plan as a DataFrame of native parts, which Catalyst still optimises.

All files are scanned by Spark's own Parquet reader, so that projections and predicates that are added later reach it.
Files of sections are scanned the same way, less their hidden rows (see stale_rows): one small table of bitmaps, made by
tasks when the query runs, is broadcast and tested by file name and row index.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelsm.commit.table_store import TableStore
from lakelsm.lsm.splits import pack_in_order
from lakelsm.merge.kernel import MergeSpec
from lakelsm.merge.run_reader import MergeUnit, RunFile, RunReader
from lakelsm.read.read_plan import ReadPlan
from lakelsm.read.stale_rows import STALE_SCHEMA, StaleRows, join_bitmaps
from lakelsm.schema import TableSchema
from lakelsm.schema_evolution import column_mapping
from lakelsm.spark.columns import quoted
from lakelsm.spark.spark_types import to_spark, to_struct
from lakelsm.spark.tasks import run_units

_FILE = "_KEY__FILE"
_ROW = "_KEY__ROW"

#: Memory of a task that looks for hidden rows, in bytes.
_TASK_MEMORY = 256 << 20


def scan_frame(spark: SparkSession, store: TableStore, plan: ReadPlan) -> DataFrame:
    """Return the rows of the plan with the table's columns; nothing runs before an action."""
    files = [*plan.raw_files, *plan.merged_files]
    ids = {file.schema_id for file in files}
    schemas = {key: store.schema if key == store.schema.id else store.schemas.get(key) for key in ids}
    parts = [_scan(spark, store.schema, schemas[key], group) for key, group in _by_schema(plan.raw_files)]
    if plan.units:
        stale = F.broadcast(_stale(spark, store, schemas, plan.units))
        for key, group in _by_schema(plan.merged_files):
            parts.append(_scan(spark, store.schema, schemas[key], group, stale))
    if not parts:
        return spark.createDataFrame([], to_struct(store.schema.fields))
    return reduce(DataFrame.unionAll, parts)


def _by_schema(files: Sequence[RunFile]) -> list[tuple[int, list[RunFile]]]:
    groups: dict[int, list[RunFile]] = {}
    for file in files:
        groups.setdefault(file.schema_id, []).append(file)
    return sorted(groups.items())


def _stale(
    spark: SparkSession, store: TableStore, schemas: dict[int, TableSchema], units: Sequence[MergeUnit]
) -> DataFrame:
    """The hidden rows of all units, one row a file."""
    spec = MergeSpec.of(store.schema, store.options)
    columns = tuple(dict.fromkeys((*spec.key_columns, *spec.sequence_columns)))
    task = StaleRows(RunReader(store.file_io, store.schema, schemas, columns, _TASK_MEMORY), spec)
    cost, target = store.options.source_split_open_file_cost, store.options.source_split_target_size
    packed = pack_in_order(units, lambda unit: sum(max(file.file_size, cost) for file in unit.files), target)
    rows = run_units(spark, packed, task, STALE_SCHEMA)
    if all(unit.lower is None and unit.upper is None for unit in units):
        return rows
    return rows.groupBy("stale_file").applyInArrow(join_bitmaps, STALE_SCHEMA)


def _scan(
    spark: SparkSession,
    schema: TableSchema,
    file_schema: TableSchema,
    files: Sequence[RunFile],
    stale: DataFrame | None = None,
) -> DataFrame:
    """Scan files of one schema as the table's columns; ``stale`` lists the rows to leave out."""
    mapping = column_mapping(file_schema, schema)
    stored = [T.StructField(source.name, to_spark(source.type)) for _, source in mapping if source is not None]
    columns: list[Column] = []
    for field, source in mapping:
        target = to_spark(field.type)
        if source is None:
            columns.append(F.lit(None).cast(target).alias(field.name))
        elif source.type.with_nullable(True) != field.type.with_nullable(True):
            columns.append(quoted(source.name).cast(target).alias(field.name))
        else:
            columns.append(quoted(source.name).alias(field.name))
    frame = spark.read.schema(T.StructType(stored)).parquet(*(file.path for file in files))
    if stale is None:
        return frame.select(*columns)
    located = frame.select(*columns, F.col("_metadata.file_name").alias(_FILE), F.col("_metadata.row_index").alias(_ROW))
    word = f"stale_words[CAST(SHIFTRIGHT({_ROW}, 6) AS INT)]"
    live = F.expr(f"stale_words IS NULL OR getbit({word}, CAST({_ROW} & 63 AS INT)) = 0")
    joined = located.join(stale, located[_FILE] == stale["stale_file"], "left")
    return joined.where(live).select(*(quoted(field.name) for field in schema.fields))
