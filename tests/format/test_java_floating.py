"""Floating-point numbers as text: the output of Double.toString and Float.toString in JDK 17."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.format.java_floating import double_text, float_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5e-324, "4.9E-324"),
        (2e-323, "2.0E-323"),
        (2.2250738585072014e-308, "2.2250738585072014E-308"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (2e-44, "2.0E-44"),
        (-9.999e-4, "-9.999E-4"),
        (0.001, "0.001"),
        (0.002, "0.002"),
        (0.1, "0.1"),
        (1 / 3, "0.3333333333333333"),
        (100.0, "100.0"),
        (9999999.999, "9999999.999"),
        (1e7, "1.0E7"),
        (123456789.0, "1.23456789E8"),
        (2.0**53, "9.007199254740992E15"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        # The digits of JDK 17, where fewer digits are enough.
        (9.859999999999999e21, "9.859999999999999E21"),  # 9.86E21 of JDK 19
        (5e22, "4.9999999999999996E22"),
        (2.0**62, "4.6116860184273879E18"),
        (6.8958874632826544e16, "6.8958874632826544E16"),
    ],
)
def test_a_double_has_javas_text(value: float, text: str) -> None:
    assert double_text(value) == text


@pytest.mark.parametrize(
    ("bits", "text"),
    [
        ("00000001", "1.4E-45"),
        ("00000002", "2.8E-45"),
        ("00800000", "1.17549435E-38"),
        ("7f7fffff", "3.4028235E38"),
        ("3dcccccd", "0.1"),
        ("4aeff945", "7863458.5"),
        ("4b800000", "1.6777216E7"),
        ("4f000000", "2.14748365E9"),
        ("501502f9", "1.0E10"),
        ("52e4a3c3", "4.91000005E11"),
        ("533fda3a", "8.2399999E11"),
        # Here Java's 32-bit bound overflows, and Java stops one digit early.
        ("6a15a693", "4.5229142E25"),
        ("ea40d7c3", "-5.8283165E25"),
        ("80000000", "-0.0"),
        ("7f800000", "Infinity"),
    ],
)
def test_a_float_has_javas_text(bits: str, text: str) -> None:
    assert float_text(struct.unpack(">f", bytes.fromhex(bits))[0]) == text


@given(st.floats(allow_nan=False))
def test_the_text_of_a_double_is_that_double(value: float) -> None:
    assert struct.pack("d", float(double_text(value).replace("Infinity", "inf"))) == struct.pack("d", value)


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_the_text_of_a_float_is_that_float(value: float) -> None:
    assert struct.pack("f", float(float_text(value))) == struct.pack("f", value)
