"""Values of another type in a DataFrame are written if each of them fits, by the same rules as in this process."""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from lakelsm.errors import InvalidInputError
from lakelsm.frames.column_casts import safe_cast
from lakelsm.frames.prepare import prepare
from lakelsm.options import TableOptions
from lakelsm.schema.table_schema import create_schema
from lakelsm.spark.spark_types import to_spark
from lakelsm.spark.task_errors import translated_errors
from lakelsm.types import AtomicType, parse_type
from tests.safe_casts import HOSTILE, TARGETS, stored_value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def _expected(value: Any, source: str, target: str) -> Any:
    """Return the stored value in Spark's form; 'unfit' if the value does not fit."""
    try:
        stored = stored_value(value, source, target)
    except (ValueError, OverflowError):
        return "unfit"
    if isinstance(stored, dt.time):
        return (stored.hour * 3600 + stored.minute * 60 + stored.second) * 1000 + stored.microsecond // 1000
    return stored


def _same(found: Any, expected: Any, target: str) -> bool:
    kind = parse_type(target)
    if isinstance(expected, float) and math.isnan(expected):
        return isinstance(found, float) and math.isnan(found)
    if isinstance(found, dt.datetime) and isinstance(kind, AtomicType):  # Spark has microseconds; files have the others.
        found = found.astimezone(dt.timezone.utc) if kind.root == "TIMESTAMP_LTZ" else found
        found = found.replace(microsecond=found.microsecond // 1000 * 1000) if kind.precision == 3 else found
    return type(found) is type(expected) and bool(found == expected)


@pytest.mark.usefixtures("classic_functions")
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_edge_values_fit_by_the_same_rules_as_in_this_process(spark: SparkSession, ansi: str) -> None:
    column = F.col("v")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        for source, targets in TARGETS.items():
            values = HOSTILE[source]
            casts = [safe_cast(parse_type(source), parse_type(target)) for target in targets]
            found = [
                F.struct(cast.unfit(column), F.when(~cast.unfit(column), cast.value(column))).alias(f"c{at}")
                for at, cast in enumerate(casts)
            ]
            frame = spark.createDataFrame([(value,) for value in [*values, None]], f"v {_name(source)}")
            *rows, of_null = frame.coalesce(1).select(*found).collect()
            assert [tuple(one) for one in of_null] == [(False, None)] * len(targets)
            for value, row in zip(values, rows, strict=True):
                for target, (unfit, stored) in zip(targets, row):
                    result, expected = "unfit" if unfit else stored, _expected(value, source, target)
                    assert _same(result, expected, target), (source, target, value, result, expected)
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def _name(sql: str) -> str:
    return to_spark(parse_type(sql)).simpleString()


def _written(frame: DataFrame, columns: str) -> list[Any]:
    schema = create_schema(columns, ["k"], [], {"bucket": "1"}, None, 0)
    with translated_errors("/"):
        return prepare(frame, schema, TableOptions.parse({})).drop("_VALUE_KIND", "_SEQUENCE_NUMBER").collect()


def test_parts_of_values_are_cast_and_the_error_names_the_key_of_a_row(spark: SparkSession) -> None:
    columns = "k INT, b BYTES, a ARRAY<INT>, m MAP<STRING, TINYINT>, r ROW<x INT, d DATE>, s MULTISET<INT>, t DATE"
    one = (
        "SELECT {k} AS k, X'0A' AS b, {a} AS a, {m} AS m, {r} AS r, map(1L, 2L) AS s, {t} AS t"
    )
    sound = {"k": "1L", "a": "array(1L, NULL)", "m": "map('a', 1L)", "t": "NULL"}
    sound["r"] = "named_struct('X', 1L, 'd', '2026-01-31')"
    (row,) = _written(spark.sql(one.format(**sound)), columns)
    day = dt.date(2026, 1, 31)
    assert tuple(row) == (1, b"\n", [1, None], {"a": 1}, (1, day), {1: 2}, None)
    nulls = {"a": "CAST(NULL AS array<bigint>)", "m": "CAST(NULL AS map<string, bigint>)"}
    nulls["r"] = "CAST(NULL AS struct<x: bigint, d: string>)"
    assert tuple(_written(spark.sql(one.format(**sound | nulls)), columns)[0])[2:5] == (None, None, None)
    refused = "Nothing was written: column '"
    for name, text, message in (
        ("a", "array(1L, 3000000000L)", "a' of the row with k = 1: [1, 3000000000] does not fit ARRAY<INT>"),
        ("m", "map('a', 128L)", "m' of the row with k = 1: {a -> 128} does not fit MAP<STRING, TINYINT>"),
        ("r", "named_struct('x', 1L, 'd', 'x')", "r' of the row with k = 1: {1, x} does not fit ROW<`x` INT, `d` DATE>"),
        ("k", "3000000000L", "k' of the row with k = 3000000000: 3000000000 does not fit INT"),
        ("t", "'1\n2'", "t' of the row with k = 1: '1 2' does not fit DATE. Use text such as '2026-01-31'"),
        ("t", f"'{'x' * 70}'", f"t' of the row with k = 1: '{'x' * 59}… does not fit DATE. Use"),
    ):
        with pytest.raises(InvalidInputError) as caught:
            _written(spark.sql(one.format(**sound | {name: text})), columns)
        assert str(caught.value).startswith(refused + message)


def test_the_error_shows_the_whole_key_and_nanoseconds_of_a_text_are_refused(spark: SparkSession) -> None:
    schema = create_schema("b BYTES, d DATE, t TIMESTAMP(9)", ["b", "d"], [], {"bucket": "1"}, None, 0)
    frame = spark.sql("SELECT X'0AFF' AS b, DATE'2026-01-31' AS d, '2026-01-31 10:00:00.123456001' AS t")
    message = r"the row with b = 0AFF, d = 2026-01-31: '2026-01-31 10:00:00\.123456001' does not fit"
    with pytest.raises(InvalidInputError, match=message), translated_errors("/"):
        prepare(frame, schema, TableOptions.parse({})).collect()
