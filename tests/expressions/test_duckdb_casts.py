"""Casts as Spark's ANSI mode has them; `test_operators_beside_spark` compares random ones."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from tests.sql.local.bound import type_of, value_of


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("CAST(-1.9D AS INT)", -1),
        ("CAST(1.95 AS DECIMAL(3, 1))", Decimal("2.0")),
        ("CAST(-0.125D AS DECIMAL(3, 2))", Decimal("-0.13")),
        ("CAST(CAST(0.1F AS FLOAT) AS DECIMAL(12, 11))", Decimal("0.10000000149")),
        ("CAST(CAST('12345678901234567.123' AS DECIMAL(30, 3)) AS DOUBLE)", 12345678901234567.123),
        ("CAST(' 12\t' AS BIGINT)", 12),
        ("CAST('1e3' AS DOUBLE)", 1000.0),
        ("CAST(TRUE AS INT)", 1),
        ("CAST(0.0D AS BOOLEAN)", False),
        ("CAST(1.50 AS STRING)", "1.50"),
        ("CAST(DATE '2024-02-29' AS STRING)", "2024-02-29"),
        ("CAST(TIMESTAMP_NTZ '2024-01-01 10:00:00.120' AS STRING)", "2024-01-01 10:00:00.12"),
        ("CAST('2024-02-29' AS DATE)", date(2024, 2, 29)),
        ("CAST('2024-02-29T10:30:00' AS TIMESTAMP_NTZ)", datetime(2024, 2, 29, 10, 30)),
        ("CAST(NULL AS INT)", None),
        ("CAST(' -Infinity' AS DOUBLE)", float("-inf")),
        ("CAST('1e2 ' AS DECIMAL(5, 1))", Decimal("100.0")),
        ("CAST(' Yes' AS BOOLEAN)", True),
        ("CAST('n' AS BOOLEAN)", False),
        ("CAST(' 2024-2-9 10:30' AS DATE)", date(2024, 2, 9)),
        ("CAST('2024-02-09 10:30' AS TIMESTAMP_NTZ)", datetime(2024, 2, 9, 10, 30)),
        # A DOUBLE has the digits of its text, and a FLOAT those of its DOUBLE.
        ("CAST(1.005D AS DECIMAL(5, 2))", Decimal("1.01")),
        ("CAST(-1234567890.125D AS DECIMAL(18, 2))", Decimal("-1234567890.13")),
        ("CAST(CAST('1.005' AS FLOAT) AS DECIMAL(5, 2))", Decimal("1.00")),
        ("CAST(CAST('NaN' AS DOUBLE) AS DECIMAL(5, 2))", None),
        ("CAST(12345678901234567890.123456789012345678 AS DOUBLE)", 12345678901234567890.123456789012345678),
    ],
)
def test_casts(expression: str, value: object) -> None:
    assert value_of(expression) == value


def test_a_literal_has_the_type_that_spark_gives_it() -> None:
    texts = ["1", "3000000000", "1.50", "1e0", "'x'", "1L", "1S", "1BD", "X'00'", "DATE '2024-01-01'", "NULL"]
    assert [type_of(text) for text in texts] == [
        "int32", "int64", "decimal128(3, 2)", "double", "string", "int64", "int16", "decimal128(1, 0)", "binary",
        "date32[day]", "null",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "expression",
    ["CAST('1.5' AS INT)", "CAST('x' AS DATE)", "CAST(300 AS TINYINT)", "CAST('+nan' AS DOUBLE)",
     "CAST(1e9 AS DECIMAL(5, 2))", "CAST('2024-01-01 24:00:00' AS TIMESTAMP_NTZ)", "CAST('2024-02-30' AS DATE)"],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_an_error(expression: str) -> None:
    with pytest.raises(InvalidInputError, match="SQL: "):
        value_of(expression)


def test_a_number_that_is_cast_has_all_digits_of_its_type_in_arithmetic() -> None:
    assert [type_of(f"1.50 - {text}") for text in ("2", "CAST(2 AS INT)")] == ["decimal128(4, 2)", "decimal128(13, 2)"]


@pytest.mark.parametrize(
    "expression",
    ["CAST(1.5D AS DECIMAL(16, 10))", "CAST(1.5D AS STRING)", "CAST(array(1) AS STRING)", "CAST(1.5D AS DATE)"],
)
def test_a_cast_that_differs_is_refused_by_name(expression: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="engine='spark'"):
        value_of(expression)


def test_a_double_with_more_digits_than_java_prints_alike_is_refused_by_its_row() -> None:
    with pytest.raises(UnsupportedFeatureError, match="more than 15 digits"):
        value_of("CAST(12345678901234.5D AS DECIMAL(18, 2))")
