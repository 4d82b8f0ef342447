"""System tables and results of inspections as DataFrames."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lakelsm.frames.changelog_frame import change_frame
from lakelsm.plan.changelog_plan import ChangelogPlan
from lakelsm.schema.system_columns import ROW_KIND
from lakelsm.snapshots.table_store import TableStore
from lakelsm.spark import functions as F
from lakelsm.spark.expressions import quoted, quoted_all
from lakelsm.spark.functions import of_session
from lakelsm.spark.spark_types import to_struct
from lakelsm.types import DataField


@of_session
def system_frame(spark: SparkSession, rows: pa.Table, fields: Sequence[DataField]) -> DataFrame:
    """Return the rows of a system table with Spark's types."""
    return spark.createDataFrame(rows, to_struct(tuple(fields)))


@of_session
def shown_frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Return rows for users; TIME is an INT of milliseconds of the day, as in `Table.read`."""
    return spark.createDataFrame(without_times(rows))


def without_times(rows: pa.Table) -> pa.Table:
    """Return rows with integers instead of TIME. Each column has a chunk: PySpark fails without one."""
    kinds = pa.schema([field.with_type(_without_times(field.type)) for field in rows.schema])
    return rows.cast(kinds) if len(rows) else pa.table([pa.array([], kind) for kind in kinds.types], schema=kinds)


def _without_times(kind: pa.DataType) -> pa.DataType:
    """Return an Arrow type with integers instead of TIME, at any depth."""
    if pa.types.is_time32(kind):
        return pa.int32()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_times(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_without_times(kind.key_type), kind.item_field.with_type(_without_times(kind.item_type)))
    if pa.types.is_struct(kind):
        return pa.struct([member.with_type(_without_times(member.type)) for member in kind])
    return kind


@of_session
def state_frame(
    spark: SparkSession, store: TableStore, plan: ChangelogPlan, heads: Sequence[str], lists: bool
) -> DataFrame:
    """Return the rows of a state after the columns ``heads``: the row kind, or the row kind and the sequence number.

    ``lists``: each value of the table's columns becomes a list of one element.
    """
    frame = change_frame(spark, store, plan, None, ROW_KIND, positions=len(heads) > 1)
    names = store.schema.field_names
    values = [F.array(quoted(name)).alias(name) for name in names] if lists else quoted_all(names)
    return frame.select(*heads, *values)

