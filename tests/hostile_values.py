"""Values that no argument accepts: wrong types, edge numbers, odd texts, objects that raise errors when inspected."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakelsm.schema_changes import SetOption
from lakelsm.types import parse_type


class Spiteful:
    """An object that raises an error for every operation."""

    def _fail(self, *_: object) -> Any:
        raise RuntimeError("spite")

    __repr__ = __str__ = __eq__ = __hash__ = __bool__ = __len__ = __iter__ = __getitem__ = _fail  # type: ignore[assignment]
    __int__ = __float__ = __index__ = __contains__ = __lt__ = __le__ = __gt__ = __ge__ = __fspath__ = _fail


class TextAlike(str):
    """A text of a subclass."""


def _endless() -> Iterator[int]:
    while True:
        yield 0


def plain_values() -> list[Any]:
    """Return the values that need no JVM."""
    texts = [
        "", " ", "x", "\t\n", "\0", "a\0b", "\ud800", "k\udfff", "é" * 200, "a" * 300, "a" * 100_000, "..", "../..",
        "/", "a/b", "/dev/null", "/proc/self/mem", "file:///nowhere", "file://host/x", "s3://b/k", "http://[", "~", "'",
        '"', "`", "`k`", ";", "--", "/*", "1", "-1", "1e400", "nan", "true", "NULL", "k", "K", "k, v",
        "k = 1; SELECT 1", "1 = 1", "k = (SELECT 1)", "k IN ()", "rand() < 2", "(" * 300, "db.t", "db.t$files", "sys.t",
        "a.b.c", ".", "%s%n{}", "𝔘", "256mb", "30 min", "0,1", "1,,2", "2025-01-01", "2025-01-01 00:00:00",
        "-9999-01-01", "+294247-01-01", "now", "INT", "k INT", "ROW<", "auto", "delta", "_KEY_k", "_SEQUENCE_NUMBER",
        "rowkind", "\u202e", TextAlike("k"), "1 fortnight", "-1 d", "1 d 2 h", "1e99 s", "9999999999999999 d", "9999 d",
        "main", "old", "LATEST", ".x", "x.", "x ", "a%2Fb", "a$b", "e\u0301", "\ufeff", "x" * 251, "x" * 252, "é" * 125,
        "9999-12-31 23:59:59.999999", "0001-01-01 00:00:00", "2025-01-01 00:00:00 Mars/Olympus",
    ]  # fmt: skip
    numbers = [
        True, False, 0, -1, 1, 2, 7, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 2**70, -(2**70), 10**5000, 0.0, -0.0, 1.0, 1.5,
        1e308, float("nan"), float("inf"), -float("inf"), 1j, Decimal("1.5"), Decimal("NaN"), Fraction(1, 3),
        np.int64(1), np.int64(-1), np.uint64(2**64 - 1), np.float64("nan"), np.bool_(True),
    ]  # fmt: skip
    collections = [
        [], (), {}, set(), frozenset({1}), [None], [0], [0, 0], [True], ["0"], [0.0], [-1], [2**70], ["k"], ["k", "k"],
        ["K"], ["k", 5], [["k"]], ["\0"], ["\ud800"], ("k", "v"), {"dt": None}, {"dt": 5}, {"dt": "\ud800"},
        {"dt": "a", "v": "x"}, {"dt": Spiteful()}, {"dt": [1]}, {"k": 1}, {5: 5}, {None: None}, {"": ""},
        {"bucket": None}, {"bucket": Spiteful()}, {"bucket": "x"}, {"bucket": 2}, {"bucket": -5},
        {"no-such-option": "1"}, {"merge-engine": "first-row"}, {"target-file-size": "0"},
        {"target-file-size": "\ud800"}, {"write-only": True}, {"file.format": "orc"}, {"num-levels": 10**5000},
        [Spiteful()], range(0), range(10**18), b"", b"k", bytearray(b"k"), memoryview(b"k"), [{"k": 1}], iter([0]),
        _endless(), map(str, [1]), np.array([0]), np.array(["k"]), np.array(0),
    ]  # fmt: skip
    times = [
        datetime.datetime(2025, 1, 1), datetime.datetime.min, datetime.datetime.max, datetime.date(2025, 1, 1),
        datetime.datetime(2025, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=14))), datetime.time(1),
        datetime.datetime.min.replace(tzinfo=datetime.timezone.utc), datetime.timedelta(1), datetime.timedelta(-1),
        datetime.datetime.max.replace(tzinfo=datetime.timezone.utc), datetime.timedelta.max, datetime.timedelta.min,
        datetime.timedelta(0), pd.NaT, pd.NA, pd.Timestamp(2025, 1, 1), pd.Timestamp.max, pd.Timedelta(1),
    ]  # fmt: skip
    objects = [
        None, ..., NotImplemented, object(), Spiteful(), int, str, len, lambda: None, ValueError("x"), Path("/tmp"),
        Path("x"), pd.DataFrame({"k": [1]}), pd.Series([1]), pa.table({"k": [1]}), pa.schema([("k", pa.int32())]),
        pa.array([0]), pa.schema([("k", pa.month_day_nano_interval())]), pa.schema([]), parse_type("INT"),
        parse_type("INT NOT NULL"), SetOption("write-only", "true"),
    ]  # fmt: skip
    return [*texts, *numbers, *collections, *times, *objects]


def spark_values(spark: SparkSession) -> list[Any]:
    """Return Spark's values: columns, frames, types, a session."""
    return [
        F.col("k"), F.lit(1) == 1, [F.col("k")], spark, spark.sparkContext, spark.range(1), spark.range(0).toDF("k"),
        spark.sql("SELECT 'a' dt, 1 k, 'x' v, 2 k"), spark.sql("SELECT 'a' dt, CAST(NULL AS INT) k, 'x' v"),
        spark.sql("SELECT 'a' dt, map(1, 1) k, 'x' v"), spark.readStream.format("rate").load(),
        spark.range(1).groupBy("id"), spark.newSession().sql("SELECT 'a' dt, 1 k, 'x' v"), T.StructType(),
        T.IntegerType(), spark.range(1).schema, T.StructType().add("k", T.CalendarIntervalType()),
        T.StructType().add("\0", T.IntegerType()), spark.range(1).rdd,
    ]  # fmt: skip
