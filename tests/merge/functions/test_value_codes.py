"""Codes of elements of any type: equal elements (by Java's equals) have equal codes, others have not."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from lakelsm.merge.functions.value_codes import differs, element_codes, row_codes

OTHER_NAN = float.fromhex("nan") * -1
PAIRS = pa.map_(pa.string(), pa.int32())


@pytest.mark.parametrize(
    ("kind", "values", "equal"),
    [
        (pa.int64(), [1, 2, 1, None, None], {(0, 2), (3, 4)}),
        (pa.string(), ["a", "A", "a ", "a"], {(0, 3)}),
        (pa.binary(), [b"", b"\0", None, b""], {(0, 3)}),
        (pa.float64(), [math.nan, OTHER_NAN, 0.0, -0.0, 0.0, None], {(0, 1), (2, 4)}),
        (pa.float32(), [math.nan, 1.5, math.nan], {(0, 2)}),
        (pa.list_(pa.int32()), [[1, None], [1], [1, None], None, []], {(0, 2)}),
        (pa.struct({"x": pa.float64()}), [{"x": 0.0}, {"x": -0.0}, {"x": None}, {"x": 0.0}, None], {(0, 3)}),
        (PAIRS, [[("a", 1), ("b", 2)], [("b", 2), ("a", 1)], [("a", 1)], []], {(0, 1)}),
    ],
    ids=str,
)
def test_only_equal_elements_have_equal_codes(kind: pa.DataType, values: list[Any], equal: set[Any]) -> None:
    codes = element_codes(pa.array([values[0], *values], kind).slice(1))
    same = {(i, j) for i in range(len(values)) for j in range(i + 1, len(values)) if codes[i] == codes[j]}
    assert same == equal


def test_rows_have_a_code_of_some_members_and_report_null_members() -> None:
    pairs = [(1, "x"), (1, "x"), (None, "x"), (2, "x")]
    rows = pa.array([{"a": a, "b": b, "c": at} for at, (a, b) in enumerate(pairs)])
    codes, nulls = row_codes(rows, ("a", "b"))
    assert codes[0] == codes[1]
    assert len(set(codes)) == 3
    assert nulls == [False, False, True, False]


@pytest.mark.parametrize(
    ("kind", "left", "right", "expected"),
    [
        (pa.int32(), [1, 1, None, None], [1, 2, None, 1], [False, True, False, True]),
        (pa.float64(), [math.nan, 0.0, None, math.nan], [OTHER_NAN, -0.0, math.nan, 1.0], [False, True, True, True]),
        (pa.float32(), [math.nan, 0.0], [math.nan, 0.0], [False, False]),
        (pa.string(), ["a", ""], ["a", None], [False, True]),
        (pa.list_(pa.float64()), [[math.nan], [0.0], None], [[math.nan], [-0.0], []], [False, True, True]),
        (PAIRS, [[("a", 1), ("b", 2)]], [[("b", 2), ("a", 1)]], [False]),
    ],
    ids=str,
)
def test_rows_differ_if_a_value_differs(
    kind: pa.DataType, left: list[Any], right: list[Any], expected: list[bool]
) -> None:
    one, other = (pa.table({"a": pa.array(values, kind), "b": range(len(values))}) for values in (left, right))
    assert differs(one, other, ["b", "a"]).tolist() == expected
    assert differs(one, other, ["b"]).tolist() == differs(one, other, []).tolist() == [False] * len(left)
