"""Buckets that Spark computes equal those of the format's own hash, which readers and other writers use."""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelsm.format.row.bucket_hash import bucket_ids
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.types import to_arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 3000
EPOCH = datetime.date(1970, 1, 1)


def _numbers(bits: int) -> list[int]:
    """Return numbers of this many bits: the ends, numbers around every power of two, and random ones."""
    chance = random.Random(bits)
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    edges = [low, low + 1, high, high - 1, 0, -1]
    edges += [sign * (1 << n) + more for n in range(bits - 1) for sign in (1, -1) for more in (-1, 0, 1)]
    within = [number for number in edges if low <= number <= high]
    return within + [chance.randint(low, high) for _ in range(ROWS - len(within))]


def _dates() -> list[datetime.date]:
    chance = random.Random(1)
    edges = [datetime.date.min, datetime.date.max, EPOCH, datetime.date(1969, 12, 31), datetime.date(1582, 10, 4)]
    span = (datetime.date.max - datetime.date.min).days
    return edges + [datetime.date.min + datetime.timedelta(chance.randint(0, span)) for _ in range(ROWS - len(edges))]


#: Column type, Spark type, values. TIME is milliseconds of the day in Spark.
COLUMNS: dict[str, tuple[str, str, list[Any]]] = {
    "a_bool": ("BOOLEAN", "BOOLEAN", [n % 3 == 0 for n in range(ROWS)]),
    "a_byte": ("TINYINT", "TINYINT", [n % 256 - 128 for n in range(ROWS)]),
    "a_short": ("SMALLINT", "SMALLINT", _numbers(16)),
    "an_int": ("INT", "INT", _numbers(32)),
    "a_long": ("BIGINT", "BIGINT", _numbers(64)),
    "a_date": ("DATE", "DATE", _dates()),
    "a_time": ("TIME(3)", "INT", [n * 28_799 % 86_400_000 for n in range(ROWS)]),
    "a `dotted.name`": ("INT", "INT", _numbers(32)[::-1]),
    # Spark does not hash these keys natively: their rows pass through Arrow.
    "a_text": ("STRING", "STRING", ["" if n % 7 == 0 else "é" * (n % 23) + str(n) for n in range(ROWS)]),
    "a_double": ("DOUBLE", "DOUBLE", [n / 7 if n else -0.0 for n in range(ROWS)]),
}

KEYS: list[tuple[str, ...]] = [
    *((name,) for name in COLUMNS),
    ("a_long", "an_int"),
    ("a_date", "a_bool"),
    ("a_bool", "a_byte", "a_short", "an_int", "a_long", "a_date", "a_time"),
    ("an_int", "a_text"),
]


def schema_of(keys: Sequence[str], bucket_key: Sequence[str] = ()) -> TableSchema:
    options = {"bucket": "7", **({"bucket-key": ",".join(bucket_key)} if bucket_key else {})}
    columns = ", ".join(f"`{name.replace('`', '``')}` {kind}" for name, (kind, _, _) in COLUMNS.items())
    return create_schema(columns, list(keys), [], options, None, 0)


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> Any:
    from pyspark.sql import types as T

    rows = list(zip(*(values for _, _, values in COLUMNS.values()), strict=True))
    types = [T._parse_datatype_string(kind) for _, kind, _ in COLUMNS.values()]
    struct = T.StructType([T.StructField(name, kind) for name, kind in zip(COLUMNS, types, strict=True)])
    return spark.createDataFrame(rows, struct).coalesce(1).cache()


def as_spark(name: str) -> pa.DataType | None:
    return pa.int32() if COLUMNS[name][0].startswith("TIME") else None


def expected(keys: Sequence[str], schema: TableSchema, buckets: int, function: Any = "default") -> list[int]:
    fields = [schema.field(name) for name in keys]
    arrays = [pa.array(COLUMNS[field.name][2], as_spark(field.name)).cast(to_arrow(field.type)) for field in fields]
    found: list[int] = bucket_ids(arrays, [field.type for field in fields], buckets, function).tolist()
    return found


def buckets_in_spark(frame: Any, schema: TableSchema, buckets: int, function: Any = "default") -> list[int]:
    from lakelsm.frames.bucket_expression import with_bucket
    from lakelsm.schema.system_columns import BUCKET
    from lakelsm.spark.functions import functions_of
    from lakelsm.write.fixed_buckets import FixedBuckets

    keys = tuple(map(schema.field, schema.bucket_keys))
    with functions_of(frame):
        bucketed = with_bucket(frame, FixedBuckets(keys, buckets, function))
    assert bucketed.columns == [*frame.columns, BUCKET]
    return [row[0] for row in bucketed.select(BUCKET).collect()]


@pytest.mark.parametrize(
    ("keys", "buckets"),
    [*((keys, 7) for keys in KEYS), *((("a_long",), buckets) for buckets in (1, 2, 1000, 32767))],
    ids=lambda value: "+".join(value) if isinstance(value, tuple) else str(value),
)
def test_the_bucket_of_a_row_is_computed_from_the_formats_hash(frame: Any, keys: tuple[str, ...], buckets: int) -> None:
    schema = schema_of(keys)
    found = buckets_in_spark(frame, schema, buckets)
    assert found == expected(keys, schema, buckets)
    assert set(found) <= set(range(buckets))


def test_the_bucket_depends_on_the_bucket_key_only(frame: Any) -> None:
    schema = schema_of(("an_int", "a_long"), bucket_key=["a_long"])
    assert buckets_in_spark(frame, schema, 7) == expected(["a_long"], schema, 7)


@pytest.mark.parametrize("function", ["mod", "hive"])
def test_other_bucket_functions_pass_through_arrow(frame: Any, function: str) -> None:
    schema = schema_of(("an_int",))
    assert buckets_in_spark(frame, schema, 7, function) == expected(["an_int"], schema, 7, function)


def test_buckets_are_the_same_with_and_without_ansi_mode(frame: Any, spark: SparkSession) -> None:
    schema = schema_of(("a_long",))
    ansi = spark.conf.get("spark.sql.ansi.enabled")
    try:
        for mode in ("true", "false"):
            spark.conf.set("spark.sql.ansi.enabled", mode)
            assert buckets_in_spark(frame, schema, 7) == expected(["a_long"], schema, 7)
    finally:
        spark.conf.set("spark.sql.ansi.enabled", ansi)
