"""Operators with Spark's types and errors; random expressions are compared with Spark."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from tests.sql.local.bound import table_of, type_of, value_of


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("7 / 2", 3.5),
        ("-7 % 3", -1),
        ("-7 DIV 2", -3),
        ("1.5 * 1.5", Decimal("2.25")),
        ("NULL = 1", None),
        ("NULL <=> NULL", True),
        ("1 IN (2, NULL)", None),
        ("1 IN ('2', '1')", True),
        ("1 = '1' AND 1.5 > '1.25' AND '7' BETWEEN 1 AND 8", True),
        ("6 & 3", 2),
        ("6 | CAST(3 AS TINYINT)", 7),
        ("6 ^ 3L", 5),
        ("~0", -1),
        ("NULL AND FALSE", False),
        ("'a_c' LIKE 'a\\\\_c'", True),
        ("'abc' LIKE 'a\\\\_c'", False),
        ("'abc' NOT LIKE 'a%'", False),
        ("'abc' NOT LIKE 'b%'", True),
        ("NULL NOT LIKE 'b%'", None),
        ("NOT 'abc' NOT LIKE 'b%'", False),
        ("1 NOT IN (1, 2)", False),
        ("1 NOT BETWEEN 2 AND 3", True),
        ("2 BETWEEN 1 AND 3", True),
        ("'a%c' LIKE 'a!%c' ESCAPE '!'", True),
        ("'a!c' NOT LIKE 'a!!_' ESCAPE '!'", False),
        ("'a\\\\b' LIKE 'a/_b' ESCAPE '/'", False),
        ("'ABCÉ' ILIKE 'a%cé'", True),
        ("'ABC' NOT ILIKE 'a%'", False),
        ("'a' LIKE CAST(NULL AS STRING)", None),
        ("NULL / 0", None),
        ("7.5 DIV 2", 3),
        ("-7.5 % 2", Decimal("-1.5")),
        ("1.5 / 2.5", Decimal("0.600000")),
        ("TRIM(BOTH 'xy' FROM 'xyaxy')", "a"),
        ("trim(LEADING FROM ' a ')", "a "),
        ("DATE '2024-01-31' + INTERVAL 1 MONTH", date(2024, 2, 29)),
        ("INTERVAL '2' DAYS + DATE '2024-01-31'", date(2024, 2, 2)),
        ("map('a', 1)['b']", None),
        ("NULL IS NOT TRUE", True),
        ("CASE 3 WHEN 1 THEN 'a' ELSE 'b' END", "b"),
        ("coalesce(NULL, 1, 2.5)", Decimal("1.0")),
        ("substring('hello', -3, 2)", "ll"),
        ("concat('a', 1, TRUE)", "a1true"),
    ],
)
def test_operators(expression: str, value: object) -> None:
    assert value_of(expression) == value


@pytest.mark.parametrize("pattern", ["a!bc", "a!"])
def test_an_escape_that_precedes_another_character_is_an_error(pattern: str) -> None:
    with pytest.raises(InvalidInputError, match="precedes neither '%', '_' nor itself"):
        value_of(f"'abc' LIKE '{pattern}' ESCAPE '!'")


def test_types_are_spark_s() -> None:
    texts = ["1 + 1L", "1 / 1", "1.5 + 1", "1S * 2S", "1.50 * 2.0", "1 + 1e0", "7 DIV 2", "-1S"]
    assert [type_of(text) for text in texts] == [
        "int64", "double", "decimal128(3, 1)", "int16", "decimal128(6, 3)", "double", "int64", "int16"
    ]  # fmt: skip


@pytest.mark.parametrize("expression", ["1 / 0", "1 % 0", "1 DIV 0", "2147483647 + 1", "-(CAST(-128 AS TINYINT))"])
def test_overflow_and_division_by_zero_are_errors(expression: str) -> None:
    with pytest.raises(InvalidInputError, match="SQL: "):
        value_of(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "CAST(1 AS DECIMAL(38, 10)) * CAST(3 AS DECIMAL(38, 10))",
        "'a' + 1",
        "'a' = X'61'",
        "'a' RLIKE '(?i)a'",
        "DATE '2024-01-01' - DATE '2023-01-01'",
        "DATE '2024-01-01' + INTERVAL 1 QUARTER",
        "INTERVAL 1 DAY",
        "'a' LIKE ANY ('a', 'b')",
    ],
)
def test_what_differs_is_refused_by_name(expression: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="engine='spark'"):
        value_of(expression)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("'aBc' ILIKE 'A%C'", True),
        ("'aBc' ILIKE 'ab'", False),
        ("'a%c' ILIKE 'A\\\\%C'", True),
        ("NULL ILIKE 'a'", None),
        ("'aBc' NOT ILIKE 'A%'", False),
        ("DATE '2024-01-05' = '2024-01-05'", True),
        ("'2024-01-05' < DATE '2024-01-06'", True),
        ("DATE '2024-01-05' IN ('2024-01-04', '2024-01-05')", True),
        ("DATE '2024-01-05' BETWEEN '2024-01-01' AND '2024-01-04'", False),
        ("TIMESTAMP_NTZ '2024-01-05 01:00:00' > '2024-01-05'", True),
    ],
)
def test_texts_beside_patterns_and_times(expression: str, expected: bool | None) -> None:
    assert value_of(expression) is expected


def test_a_text_that_is_no_date_is_an_error() -> None:
    with pytest.raises(InvalidInputError, match="cast to DATE"):
        value_of("DATE '2024-01-05' = 'tomorrow'")


@pytest.mark.parametrize("condition", ["i + 1 > 0", "-y = 1", "1 - y BETWEEN 0 AND 5", "i * 2 IN (4)", "NOT i + 1 <=> 5"])
def test_an_overflow_in_a_comparison_is_an_error(condition: str) -> None:
    rows = pa.table({"i": pa.array([2147483647], pa.int32()), "y": pa.array([-128], pa.int8())})
    with pytest.raises(InvalidInputError, match="overflow: "):
        table_of(f"SELECT CAST({condition.replace('1 - y', '1Y - y')} AS STRING) FROM t", rows)
