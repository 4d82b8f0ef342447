"""Functions by their names in Spark; `test_operators_beside_spark` compares random calls."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from lakelsm.errors import UnsupportedFeatureError
from tests.sql.local.bound import type_of, value_of


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("upper('abc')", "ABC"),
        ("length('a\\u00df')", 2),
        ("octet_length('\\u00df')", 2),
        ("trim(' a\t ')", "a\t"),
        ("replace('abc', '', 'x')", "abc"),
        ("replace('abc', '', NULL)", None),
        ("reverse('ab')", "ba"),
        ("dayofweek(DATE '2024-01-07')", 1),
        ("weekday(DATE '2024-01-07')", 6),
        ("weekofyear(DATE '2024-12-31')", 1),
        ("add_months(DATE '2024-01-31', 1)", date(2024, 2, 29)),
        ("datediff(DATE '2024-03-01', DATE '2024-02-28')", 2),
        ("round(2.345, 2)", Decimal("2.35")),
        ("round(2.675D, 2)", 2.68),
        ("round(-0.5D)", -1.0),
        ("round(1e300, 3)", 1e300),
        ("CAST(round(CAST(-9.95 AS FLOAT), 1) AS DOUBLE) > -9.95", True),
        ("floor(-1.5D)", -2),
        ("ceil(CAST(1.5 AS FLOAT))", 2),
        ("greatest(1, NULL, 2.5)", Decimal("2.5")),
        ("sign(-0.5)", -1.0),
        ("date_add(CAST(NULL AS DATE), 1)", None),
    ],
)
def test_scalar_functions(expression: str, value: object) -> None:
    assert value_of(expression) == value


def test_results_have_the_types_of_spark() -> None:
    texts = ["length('a')", "year(DATE '2024-01-01')", "ceil(1.5D)", "sqrt(4)", "abs(-1S)", "datediff(NULL, NULL)"]
    assert [type_of(text) for text in texts] == ["int32", "int32", "int64", "double", "int16", "int32"]


@pytest.mark.parametrize(
    "expression", ["soundex('x')", "upper(1)", "length('a', 'b')", "round(1.5D, -1)", "date_add('2024-01-01', 1)"]
)
def test_other_functions_and_types_are_refused_by_name(expression: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="engine='spark'"):
        value_of(expression)
