"""Operators with Spark's types and errors; random expressions are compared with Spark."""

from __future__ import annotations

from decimal import Decimal

import pytest

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from tests.sql.local.bound import type_of, value_of


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
        ("NULL IS NOT TRUE", True),
        ("CASE 3 WHEN 1 THEN 'a' ELSE 'b' END", "b"),
        ("coalesce(NULL, 1, 2.5)", Decimal("1.0")),
        ("substring('hello', -3, 2)", "ll"),
        ("concat('a', 1, TRUE)", "a1true"),
    ],
)
def test_operators(expression: str, value: object) -> None:
    assert value_of(expression) == value


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
    "expression", ["1.5 / 2.5", "'a' + 1", "'a' = 1", "'a' RLIKE 'a'", "DATE '2024-01-01' + INTERVAL 1 DAY"]
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
    with pytest.raises(UnsupportedFeatureError, match="ILIKE"):
        value_of("'x' ILIKE 'é'")
