"""Decimals of any number of digits are exact, and are rounded half up."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal, localcontext

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.predicate.exact_numbers import computed, decimal_texts, negated, number_cast
from lakelsm.types import AtomicType, parse_type

_unscaled = st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(-1000, 1000)


def decimals(numbers: list[int | None], scale: int) -> pa.Array:
    with localcontext(prec=80):
        values = [None if number is None else Decimal(number).scaleb(-scale) for number in numbers]
    return pa.array(values, pa.decimal128(38, scale))


@given(st.lists(st.tuples(_unscaled, _unscaled), max_size=5), st.sampled_from("+-*/%"), st.integers(0, 38))
def test_operations_equal_those_of_pythons_decimals(pairs: list[tuple[int, int]], op: str, scale: int) -> None:
    """Results equal those of Python's Decimal at 6 digits after the point; more than 38 digits overflow."""
    result = AtomicType("DECIMAL", precision=38, scale=6)
    for one, other in pairs:
        if op in "/%" and other == 0:
            continue
        with localcontext(prec=160, rounding=ROUND_HALF_UP):
            left, right = Decimal(one).scaleb(-scale), Decimal(other).scaleb(-scale)
            exact = {"+": left + right, "-": left - right, "*": left * right}.get(op)
            if exact is None:
                exact = left / right if op == "/" else left % right
            if op in "*/":  # Like Spark, round to 38 digits first.
                exact = exact.quantize(Decimal(1).scaleb(min(0, exact.adjusted() - 37) if op == "*" else -38))
            wanted = exact.quantize(Decimal("0.000001"))
        sides = decimals([one], scale), decimals([other], scale)
        if abs(wanted) >= Decimal(10) ** 32:
            with pytest.raises(Exception, match="overflows"):
                computed(op, *sides, result)
        else:
            assert computed(op, *sides, result).to_pylist() == [wanted]


def test_null_and_slices_are_supported() -> None:
    values = decimals([None, 150, -5, None], 2).slice(1)
    assert negated(values, parse_type("DECIMAL(38, 2)")).to_pylist() == [Decimal("-1.50"), Decimal("0.05"), None]
    assert decimal_texts(values).to_pylist() == ["1.50", "-0.05", None]
    assert decimal_texts(decimals([123, -7], 0)).to_pylist() == ["123", "-7"]
    assert decimal_texts(decimals([], 3)).to_pylist() == []


@pytest.mark.parametrize(
    ("values", "target", "expected"),
    [
        (pa.array([1.005, -1.005, 2.5e-9, 1e22, None]), "DECIMAL(5, 2)", "1.01 -1.01 0 - -"),
        (pa.array([float("nan"), float("inf")]), "DECIMAL(5, 2)", "- -"),
        (pa.array([0.1], pa.float32()), "DECIMAL(20, 18)", "0.100000001490116120"),
        (pa.array([1e22, 5e-324]), "DECIMAL(38, 2)", "1e22 0"),
        (pa.array([1.9, -1.9, 2147483647.5, 2147483648.0, float("nan")]), "INT", "1 -1 2147483647 - -"),
        (pa.array([2.0**63, -(2.0**63), 2.0**64]), "BIGINT", "9223372036854775807 -9223372036854775808 -"),
        (decimals([199, -199, 12800], 2), "TINYINT", "1 -1 -"),
        (pa.array([127, 128, -128, None], pa.int64()), "TINYINT", "127 - -128 -"),
        (pa.array([9007199254740993]), "DOUBLE", "9007199254740992"),
        (decimals([1, 30000000000000004], 17), "DOUBLE", "1e-17 0.30000000000000004"),
        (pa.array([True, False, None]), "INT", "1 0 -"),
    ],
)
def test_a_cast_rounds_or_does_not_fit(values: pa.Array, target: str, expected: str) -> None:
    cast = number_cast(values, parse_type(target)).to_pylist()
    found = ["-" if value is None else Decimal(str(value)) for value in cast]
    assert found == ["-" if text == "-" else Decimal(text) for text in expected.split()]
