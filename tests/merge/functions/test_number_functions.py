"""`sum` and `product`: exact integers that never wrap, decimals of their precision, floats from left to right."""

from __future__ import annotations

import math
import struct
from decimal import Context, Decimal
from typing import Any

import pytest

from lakelsm.errors import InvalidInputError
from tests.merge.one_key import DELETE, INSERT, UPDATE_BEFORE, function, merged

SUM, PRODUCT = function("sum"), function("product")
#: Exact for every decimal.
WIDE = Context(prec=50)
BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


def added(options: dict[str, str], column: str, *values: Any) -> Any:
    return merged(column, options, *((INSERT, value) for value in values))


@pytest.mark.parametrize("type_name", BITS)
@pytest.mark.parametrize("name", ["sum", "product"])
def test_an_integer_that_exceeds_its_type_is_refused_and_never_wraps(name: str, type_name: str) -> None:
    largest = 2 ** (BITS[type_name] - 1) - 1
    message = rf"result of aggregate function '{name}' does not fit {type_name} .*Widen the column or correct the rows"
    with pytest.raises(InvalidInputError, match=message):
        added(function(name), type_name, largest, 2)
    with pytest.raises(InvalidInputError, match=message):
        added(function(name), type_name, -largest, {"sum": -2, "product": 2}[name])
    assert added(function(name), type_name, largest, {"sum": 0, "product": 1}[name]) == largest


@pytest.mark.parametrize("type_name", BITS)
def test_the_smallest_integer_is_reached_by_sums_and_retractions_and_has_no_negative(type_name: str) -> None:
    smallest = -(2 ** (BITS[type_name] - 1))
    assert added(SUM, type_name, smallest + 1, -1) == smallest
    assert merged(type_name, SUM, (INSERT, -1), (DELETE, -(smallest + 1))) == smallest
    assert merged(type_name, SUM, (INSERT, -1), (DELETE, smallest)) == -(smallest + 1)
    with pytest.raises(InvalidInputError, match=f"does not fit {type_name}"):
        merged(type_name, SUM, (INSERT, 0), (DELETE, smallest))


def test_a_sum_that_overflows_in_between_is_refused_even_if_the_result_would_fit() -> None:
    with pytest.raises(InvalidInputError, match="does not fit INT"):
        merged("INT", SUM, (INSERT, 2**31 - 1), (INSERT, 1), (DELETE, 1))


def test_nulls_are_ignored_and_a_key_of_nulls_has_no_sum() -> None:
    for options in (SUM, PRODUCT):
        assert added(options, "INT", None, 3, None) == 3
        assert added(options, "INT", None, None) is None
    assert merged("INT", SUM, (INSERT, 3), (DELETE, None)) == 3


def test_a_retraction_is_subtracted_even_from_nothing_but_divides_only_an_existing_product() -> None:
    assert merged("INT", SUM, (DELETE, 3), (INSERT, 1)) == -2
    assert merged("DECIMAL(4, 1)", SUM, (UPDATE_BEFORE, Decimal("3.5")), (INSERT, None)) == Decimal("-3.5")
    assert merged("INT", PRODUCT, (DELETE, 3), (INSERT, 7)) == 7
    assert merged("INT", PRODUCT, (INSERT, 12), (DELETE, 4)) == 3


@pytest.mark.parametrize(("dividend", "divisor", "quotient"), [(7, 2, 3), (-7, 2, -3), (7, -2, -3), (-7, -2, 3)])
def test_integers_are_divided_towards_zero(dividend: int, divisor: int, quotient: int) -> None:
    assert merged("INT", PRODUCT, (INSERT, dividend), (DELETE, divisor)) == quotient


@pytest.mark.parametrize("column", ["DECIMAL(3, 1)", "DECIMAL(18, 1)", "DECIMAL(38, 1)"])
def test_a_decimal_that_exceeds_its_precision_is_null_as_in_paimon_and_starts_again(column: str) -> None:
    digits = int(column[8:].split(",")[0])
    largest = Decimal(10**digits - 1).scaleb(-1, WIDE)
    assert added(SUM, column, largest, Decimal("0.1")) is None
    assert added(SUM, column, largest, Decimal("0.1"), Decimal("2.5")) == Decimal("2.5")
    assert added(SUM, column, largest, Decimal("-0.1")) == WIDE.subtract(largest, Decimal("0.1"))
    assert added(PRODUCT, column, largest, Decimal("1.0")) == largest
    assert added(PRODUCT, column, largest, Decimal("1.1")) is None
    with pytest.raises(InvalidInputError, match="column 'v': a merge made it NULL"):
        added(SUM, f"{column} NOT NULL", largest, Decimal("0.1"))


@pytest.mark.parametrize(
    ("one", "other", "product"), [("0.5", "0.5", "0.3"), ("-0.5", "0.5", "-0.3"), ("0.2", "0.2", "0")]
)
def test_products_of_decimals_are_rounded_half_up(one: str, other: str, product: str) -> None:
    assert added(PRODUCT, "DECIMAL(4, 1)", Decimal(one), Decimal(other)) == Decimal(product)


def test_a_division_without_result_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="result of aggregate function 'product' does not fit INT"):
        merged("INT", PRODUCT, (INSERT, 6), (DELETE, 0))
    for divisor in ("3.00", "0.00"):
        with pytest.raises(InvalidInputError, match=r"does not fit DECIMAL\(9, 2\)"):
            merged("DECIMAL(9, 2)", PRODUCT, (INSERT, Decimal("1.00")), (DELETE, Decimal(divisor)))
    assert merged("DECIMAL(9, 2)", PRODUCT, (INSERT, Decimal("1.00")), (DELETE, Decimal("0.08"))) == Decimal("12.5")


@pytest.mark.parametrize("count", [3, 64, 65, 1000])
def test_floats_are_summed_from_left_to_right(count: int) -> None:
    values = [0.1 * at for at in range(count)]
    expected, single = 0.0, 0.0
    for value in values:
        expected += value
        single = struct.unpack("<f", struct.pack("<f", single + struct.unpack("<f", struct.pack("<f", value))[0]))[0]
    assert added(SUM, "DOUBLE", *values) == expected
    assert added(SUM, "FLOAT", *values) == single


@pytest.mark.parametrize("count", [3, 65, 200])
def test_floats_are_multiplied_from_left_to_right(count: int) -> None:
    values = [1.0 + 0.001 * at for at in range(count)]
    expected = 1.0
    for value in values:
        expected *= value
    assert added(PRODUCT, "DOUBLE", *values) == expected


def test_floats_overflow_to_infinity_and_divide_by_zero_as_java_does() -> None:
    assert added(SUM, "DOUBLE", 1e308, 1e308) == math.inf
    assert added(PRODUCT, "FLOAT", 3e38, -10.0) == -math.inf
    assert merged("DOUBLE", PRODUCT, (INSERT, 1.0), (DELETE, -0.0)) == -math.inf
    assert math.isnan(merged("DOUBLE", PRODUCT, (INSERT, 0.0), (DELETE, 0.0)))
