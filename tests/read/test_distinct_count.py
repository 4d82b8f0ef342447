"""Estimates of the number of distinct values."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakelsm.read.distinct_count import DistinctCount
from lakelsm.types import parse_type, to_arrow


def estimate(*arrays: pa.Array) -> int:
    count = DistinctCount()
    for array in arrays:
        count.add(array)
    return count.estimate()


@pytest.mark.parametrize("kind", ["BIGINT", "INT", "DOUBLE", "TIMESTAMP(6)", "TIMESTAMP(9)", "STRING", "DECIMAL(38, 9)"])
@pytest.mark.parametrize("rows", [10, 1000, 5000, 200_000])
def test_an_estimate_is_within_four_standard_errors(kind: str, rows: int) -> None:
    numbers = pa.array(np.arange(rows) * 1_000_003 % (1 << 31))
    if kind == "STRING":
        values = numbers.cast(pa.string())
    elif kind == "TIMESTAMP(9)":
        values = pa.array([number.to_bytes(10, "big") for number in numbers.to_pylist()], to_arrow(parse_type(kind)))
    elif kind.startswith("DECIMAL"):
        values = numbers.cast(pa.decimal128(19, 0)).cast(pa.decimal128(38, 9))
    else:
        values = numbers.cast(to_arrow(parse_type(kind)), safe=False)
    assert abs(estimate(values, values) - rows) <= max(4 * 0.023 * rows, 0.5)


@pytest.mark.parametrize(
    ("kind", "values", "distinct"),
    [
        ("BOOLEAN", [True, False, True], 2),
        ("TIME(3)", [1, 1, 2], 2),
        ("DATE", [1, 2, 3], 3),
        ("BYTES", [b"", b"a", b""], 2),
        ("DECIMAL(5, 2)", [Decimal("1.00"), Decimal("-1.00")], 2),
        ("DOUBLE", [0.0, 1.5, float("nan"), float("nan")], 3),
    ],
)
def test_few_values_are_counted_exactly(kind: str, values: list[Any], distinct: int) -> None:
    assert estimate(pa.array(values, to_arrow(parse_type(kind)))) == distinct


def test_counts_are_combined_and_an_empty_one_is_zero() -> None:
    one, other = DistinctCount(), DistinctCount()
    one.add(pa.array([1, 2, 3]))
    other.add(pa.array([3, 4]))
    one.merge(other.registers())
    assert (one.estimate(), DistinctCount(one.registers()).estimate(), DistinctCount().estimate()) == (4, 4, 0)
