"""Random expressions of all types: in this process each gives Spark's rows, an error, or is refused by name."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.sql.local.local_query import local_query
from lakelsm.sql.query_source import FrameSource
from lakelsm.sql.syntax.query_text import QueryText
from lakelsm.text_table import shown_values
from tests.chance import seeds

PRICES = "0.00 1.25 -3.50 99999999.99 - 2.35 7.00 0.05"
ROWS = pa.table(
    {
        "row": pa.array(range(8), pa.int32()),
        "i": pa.array([0, 1, -1, 7, None, 2**31 - 1, -(2**31), 3], pa.int32()),
        "l": pa.array([0, 5, -(2**63), 2**63 - 1, None, 12, 3, -4], pa.int64()),
        "y": pa.array([0, 1, 127, -128, None, 3, 4, 5], pa.int8()),
        "f": pa.array([0.0, 1.5, -0.0, math.nan, None, math.inf, 3.25, -2.5], pa.float32()),
        "x": pa.array([0.0, 1.5, -0.0, math.nan, None, -math.inf, 3.25, -2.5], pa.float64()),
        "p": pa.array([None if each == "-" else Decimal(each) for each in PRICES.split()], pa.decimal128(10, 2)),
        "t": pa.array(["", "abc", "Ab C", "12", None, " x ", "a%b_c", "zZ9"]),
        "u": pa.array(["abc", "b", "c", "12", None, "x", "%", "z"]),
        "b": pa.array([True, False, None, True, False, True, None, False]),
        "d": pa.array([date(2020, 1, 1), date(2020, 2, 29), date(1999, 12, 31), date(1970, 1, 1), None, date(2024, 6, 15),
                       date(2000, 1, 31), date(1900, 3, 1)]),
        "m": pa.array([datetime(2020, 1, 1), datetime(2020, 2, 29, 13, 14, 15, 123456),
                       datetime(1999, 12, 31, 23, 59, 59), datetime(1969, 12, 31, 23, 59, 59, 999999), None,
                       datetime(2024, 6, 15, 1, 2, 3),
                       datetime(2000, 1, 31), datetime(1900, 3, 1)], pa.timestamp("us")),
    }
)  # fmt: skip
NUMBERS = ["i", "l", "y", "f", "x", "p", "1", "-2", "0", "1.5", "2L", "3.0D", "NULL", "CAST(1 AS TINYINT)", "0.001BD"]
INTEGERS = ["i", "y", "1", "0", "-1", "3"]
TEXTS = ["t", "u", "'abc'", "''", "'A'", "NULL", "'a%'", "'it''s'"]
CONDITIONS = ["b", "TRUE", "FALSE", "(NULL IS NULL)"]
DATES = ["d", "DATE '2020-02-29'"]
TIMES = ["m", "d"]
PATTERNS = ["a%", "%b%", "_", "%", "A_C", r"a\\%b%"]
FIELDS = [
    "year", "month", "day", "dayofmonth", "quarter", "dayofyear",
    "weekofyear", "dayofweek", "weekday", "hour", "minute", "second",
]
FORMATS = ["yyyy-MM-dd", "yy/M/d H:m:s", "dd.MM.yyyy HH:mm:ss.SSS", "EEE, d MMMM y", "yyyyMMThh a", "SSSSSS"]
UNITS = ["year", "QUARTER", "MM", "week", "none"]
#: Templates of expressions: N is a number, I an integer, T a text, C a condition, D a date, M a date or time, P a
#: pattern, F a field, O a comparison, A an array of texts, R a row or another collection, W a format, U a unit.
TEMPLATES = {
    "N": [
        "(N + N)", "(N - N)", "(N * N)", "(N / N)", "(N % N)", "(I DIV I)", "abs(N)", "-(N)", "ceil(N)", "floor(N)",
        "sqrt(N)", "sign(N)",
        "round(N, 1)", "round(N)", "greatest(N, N)", "least(N, N)", "coalesce(N, N)", "nullif(N, N)",
        "CASE WHEN C THEN N ELSE N END", "CASE N WHEN N THEN N END", "if(C, N, N)", "length(T)", "instr(T, T)", "F(M)",
        "extract(year FROM M)", "datediff(D, D)", "CAST(N AS INT)", "CAST(N AS BIGINT)", "CAST(N AS DOUBLE)",
        "CAST(N AS DECIMAL(12, 3))", "CAST(N AS SMALLINT)", "CAST(N AS FLOAT)", "CAST(T AS INT)", "CAST(T AS DOUBLE)",
        "CAST(C AS INT)", "octet_length(T)", "(p / N)", "(N DIV N)", "(p % N)", "size(A)", "element_at(array(N, N), I)",
        "nvl2(T, N, N)", "unix_date(D)", "locate(T, T)", "element_at(map(T, N), T)",
    ],
    "T": [
        "upper(T)", "lower(T)", "trim(T)", "ltrim(T)", "rtrim(T)", "(T || T)", "concat(T, I, C)", "substring(T, I, I)",
        "substr(T, I)", "replace(T, T, T)", "reverse(T)", "CAST(I AS STRING)", "CAST(p AS STRING)", "CAST(M AS STRING)",
        "nvl(T, T)", "CASE WHEN C THEN T END", "md5(T)", "greatest(T, T)", "lpad(T, y, T)", "rpad(T, 5, T)", "lpad(T, 4)",
        "initcap(T)", "concat_ws(T, T, A, T)", "array_join(A, T)", "element_at(A, I)", "left(T, I)", "right(T, I)",
        "repeat(T, 2)", "date_format(M, 'W')", "TRIM(BOTH T FROM T)", "trim(LEADING 'a' FROM T)", "btrim(T)",
    ],
    "D": [
        "date_add(D, I)", "date_sub(D, 3)", "last_day(D)", "add_months(D, 3)", "CAST(m AS DATE)", "(D + 1)", "(D - I)",
        "coalesce(D, D)", "to_date(m)", "CAST('2024-02-29' AS DATE)", "trunc(D, 'U')", "(D + INTERVAL 3 DAYS)",
        "(D - INTERVAL 1 MONTH)", "(D + INTERVAL '-2' YEAR)", "(INTERVAL 1 WEEK + D)", "to_date('2024-03-01')",
        "to_date(concat('0', y, '/02/2024'), 'dd/MM/yyyy')",
    ],
    "M": [
        "(m + INTERVAL 36 HOURS)", "(M - INTERVAL 1 MONTH)", "(m - INTERVAL 1 DAY 2 MINUTES)",
        "(m + INTERVAL 1.5 SECONDS)",
        "to_timestamp_ntz('2024-03-01 02:03:04')",
    ],
    "A": [
        "array(T, T)", "sort_array(A)", "sort_array(A, FALSE)", "split(T, 'a')", "split(T, ' ')", "map_keys(map('k', T))",
        "map_values(map(1, T, 2, T))", "array(T)",
    ],
    "R": [
        "named_struct('n', N, 't', T)", "struct(i, t AS q, D AS d)", "array(N, N)", "map('k', N, 'l', N)", "array(A, A)",
        "sort_array(array(N, N, N))",
    ],
    "C": [
        "(N O N)", "(T O T)", "(D O M)", "(C AND C)", "(C OR C)", "(NOT C)", "(N IN (N, N))", "(N BETWEEN N AND N)",
        "(T IS NULL)", "(N IS NOT NULL)", "(T LIKE 'P')",
        "(T NOT LIKE 'P')", "(N NOT IN (N, N))", "(N NOT BETWEEN N AND N)", "(C IS TRUE)", "(C IS NOT FALSE)", "isnan(N)",
        "startswith(T, T)",
        "endswith(T, T)", "contains(T, T)", "(N IS DISTINCT FROM N)", "isnotnull(T)", "(T ILIKE 'P')",
        "(T NOT ILIKE 'P')", "(T LIKE 'a!%_' ESCAPE '!')", "(T NOT LIKE '%!_%' ESCAPE '!')", "array_contains(A, T)",
        "array_contains(array(N, N), N)", "map_contains_key(map(N, T), N)", "(M O M)",
    ],
}  # fmt: skip
LEAVES = {"N": NUMBERS, "I": INTEGERS, "T": TEXTS, "C": CONDITIONS, "D": DATES, "M": TIMES, "P": PATTERNS, "F": FIELDS}
LEAVES |= {"A": ["array(t, u)", "array('a', NULL)", "split(u, 'b')"], "R": ["struct(i, x)"], "W": FORMATS, "U": UNITS}
LEAVES["O"] = ["=", "<>", "<", "<=", ">", ">=", "<=>"]


def expression(kind: str, depth: int, choose: Callable[[Sequence[str]], str]) -> str:
    """Return a random expression of a kind. Capital letters that stand alone in a template are replaced."""
    if kind not in TEMPLATES or depth == 0 or choose(["leaf", "call", "call"]) == "leaf":
        return choose(LEAVES[kind])
    words = choose(TEMPLATES[kind])
    parts, at = [], 0
    while at < len(words):
        alone = not words[at - 1 : at].isalnum() and not words[at + 1 : at + 2].isalnum()
        is_name = words[at] == "F" and words[at + 1 : at + 2] == "("
        is_kind = is_name or (words[at] in LEAVES and alone)
        parts.append(expression(words[at], depth - 1, choose) if is_kind else words[at])
        at += 1
    return "".join(parts)


Outcome = tuple[str, Any]


def here(text: str) -> Outcome:
    query = QueryText.of(f"SELECT {text} AS v FROM t ORDER BY row")
    try:
        found = local_query(query, {each.start: FrameSource("t", ROWS) for each in query.references})
        return "rows", [_plain(value) for value in shown_values(found.to_arrow().column(0))]
    except UnsupportedFeatureError:
        return "refused", None
    except InvalidInputError as error:
        return "error", str(error)


def on_spark(spark: SparkSession, texts: Sequence[str]) -> list[Outcome]:
    """Return the values of expressions; a batch with an error is cut in half until it is one expression."""
    try:
        items = ", ".join(f"{text} AS v{at}" for at, text in enumerate(texts))
        rows = spark.sql(f"SELECT {items} FROM expressions ORDER BY row").toArrow()
        return [("rows", [_plain(value) for value in shown_values(column)]) for column in rows.columns]
    except PySparkException as error:
        if len(texts) == 1:
            return [("error", str(error))]
        half = len(texts) // 2
        return [*on_spark(spark, texts[:half]), *on_spark(spark, texts[half:])]


def _plain(value: object) -> object:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value


@pytest.mark.spark
def test_random_expressions_give_spark_s_rows_or_are_refused(spark: SparkSession) -> None:
    texts = []
    for seed in seeds(COUNT):
        chance = random.Random(seed)
        texts.append(expression(chance.choice("NTCDMAR"), chance.choice([1, 2, 2, 3]), chance.choice))
    rows = spark.createDataFrame(ROWS).coalesce(1)
    rows.withColumn("m", rows.m.cast("timestamp_ntz")).createOrReplaceTempView("expressions")
    found = {text: here(text) for text in texts}
    asked = [text for text, (kind, _) in found.items() if kind != "refused"]
    expected: dict[str, Outcome] = {}
    for start in range(0, len(asked), 40):
        part = asked[start : start + 40]
        expected.update(zip(part, on_spark(spark, part)))
    different = {
        text: (found[text], expected[text])
        for text in asked
        if found[text][0] == "rows" and found[text] != expected[text]
    }
    assert different == {}
    kinds = [kind for kind, _ in found.values()]
    assert kinds.count("rows") > 0.7 * len(kinds), "few expressions are evaluated, so the test shows little"


#: Expressions of a run; `make fuzz` runs many more.
COUNT = 250
