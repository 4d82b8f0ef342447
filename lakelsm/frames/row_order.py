"""How Spark sorts the rows of a writing task: by key alone where it may, as one column sorts in half the time of three.

Spark compares 64-bit prefixes of the first column, and whole rows only where those are equal. A task has few buckets,
so that a bucket in front leaves every comparison to whole rows. By one column whose prefix is all of it (a number, a
date, a time) Spark sorts without comparing. The rows of several buckets then take turns; tasks part them in Arrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelsm.schema.system_columns import BUCKET, SEQUENCE_NUMBER
from lakelsm.schema.table_schema import TableSchema
from lakelsm.spark.expressions import quoted, quoted_all
from lakelsm.spark.spark_types import to_spark
from lakelsm.types import DataField
from lakelsm.write.level0_task import Level0Job

#: Buckets whose rows may take turns in a task: each has a file open, and its share of the rows that wait to be written.
#: How many partitions a batch has is known only after its shuffle, so rows of partitioned tables are never mixed.
MAX_INTERLEAVED = 16

_FLOATS = (T.FloatType(), T.DoubleType())
#: Bits of key columns that are packed into one number.
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "DATE": 32, "TIME": 32}


@dataclass(frozen=True)
class RowOrder:
    """The columns that rows of a task are sorted by, and whether they leave the rows of buckets ``interleaved``."""

    columns: Sequence[Column]
    interleaved: bool


def row_order(schema: TableSchema, job: Level0Job) -> RowOrder:
    """The order in which a job takes rows.

    Which row of a key wins is for the job to find, by the rows' numbers. But rows that are all kept, or that it may have
    to merge before it has seen all of their key, must come in the order of the input.
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
            # Spark takes -0.0 for 0.0; they are two partitions.
            columns.append((column == 0) & column.cast("string").startswith("-"))
    return columns


def _is_packed(keys: Sequence[DataField]) -> bool:
    """Whether several key columns fit one number that is in their order."""
    roots = [field.type.root for field in keys if not field.type.nullable]
    bits = [_BITS[root] for root in roots if root in _BITS]
    return 1 < len(keys) == len(bits) and sum(bits) <= 64


def _packed(keys: Sequence[DataField]) -> Column:
    """One BIGINT that compares as the columns do: the first one above, the others below as numbers from 0 up."""
    packed = _number(keys[0])
    for field in keys[1:]:
        bits = _BITS[field.type.root]
        packed = F.shiftleft(packed, bits).bitwiseOR(_number(field) + F.lit(1 << (bits - 1)))
    return packed


def _number(field: DataField) -> Column:
    column = quoted(field.name)
    return (F.unix_date(column) if field.type.root == "DATE" else column).cast("bigint")
