"""Texts of columns as Java has them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakelsm.maintain.system_tables.java_text import cast_texts, joined, object_texts
from lakelsm.types import parse_type, to_arrow


def column(kind: str, *values: Any) -> pa.Array:
    arrow = to_arrow(parse_type(kind))
    return pa.array(values, pa.int64()).cast(arrow) if pa.types.is_timestamp(arrow) else pa.array(values, arrow)


@pytest.mark.parametrize(
    ("kind", "value", "printed", "cast"),
    [
        ("BOOLEAN", True, "true", "true"),
        ("BIGINT", -5, "-5", "-5"),
        ("STRING", "a, ü", "a, ü", "a, ü"),
        ("DECIMAL(20, 10)", Decimal("0.0000000001"), "0.0000000001", "0.0000000001"),
        ("DOUBLE", -0.0, "-0.0", "-0.0"),
        ("FLOAT", 1e10, "1.0E10", "1.0E10"),
        ("DATE", 20000, "20000", "2024-10-04"),
        ("TIME(3)", 3_723_004, "3723004", "01:02:03.004"),
        ("TIMESTAMP(3)", 60_000, "1970-01-01T00:01", "1970-01-01 00:01:00.000"),
        ("BYTES", b"\xff\x01", "ff01", "\ufffd\x01"),
    ],
)
def test_a_value_is_printed_or_cast_to_a_text(kind: str, value: Any, printed: str, cast: str) -> None:
    data_type, values = parse_type(kind), column(kind, value, None, value)
    assert object_texts(values, data_type).to_pylist() == [printed, None, printed]
    assert cast_texts(values, data_type).to_pylist() == [cast, None, cast]


def test_floats_keep_both_zeros_and_nan_apart() -> None:
    texts = object_texts(column("DOUBLE", 0.0, -0.0, float("nan")), parse_type("DOUBLE"))
    assert texts.to_pylist() == ["0.0", "-0.0", "NaN"]


def test_nested_values_have_no_text() -> None:
    assert object_texts(pa.array([[1]]), parse_type("ARRAY<INT>")).to_pylist() == [None]


def test_texts_of_a_row_stand_between_brackets_or_as_a_map() -> None:
    texts = [pa.array(["1", None], pa.large_string()), pa.array(["x", "y"], pa.large_string())]
    assert joined(texts, 2, "[]").to_pylist() == ["[1, x]", "[null, y]"]
    assert joined(texts, 2, "{}", ["a", "b"]).to_pylist() == ["{a=1, b=x}", "{a=null, b=y}"]
    assert joined([], 2, "{}").to_pylist() == ["{}", "{}"]
