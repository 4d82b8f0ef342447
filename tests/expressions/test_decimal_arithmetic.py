"""Arithmetic of decimals: random values beside Python's exact decimals, and the types that are refused."""

from __future__ import annotations

import random
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext

import duckdb
import pytest

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.expressions.decimal_arithmetic import decimal_arithmetic
from lakelsm.expressions.duckdb_casts import DuckExpression
from lakelsm.predicate.expression import Expression, arithmetic_type
from lakelsm.types import AtomicType
from tests.chance import seeds
from tests.sql.local.bound import type_of, value_of

_ROUNDS = {"+": Decimal.__add__, "-": Decimal.__sub__, "*": Decimal.__mul__, "/": Decimal.__truediv__}


def _rounded(value: Decimal, scale: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)


def _random(chance: random.Random, max_digits: int) -> tuple[Decimal, AtomicType]:
    precision = chance.randint(1, max_digits)
    scale = chance.randint(0, precision)
    digits = chance.randint(0, 10 ** chance.randint(0, precision) - 1) * chance.choice([1, -1])
    return Decimal(digits).scaleb(-scale), AtomicType("DECIMAL", precision=precision, scale=scale)


def _expected(op: str, one: Decimal, other: Decimal, scale: int) -> Decimal:
    """Return Spark's value: a quotient is rounded to 38 digits after the point first, a product to 39 digits."""
    exact = one % other if op == "%" else _ROUNDS[op](one, other)
    if op == "*":
        exact = Context(prec=39, rounding=ROUND_HALF_UP).plus(exact)
    return _rounded(_rounded(exact, 38) if op == "/" else exact, scale)


def test_random_values_are_exact() -> None:
    connection, evaluated = duckdb.connect(), 0
    with localcontext(Context(prec=100)):
        for seed in seeds(400):
            chance = random.Random(seed)
            (one, left), (other, right) = _random(chance, chance.choice([30, 38])), _random(chance, 24)
            if chance.random() < 0.5:
                (one, left), (other, right) = (other, right), (one, left)
            op = chance.choice("+-*/%")
            kind = arithmetic_type(op, Expression(left), Expression(right))
            texts = [f"CAST('{value:f}' AS {each.sql()})" for value, each in ((one, left), (other, right))]
            found = decimal_arithmetic(op, DuckExpression(left, texts[0]), DuckExpression(right, texts[1]), kind)
            if found is None or (not other and op in "/%"):
                continue
            expected = _expected(op, one, other, kind.scale or 0)
            assert isinstance(found, DuckExpression)
            wide = op in "+-" and max(abs(one), abs(other)) >= 10 ** (38 - max(left.scale or 0, right.scale or 0) - 1)
            if not wide and abs(expected) < Decimal(10) ** ((kind.precision or 0) - (kind.scale or 0)):
                try:
                    assert connection.sql(f"SELECT {found.sql}").fetchall() == [(expected,)], (op, one, other, kind.sql())
                    evaluated += 1
                except duckdb.ConversionException as error:
                    assert "so many digits" in str(error) and op in "/%"
    assert evaluated > 300


def test_quotients_have_spark_s_types_and_are_rounded_twice() -> None:
    texts = ["1.5 / 2.5", "1.0 / 3", "10 / 4.0", "CAST(7 AS DECIMAL(18, 2)) / CAST(3 AS DECIMAL(18, 2))", "1.5 % 0.4"]
    kinds = ["decimal128(8, 6)", "decimal128(7, 6)", "decimal128(9, 6)", "decimal128(38, 20)", "decimal128(1, 1)"]
    assert [type_of(text) for text in texts] == kinds
    assert value_of(texts[3]) == Decimal("2.33333333333333333333")
    # 1 / 952380952380952380952381 is 10.49999999999999999999999956 · 10⁻²⁵: with 38 digits it is 10.5 · 10⁻²⁵.
    twice = value_of("CAST(1 AS DECIMAL(1, 0)) / CAST(952380952380952380952381 AS DECIMAL(24, 0))")
    assert twice == Decimal("11e-25")


def test_zero_divides_nothing_but_null() -> None:
    assert value_of("CAST(NULL AS DECIMAL(3, 1)) / 0.0") is None
    for text in ("1.5 / 0.0", "1.5 % 0", "1.5 DIV 0.00"):
        with pytest.raises(InvalidInputError, match="division by zero"):
            value_of(text)


def test_ratios_of_sums_are_evaluated_while_their_values_have_fewer_digits() -> None:
    total = "CAST({} AS DECIMAL(38, 4))"
    assert value_of(f"100.00 * {total.format(2)} / {total.format(3)}") == Decimal("66.666667")
    assert value_of(f"{total.format(10)} - {total.format('0.0001')}") == Decimal("9.9999")
    with pytest.raises(UnsupportedFeatureError, match=r"not evaluated in this process\. Evaluate it on Spark\."):
        value_of(f"100.00 * {total.format(2)} / {total.format('9' * 34)}")
    with pytest.raises(UnsupportedFeatureError, match=r"not evaluated in this process\. Evaluate it on Spark\."):
        value_of(f"{total.format('9' * 30)} - CAST(0.1 AS DECIMAL(17, 15))")


def test_values_that_need_more_digits_are_refused_by_name() -> None:
    one = "CAST(1 AS DECIMAL(38, 10))"
    for text in (f"{one} * {one}", f"{one} + CAST(0 AS DECIMAL(38, 38))"):
        with pytest.raises(UnsupportedFeatureError, match="engine='spark'"):
            value_of(text)
