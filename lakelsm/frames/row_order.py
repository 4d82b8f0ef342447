"""The sort order of a writing task: by key alone if possible, as one column sorts in half the time of three.

Spark compares 64-bit prefixes of the first column, and whole rows only if the prefixes are equal. A task has few buckets,
so that with a bucket as the first column every comparison is one of whole rows. If the prefix is the whole column (a
number, a date, a time), Spark sorts without comparing. The rows of several buckets are then interleaved, and the task
separates them in Arrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import types as T

from lakelsm.schema.system_columns import BUCKET, SEQUENCE_NUMBER
from lakelsm.schema.table_schema import TableSchema
from lakelsm.spark import functions as F
from lakelsm.spark.expressions import quoted, quoted_all
from lakelsm.spark.spark_types import to_spark
from lakelsm.types import DataField
from lakelsm.write.level0_task import Level0Job

#: Buckets whose rows may be interleaved in a task: each has an open file and a share of the rows waiting to be written.
#: The number of partitions of a batch is known only after its shuffle, so partitioned tables are never interleaved.
MAX_INTERLEAVED = 16

_FLOATS = (T.FloatType(), T.DoubleType())
#: Bits of the key columns that can be packed into one number.
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "DATE": 32, "TIME": 32}


@dataclass(frozen=True)
class RowOrder:
    """The sort columns of a task's rows, and whether the rows of different buckets are ``interleaved``."""

    columns: Sequence[Column]
    interleaved: bool


def row_order(schema: TableSchema, job: Level0Job) -> RowOrder:
    """Return the order in which a job reads rows.

    The job itself finds the winning row of a key by the rows' numbers. But if it keeps all rows, or may have to merge
    before it has read all rows of a key, they must be in input order.
    """
    interleaved = not schema.partition_keys and 0 < job.total_buckets <= MAX_INTERLEAVED
    fields = [schema.field(name) for name in schema.trimmed_primary_keys]
    keys = [_packed(fields)] if _is_packed(fields) else quoted_all(schema.trimmed_primary_keys)
    heads = [] if interleaved else [*_partition_columns(schema), F.col(BUCKET)]
    in_order = job.changelog_layout is not None or not job.spec.keeps_rows
    return RowOrder([*heads, *keys, *([F.col(SEQUENCE_NUMBER)] if in_order else [])], interleaved)


def _partition_columns(schema: TableSchema) -> list[Column]:
    columns: list[Column] = []
    for field in schema.partition_fields:
        column = quoted(field.name)
        columns.append(column)
        if to_spark(field.type) in _FLOATS:
            # Spark treats -0.0 as 0.0, but they are two partitions.
            columns.append((column == 0) & column.cast("string").startswith("-"))
    return columns


def _is_packed(keys: Sequence[DataField]) -> bool:
    """Return whether several key columns fit one number that has their order."""
    roots = [field.type.root for field in keys if not field.type.nullable]
    bits = [_BITS[root] for root in roots if root in _BITS]
    return 1 < len(keys) == len(bits) and sum(bits) <= 64


def _packed(keys: Sequence[DataField]) -> Column:
    """Return one BIGINT that compares as the columns do: the first in the high bits, the others as numbers from 0."""
    packed = _number(keys[0])
    for field in keys[1:]:
        bits = _BITS[field.type.root]
        packed = F.shiftleft(packed, bits).bitwiseOR(_number(field) + F.lit(1 << (bits - 1)))
    return packed


def _number(field: DataField) -> Column:
    column = quoted(field.name)
    return (F.unix_date(column) if field.type.root == "DATE" else column).cast("bigint")
