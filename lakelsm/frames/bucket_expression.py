"""The bucket of a row as a Spark column.

Keys of fixed width are hashed by Spark expressions, in the JVM. All other keys pass through Arrow once and are hashed by
the functions of the format package. A property test proves that both give the same hashes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame

from lakelsm.schema.system_columns import BUCKET, HASH_STEP, HASHED_COLUMN
from lakelsm.spark import functions as F
from lakelsm.spark.expressions import quoted
from lakelsm.spark.tasks import map_in_arrow
from lakelsm.types import AtomicType, DataField
from lakelsm.write.fixed_buckets import FixedBuckets

_MASK = 0xFFFFFFFF
#: Spark has to plan dozens of operations for each key column. Above this number of columns, Arrow is faster.
_NATIVE_KEYS = 2
_NARROW = ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "DATE", "TIME")


def with_bucket(rows: DataFrame, buckets: FixedBuckets) -> DataFrame:
    """Return the rows with an additional column `BUCKET` (INT): the fixed bucket of each row."""
    keys = buckets.keys
    if buckets.number == 1:
        return rows.withColumn(BUCKET, F.lit(0).cast("int"))
    if buckets.function == "default" and len(keys) <= _NATIVE_KEYS and all(_is_native(field) for field in keys):
        # Under internal names, because the parser takes `${x}` for a variable, even in backticks.
        named = {HASHED_COLUMN.format(number): field for number, field in enumerate(keys)}
        steps, state = _murmur({name: field.type.root for name, field in named.items()})
        bucket = f"CAST(ABS(SHIFTRIGHT(SHIFTLEFT({state}, 32), 32)) % {buckets.number} AS INT) AS {BUCKET}"
        hashed = rows.select("*", *(quoted(field.name).alias(name) for name, field in named.items()))
        hashed = hashed.selectExpr("*", *steps, bucket)
        return hashed.drop(*named, *(step.rsplit(" ", 1)[1] for step in steps))
    return _with_bucket_by_arrow(rows, buckets)


def _is_native(field: DataField) -> bool:
    kind = field.type
    return isinstance(kind, AtomicType) and not kind.nullable and (kind.root in _NARROW or kind.root == "BIGINT")


def _murmur(columns: Mapping[str, str]) -> tuple[list[str], str]:
    """Return the 32-bit hash (BIGINT, unsigned) of the BinaryRow of fixed-width columns, NOT NULL (docs/format.md 8, 9).

    ``columns`` gives the type root of each column. Returns SQL steps, each with a name, and the hash, an expression over
    them. The row is a header of null bits, all zero here, and an 8-byte slot for each column. A part that is used twice
    gets a name, because otherwise the expression would double with each use. But Spark is slow with names that refer to
    names, so multiplication and rotation use their word only once.
    """
    header_words = 2 * ((len(columns) + 8 + 63) // 64)
    state = f"{_header_state(header_words)}L"
    for name, root in columns.items():
        for word in _words(name, root):
            state = _mixed(state, word)
    state = f"{state} ^ {4 * header_words + 8 * len(columns)}L"
    steps: list[str] = []
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        name = HASH_STEP.format(len(steps))
        steps.append(f"{state} AS {name}")
        state = _times(f"({name} ^ SHIFTRIGHT({name}, {shift}))", factor)
    name = HASH_STEP.format(len(steps))
    return [*steps, f"{state} AS {name}"], f"({name} ^ SHIFTRIGHT({name}, 16))"


def _mixed(state: str, word: str) -> str:
    """Return the hash state after the next 32-bit word."""
    mixed = _times(_rotated(_times(f"({word})", 0xCC9E2D51), 15), 0x1B873593)
    return f"(({_rotated(f'({state} ^ {mixed})', 13)} * 5L + {0xE6546B64}L) & {_MASK}L)"


def _times(word: str, factor: int) -> str:
    """Return ``word * factor`` modulo 2^32; both are below 2^32.

    The factor is a signed number, so that the product fits BIGINT, which may not overflow in Spark's ANSI mode.
    """
    signed = factor - (1 << 32) if factor >> 31 else factor
    return f"(({word} * {signed}L) & {_MASK}L)"


def _rotated(word: str, bits: int) -> str:
    """Return ``word`` rotated left within 32 bits: ``word * 2^bits`` modulo 2^32 - 1, with 0 and 2^32 - 1 unchanged."""
    return f"((SHIFTLEFT({word}, {bits}) - 1L) % {_MASK}L + 1L)"


def _words(column: str, root: str) -> tuple[str, str]:
    """Return the low and the high 32 bits of the column's slot, as SQL."""
    if root == "BIGINT":
        return f"{column} & {_MASK}L", f"SHIFTRIGHT({column}, 32) & {_MASK}L"
    if root == "DATE":
        column = f"UNIX_DATE({column})"
    bits = {"BOOLEAN": 0xFF, "TINYINT": 0xFF, "SMALLINT": 0xFFFF}.get(root, _MASK)
    return f"CAST(CAST({column} AS INT) AS BIGINT) & {bits}L", "0L"


def _header_state(words: int) -> int:
    """Return the hash state after the header's zero words, from the seed 42."""
    state = 42
    for _ in range(words):
        state = ((state << 13) | (state >> 19)) & _MASK
        state = (state * 5 + 0xE6546B64) & _MASK
    return state


def _with_bucket_by_arrow(rows: DataFrame, buckets: FixedBuckets) -> DataFrame:
    def assign(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return map(buckets.added, batches)

    return map_in_arrow(rows, assign, rows.withColumn(BUCKET, F.lit(0).cast("int")).schema)
