"""The bucket of a row as a Spark column.

Keys of fixed width are hashed by Spark expressions, in the JVM; every other key passes through Arrow once, by the same
functions that the format package has. A property test holds the two equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakelsm.format.bucket_hash import BucketFunction, bucket_ids
from lakelsm.schema import TableSchema
from lakelsm.spark.columns import quoted_all
from lakelsm.types import AtomicType, DataField, to_arrow
from lakelsm.write.prepare import BUCKET

_MASK = 0xFFFFFFFF
_NARROW = ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "DATE", "TIME")


def with_bucket(
    rows: DataFrame, schema: TableSchema, num_buckets: int, function: BucketFunction = "default"
) -> DataFrame:
    """Append the column `BUCKET` (INT): the fixed bucket of each row by the table's bucket key."""
    keys = [schema.field(name) for name in schema.bucket_keys]
    if num_buckets == 1:
        return rows.withColumn(BUCKET, F.lit(0).cast("int"))
    if function == "default" and all(_is_native(field) for field in keys):
        hashed = _murmur(quoted_all([field.name for field in keys]), keys)
        return rows.withColumn(BUCKET, (F.abs(hashed) % num_buckets).cast("int"))
    return _with_bucket_by_arrow(rows, keys, num_buckets, function)


def _is_native(field: DataField) -> bool:
    kind = field.type
    return isinstance(kind, AtomicType) and not kind.nullable and (kind.root in _NARROW or kind.root == "BIGINT")


def _murmur(columns: Sequence[Column], fields: Sequence[DataField]) -> Column:
    """The signed 32-bit hash (BIGINT) of the BinaryRow of fixed-width, non-null fields (format.md 9 and 10).

    The row is a header of null bits, zero here, and one 8-byte slot a field. Products of 32-bit numbers are formed in
    two halves, so that no BIGINT overflows (Spark's ANSI mode would raise).
    """
    header_words = 2 * ((len(fields) + 8 + 63) // 64)
    state = F.lit(_header_state(header_words)).cast("bigint")
    for column, field in zip(columns, fields):
        for word in _words(column, field):
            state = _mix(state, word)
    length = 4 * header_words + 8 * len(fields)
    state = state.bitwiseXOR(F.lit(length).cast("bigint"))
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        state = _times(state.bitwiseXOR(F.shiftright(state, shift)), factor)
    state = state.bitwiseXOR(F.shiftright(state, 16))
    return F.when(state >= 1 << 31, state - (1 << 32)).otherwise(state)


def _words(column: Column, field: DataField) -> tuple[Column, Column]:
    """The low and high 32 bits of the field's slot."""
    assert isinstance(field.type, AtomicType)
    root = field.type.root
    mask = F.lit(_MASK)
    if root == "BIGINT":
        return column.bitwiseAND(mask), F.shiftright(column, 32).bitwiseAND(mask)
    if root == "DATE":
        column = F.datediff(column, F.lit("1970-01-01").cast("date"))
    bits = {"BOOLEAN": 0xFF, "TINYINT": 0xFF, "SMALLINT": 0xFFFF}.get(root, _MASK)
    return column.cast("int").cast("bigint").bitwiseAND(F.lit(bits).cast("bigint")), F.lit(0).cast("bigint")


def _times(word: Column, factor: int) -> Column:
    """``word * factor`` modulo 2^32; both are below 2^32."""
    low = word.bitwiseAND(F.lit(0xFFFF).cast("bigint")) * F.lit(factor)
    high = F.shiftright(word, 16) * F.lit(factor & 0xFFFF)
    return (low + F.shiftleft(high, 16)).bitwiseAND(F.lit(_MASK))


def _rotated(word: Column, bits: int) -> Column:
    return F.shiftleft(word, bits).bitwiseOR(F.shiftright(word, 32 - bits)).bitwiseAND(F.lit(_MASK))


def _mix(state: Column, word: Column) -> Column:
    mixed = _times(_rotated(_times(word, 0xCC9E2D51), 15), 0x1B873593)
    turned = _rotated(state.bitwiseXOR(mixed), 13)
    return (turned * F.lit(5) + F.lit(0xE6546B64)).bitwiseAND(F.lit(_MASK))


def _header_state(words: int) -> int:
    """The hash state after the header's zero words, from the seed 42."""
    state = 42
    for _ in range(words):
        state = ((state << 13) | (state >> 19)) & _MASK
        state = (state * 5 + 0xE6546B64) & _MASK
    return state


def _with_bucket_by_arrow(
    rows: DataFrame, keys: Sequence[DataField], num_buckets: int, function: BucketFunction
) -> DataFrame:
    names = [field.name for field in keys]
    types = [field.type for field in keys]

    def assign(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            arrays = [batch.column(name).cast(to_arrow(kind)) for name, kind in zip(names, types)]
            buckets = pa.array(bucket_ids(arrays, types, num_buckets, function))
            yield pa.RecordBatch.from_arrays([*batch.columns, buckets], names=[*batch.schema.names, BUCKET])

    return rows.mapInArrow(assign, rows.withColumn(BUCKET, F.lit(0).cast("int")).schema)
