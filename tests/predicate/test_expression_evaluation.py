"""Values of expressions for rows; `test_expressions_against_spark` compares thousands of them with Spark."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.predicate.expression_evaluation import arrow_type, evaluated
from lakelsm.predicate.parser import parse_expression
from lakelsm.types import parse_columns, to_arrow

FIELDS = parse_columns("n INT, m INT, v STRING, t TIME, s TIMESTAMP(9), a ARRAY<INT>, d DECIMAL(5, 2)")
ROWS = pa.RecordBatch.from_arrays(
    [
        pa.array([6, 7, None], pa.int32()),
        pa.array([2, 0, 0], pa.int32()),
        pa.array(["a", "it's", None]),
        pa.array([0, 86_399_999, None], pa.time32("ms")),
        pa.array([b"\x80" + bytes(9), b"\x80" + bytes(8) + b"\x07", None], pa.binary(10)),
        pa.array([[1], [], None], to_arrow(FIELDS[5].type)),
        pa.array([Decimal("1.25"), Decimal("-0.05"), None], pa.decimal128(5, 2)),
    ],
    names=[field.name for field in FIELDS],
)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("CASE WHEN m <> 0 THEN n / m ELSE -1 END", [3.0, -1.0, -1.0]),
        ("CASE m WHEN 2 THEN 'two' END", ["two", None, None]),
        ("m <> 0 AND n / m > 1", [True, False, False]),
        ("m = 0 OR n % m = 0", [True, True, True]),
        ("coalesce(n, 1 / (m - 2))", [6.0, 7.0, -0.5]),
        ("nullif(v, 'it''s')", ["a", None, None]),
        ("v || ':' || d", ["a:1.25", "it's:-0.05", None]),
        ("t + 1", [1, 86_400_000, None]),
        ("if(n = 7, s, NULL)", [None, b"\x80" + bytes(8) + b"\x07", None]),
        ("if(n > 6, a, NULL)", [None, [], None]),
        ("NULL", [None, None, None]),
        ("d * d", [Decimal("1.5625"), Decimal("0.0025"), None]),
    ],
)
def test_parts_are_evaluated_for_the_rows_that_need_them(sql: str, expected: list[Any]) -> None:
    expression = parse_expression(sql, FIELDS)
    found = evaluated(expression, ROWS)
    assert found.to_pylist() == expected and found.type == arrow_type(expression.type)
    assert evaluated(expression, ROWS.slice(1, 1)).to_pylist() == expected[1:2]
    assert evaluated(expression, ROWS.slice(0, 0)).to_pylist() == []


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("n / m", "the divisor of '/' is zero"),
        ("n % m", "the divisor of '%' is zero"),
        ("n * 2147483647", r"'\*' overflows INT"),
        ("CAST(n * 100 AS TINYINT)", "a value of INT in a matching row does not fit TINYINT"),
        ("CAST(d AS DECIMAL(2, 2))", "does not fit DECIMAL"),
        ("-CAST(n - 2147483647 - 7 AS INT)", "overflows INT"),
    ],
)
def test_a_row_that_fails_raises_an_error(sql: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        evaluated(parse_expression(sql, FIELDS), ROWS)
