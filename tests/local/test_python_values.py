"""Python values become columns if each of them fits, also values of different classes."""

from __future__ import annotations

import collections
import datetime as dt
import enum
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.local.arrow_casts import UnfitValueError
from lakelsm.local.python_values import column_of
from lakelsm.types import parse_type, to_arrow
from lakelsm.types.nano_timestamps import timestamp_texts
from tests.safe_casts import stored_value

DAY, NOON = dt.date(2026, 1, 31), dt.datetime(2026, 1, 31, 12)
UTC = dt.timezone.utc
TOKYO = dt.timezone(dt.timedelta(hours=9))


class Number(enum.IntEnum):
    SEVEN = 7


class Unshown:
    def __repr__(self) -> str:
        raise RuntimeError


#: A type, values that fit it together, and the stored values.
TAKEN: list[tuple[str, list[Any], list[Any]]] = [
    ("INT", [7, 7.0, Decimal("7.0"), np.int8(7), np.float32(7), Number.SEVEN, None, pd.NA, pd.NaT], [7] * 6 + [None] * 3),
    ("BIGINT", [2**63 - 1, np.uint64(5), None], [2**63 - 1, 5, None]),
    ("DECIMAL(38, 0)", [2**64, -1, np.uint64(2**63)], [Decimal(2**64), Decimal(-1), Decimal(2**63)]),
    ("DECIMAL(10, 2)", [1.5, 19.99, Decimal("1.500"), 3, np.float32(0.1)],
     [Decimal(text) for text in ("1.5", "19.99", "1.5", "3", "0.1")]),
    ("DOUBLE", [1, 0.1, Decimal("0.1"), Decimal("1e-40"), Decimal("1e30"), math.inf],
     [1.0, 0.1, 0.1, 1e-40, 1e30, math.inf]),
    ("FLOAT", [0.5, 0.1, 3, np.float16(0.5)], [0.5, float(np.float32(0.1)), 3.0, 0.5]),
    ("BOOLEAN", [True, np.bool_(False), None], [True, False, None]),
    ("STRING", ["é", np.str_("a"), ""], ["é", "a", ""]),
    ("BYTES", [b"a", bytearray(b"b"), memoryview(b"c")], [b"a", b"b", b"c"]),
    ("DATE", [DAY, "2026-01-31", dt.datetime(2026, 1, 31), np.datetime64("2026-01-31"), pd.Timestamp(DAY)], [DAY] * 5),
    ("TIME(3)", [dt.time(12), "12:00", 43_200_000], [dt.time(12)] * 3),
    ("TIMESTAMP(3)", [NOON, "2026-01-31 12:00", pd.Timestamp(NOON), np.datetime64(NOON, "s"), np.datetime64("NaT")],
     [NOON] * 4 + [None]),
    ("TIMESTAMP(6)", [DAY, NOON], [dt.datetime(2026, 1, 31), NOON]),
    ("TIMESTAMP_LTZ(6)", [NOON.replace(tzinfo=TOKYO), "2026-01-31 03:00Z", pd.Timestamp("2026-01-31 03:00", tz="UTC")],
     [dt.datetime(2026, 1, 31, 3, tzinfo=UTC)] * 3),
    ("ARRAY<INT>", [[1, None], (2.0,), np.array([3]), [], None], [[1, None], [2], [3], [], None]),
    ("ARRAY<ARRAY<DATE>>", [[["2026-01-31", DAY], None]], [[[DAY, DAY], None]]),
    ("MAP<STRING, DECIMAL(3, 1)>", [{"a": 1.5, "b": None}, [("c", 2)], None, {}],
     [[("a", Decimal("1.5")), ("b", None)], [("c", Decimal("2.0"))], None, []]),
    ("MULTISET<STRING>", [collections.Counter("aab")], [[("a", 2), ("b", 1)]]),
    ("ROW<x INT, y ROW<d DATE>>", [{"X": 1, "y": {"d": "2026-01-31"}}, {"y": None}, None],
     [{"x": 1, "y": {"d": DAY}}, {"x": None, "y": None}, None]),
    ("INT", [], []),
    ("ARRAY<INT>", [None], [None]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values", "stored"), TAKEN)
def test_values_of_all_classes_are_stored_in_the_columns_type(
    kind: str, values: list[Any], stored: list[Any]
) -> None:
    found = column_of(values, parse_type(kind))
    found.validate(full=True)
    assert found.type == to_arrow(parse_type(kind)) and found.to_pylist() == stored
    assert [value for part in values for value in column_of([part], parse_type(kind)).to_pylist()] == stored


#: A type, values of which only the last does not fit, and the text of the error.
REFUSED: list[tuple[str, list[Any], str]] = [
    ("INT", [1, None, 2**31], "2147483648 does not fit INT"),
    ("INT", [1, 10**40], f"{10**40} does not fit INT"),
    ("INT", [1, 1.5], "1.5 does not fit INT"),
    ("INT", [1, math.nan], "nan does not fit INT"),
    ("INT", [1, True], "True does not fit INT"),
    ("INT", ["7"], "'7' does not fit INT"),
    ("INT", [1, [1]], "[1] does not fit INT"),
    ("INT", [1, Unshown()], "a Unshown does not fit INT"),
    ("BOOLEAN", [True, 1], "1 does not fit BOOLEAN"),
    ("FLOAT", [0.1, 1 / 3], "0.3333333333333333 does not fit FLOAT"),
    ("DECIMAL(10, 2)", [1.5, 1.005], "1.005 does not fit DECIMAL(10, 2)"),
    ("DECIMAL(10, 2)", [Decimal("1.5"), Decimal("1.005")], "1.005 does not fit DECIMAL(10, 2)"),
    ("DECIMAL(10, 2)", [Decimal("1.5"), Decimal("NaN")], "NaN does not fit DECIMAL(10, 2)"),
    ("DECIMAL(10, 2)", [Decimal("1.5"), Decimal("-Infinity")], "-Infinity does not fit DECIMAL(10, 2)"),
    ("INT", [Decimal(1), Decimal("1e50")], "1E+50 does not fit INT"),
    ("STRING", ["a", 5], "5 does not fit STRING"),
    ("STRING", ["a", "\ud800"], "'\\ud800' does not fit STRING"),
    ("STRING", ["a", b"a"], "b'a' does not fit STRING"),
    ("BYTES", [b"a", "a"], "'a' does not fit BYTES"),
    ("DATE", [DAY, NOON], "2026-01-31 12:00:00.000000 does not fit DATE"),
    ("DATE", ["2026-01-31", "31.1.2026"], "'31.1.2026' does not fit DATE. Use text such as '2026-01-31'"),
    ("DATE", [DAY, 5], "5 does not fit DATE"),
    ("TIMESTAMP(6)", [NOON, NOON.replace(tzinfo=UTC)], "2026-01-31 12:00:00+00:00 does not fit TIMESTAMP(6)"),
    ("TIMESTAMP(6)", [NOON.replace(tzinfo=UTC)], "2026-01-31 12:00:00+00:00 does not fit TIMESTAMP(6)"),
    ("ARRAY<INT>", [[1], [1, 1.5]], "[1, 1.5] does not fit ARRAY<INT>"),
    ("ARRAY<INT>", [[1], "12"], "'12' does not fit ARRAY<INT>"),
    ("MAP<STRING, INT>", [{"a": 1}, {"b": "x"}], "{'b': 'x'} does not fit MAP<STRING, INT>"),
    ("MAP<STRING, INT>", [{"a": 1}, [("b",)]], "[('b',)] does not fit MAP<STRING, INT>"),
    ("ROW<x INT>", [{"x": 1}, {"x": 1, "z": 2}], "{'x': 1, 'z': 2} does not fit ROW<`x` INT>"),
    ("ROW<x INT>", [{"x": 1}, {"x": "a"}], "{'x': 'a'} does not fit ROW<`x` INT>"),
    ("ROW<x INT>", [{"x": 1}, {1: 2}], "{1: 2} does not fit ROW<`x` INT>"),
    ("TIME(3)", [dt.time(1), dt.time(1, tzinfo=UTC)], "01:00:00+00:00 does not fit TIME(3)"),
    ("ROW<x INT>", [{"x": 1}, (1,)], "(1,) does not fit ROW<`x` INT>"),
]


@pytest.mark.parametrize(("kind", "values", "message"), REFUSED)
def test_the_error_names_the_first_unfit_value(kind: str, values: list[Any], message: str) -> None:
    with pytest.raises(UnfitValueError) as caught:
        column_of([*values, *values], parse_type(kind))
    assert (caught.value.row, caught.value.fault[: len(message)]) == (len(values) - 1, message)


def test_nanoseconds_of_pandas_and_numpy_are_kept_if_the_column_has_them() -> None:
    texts = "2026-01-31 12:00:00.123456789"
    for value in (pd.Timestamp(texts), np.datetime64(texts), texts):
        assert timestamp_texts(column_of([value], parse_type("TIMESTAMP(9)"))).to_pylist() == [texts]


_CLASSES: dict[str, tuple[st.SearchStrategy[Any], str]] = {
    "int": (st.integers(-300, 300) | st.integers(-(2**63), 2**63 - 1), "BIGINT"),
    "float": (st.floats() | st.integers(-300, 300).map(float), "DOUBLE"),
    "Decimal": (st.decimals(-300, 300, places=2), "DECIMAL(38, 2)"),
}


@given(
    st.lists(st.none() | st.one_of(*(values.map(lambda value: value) for values, _ in _CLASSES.values())), max_size=6),
    st.sampled_from(["TINYINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5, 1)"]),
)
def test_numbers_of_several_classes_are_checked_one_by_one(values: list[Any], target: str) -> None:
    stored: list[Any] = []
    for at, value in enumerate(values):
        try:
            stored.append(None if value is None else stored_value(value, _CLASSES[type(value).__name__][1], target))
        except (ValueError, OverflowError):
            with pytest.raises(UnfitValueError) as caught:
                column_of(values, parse_type(target))
            assert caught.value.row == at
            return
    assert list(map(repr, column_of(values, parse_type(target)).to_pylist())) == list(map(repr, stored))
