"""Types of expressions, by the rules of Spark's ANSI mode."""

from __future__ import annotations

import pytest

from lakelsm.predicate.expression import (
    INT,
    ColumnValue,
    EvaluatedValue,
    Expression,
    Value,
    arithmetic_type,
    columns_of,
    common_type,
    reduced,
)
from lakelsm.types import parse_type
from tests.predicate.doubled import Doubled


def column(text: str) -> Expression:
    return ColumnValue(parse_type(text), "c")


@pytest.mark.parametrize(
    ("op", "left", "right", "expected"),
    [
        ("+", "TINYINT", "TINYINT", "TINYINT"),
        ("-", "SMALLINT", "BIGINT", "BIGINT"),
        ("/", "INT", "INT", "DOUBLE"),
        ("/", "FLOAT", "FLOAT", "DOUBLE"),
        ("*", "FLOAT", "FLOAT", "FLOAT"),
        ("*", "FLOAT", "TINYINT", "DOUBLE"),
        ("+", "DECIMAL(5, 2)", "DOUBLE", "DOUBLE"),
        ("+", "DECIMAL(5, 2)", "INT", "DECIMAL(13, 2)"),
        ("*", "DECIMAL(5, 2)", "DECIMAL(4, 1)", "DECIMAL(10, 3)"),
        ("/", "DECIMAL(10, 2)", "DECIMAL(10, 2)", "DECIMAL(23, 13)"),
        ("%", "DECIMAL(5, 2)", "DECIMAL(10, 4)", "DECIMAL(7, 4)"),
        ("*", "DECIMAL(38, 10)", "DECIMAL(38, 10)", "DECIMAL(38, 6)"),
        ("+", "DECIMAL(38, 10)", "DECIMAL(38, 0)", "DECIMAL(38, 6)"),
        ("*", "DECIMAL(38, 38)", "DECIMAL(38, 38)", "DECIMAL(38, 37)"),
    ],
)
def test_arithmetic_has_the_type_of_both_sides(op: str, left: str, right: str, expected: str) -> None:
    assert arithmetic_type(op, column(left), column(right)) == parse_type(expected)


def test_a_literal_next_to_a_decimal_needs_only_its_own_digits() -> None:
    for number, kind, expected in ((100, "INT", "DECIMAL(6, 2)"), (7, "TINYINT", "DECIMAL(6, 2)")):
        assert arithmetic_type("+", column("DECIMAL(4, 2)"), Value(parse_type(kind), number)) == parse_type(expected)


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["INT", "BIGINT"], "BIGINT"),
        (["INT", "DECIMAL(2, 1)"], "DECIMAL(11, 1)"),
        (["DECIMAL(38, 10)", "DECIMAL(30, 20)"], "DECIMAL(38, 10)"),
        (["DECIMAL(38, 0)", "DECIMAL(38, 38)"], "DECIMAL(38, 0)"),
        (["FLOAT", "DECIMAL(2, 1)"], "DOUBLE"),
        (["DATE", "TIMESTAMP(6)"], "TIMESTAMP(6)"),
        (["TIMESTAMP(6)", "TIMESTAMP(9)"], "TIMESTAMP(9)"),
        (["ARRAY<INT>", "ARRAY<INT>"], "ARRAY<INT>"),
        (["STRING", "INT"], None),
        (["TIMESTAMP(6)", "TIMESTAMP(6) WITH LOCAL TIME ZONE"], None),
    ],
)
def test_branches_have_one_type(kinds: list[str], expected: str | None) -> None:
    found = common_type(reduced(parse_type(kind)) for kind in kinds)
    assert found == (None if expected is None else reduced(parse_type(expected)))


def test_the_columns_of_an_evaluated_value() -> None:
    assert columns_of(EvaluatedValue(INT, Doubled("x", 2))) == {"x"}
