"""Aggregate and window functions by their names in Spark; `test_queries_beside_spark` compares random queries."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from tests.sql.local.bound import table_of, value_of

ROWS = pa.table(
    {
        "n": pa.array([1, 2, None, 4], pa.int32()),
        "x": pa.array([1.5, None, 2.5, 4.0]),
        "w": pa.array([Decimal("1.00"), None, Decimal("2.50"), Decimal("4.00")], pa.decimal128(38, 2)),
        "s": pa.array(["a", None, "c", "d"]),
    }
)
INFINITE = pa.table({"x": [1.0, math.inf], "n": pa.array([1, 2], pa.int32())})


def test_aggregates_of_decimals_and_integers_have_spark_s_types_and_overflow() -> None:
    rows = pa.table({"p": pa.array([Decimal("1.50")], pa.decimal128(10, 2)), "l": [2**63 - 1]})
    found = table_of("SELECT sum(p), sum(CAST(1 AS TINYINT)), avg(l), count(*) FROM t", rows)
    assert [str(kind) for kind in found.schema.types] == ["decimal128(20, 2)", "int64", "double", "int64"]
    with pytest.raises(InvalidInputError, match="SQL: "):
        table_of("SELECT sum(l) FROM (SELECT l FROM t UNION ALL SELECT l FROM t)", rows)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("stddev(n)", math.sqrt(7 / 3)),
        ("var_samp(n)", 7 / 3),
        ("var_pop(n)", 14 / 9),
        ("stddev_pop(w)", math.sqrt(1.5)),
        ("std(DISTINCT CASE WHEN n > 1 THEN 1 END)", None),
        ("median(x)", 2.5),
        ("percentile(n, 0.25)", 1.5),
        ("percentile(n, 1)", 4.0),
        ("max_by(s, x)", "d"),
        ("max_by(s, n)", "d"),
        ("min_by(x, coalesce(n, 0))", 2.5),
        ("max_by(s, CASE WHEN n = 2 THEN 1 END)", None),
        ("bit_and(n)", 0),
        ("bit_or(n)", 7),
        ("bit_xor(n)", 7),
        ("any_value(n) IN (1, 2, 4) OR any_value(n) IS NULL", True),
        ("sum(w)", Decimal("7.50")),
        ("avg(w)", Decimal("2.500000")),
        ("sum(w * 2)", Decimal("15.00")),
    ],
)
def test_aggregates(expression: str, value: object) -> None:
    found = value_of(expression, ROWS)
    assert found == (pytest.approx(value) if isinstance(value, float) else value)


def test_sums_of_wide_decimals_have_38_digits_and_overflow() -> None:
    rows = pa.table({"w": pa.array([Decimal("9" * 38), Decimal(1)], pa.decimal128(38, 0))})
    found = table_of("SELECT sum(w) FROM t WHERE w < 2", rows)
    assert (found.to_pydict(), str(found.schema.types[0])) == ({"SUM(w)": [1]}, "decimal128(38, 0)")
    with pytest.raises(InvalidInputError, match="SQL: "):
        value_of("sum(w)", rows)


def test_deviations_of_numbers_that_are_not_finite_are_nan_and_percentiles_are_refused() -> None:
    assert math.isnan(value_of("stddev(x)", INFINITE)) and math.isnan(value_of("var_pop(x)", INFINITE))
    assert value_of("stddev(x) FILTER (WHERE n = 2)", INFINITE) is None
    with pytest.raises(UnsupportedFeatureError, match=r"evaluated in this process\. Evaluate it on Spark"):
        value_of("median(x)", INFINITE)


def test_windows_with_a_number() -> None:
    def values(call: str) -> list[Any]:
        found = table_of(f"SELECT {call} OVER (ORDER BY coalesce(n, 9)) AS v, n FROM t ORDER BY coalesce(n, 9)", ROWS)
        return list(found.column("v").to_pylist())

    assert values("ntile(3)") == [1, 1, 2, 3]
    assert values("nth_value(s, 2)") == [None, None, None, None]
    assert values("nth_value(n, 2)") == [None, 2, 2, 2]
    assert values("stddev_pop(n)")[:2] == [0.0, 0.5]


@pytest.mark.parametrize(
    "expression",
    [
        "median(s)", "percentile(n, 2)", "percentile(n, x)", "max_by(s)", "bit_and(x)", "stddev(s)", "first(n)",
        "corr(n, x)",
    ],
)
def test_other_aggregates_and_types_are_refused_by_name(expression: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="engine='spark'"):
        value_of(expression, ROWS)
