"""Values of bitmap indexes: order and bytes."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakelsm.format.index.file_index.bitmap_values import BitmapValues
from lakelsm.types import parse_type, to_arrow


def _domain(kind: str, values: list[Any]) -> tuple[BitmapValues, pa.Array]:
    data_type = parse_type(kind)
    found = BitmapValues.of(data_type)
    return found, found.domain(pa.array(values, to_arrow(data_type)))


@pytest.mark.parametrize(
    ("kind", "ascending"),
    [
        ("DOUBLE", [-math.inf, -1.5, -0.0, 0.0, 5e-324, 2.0, math.inf, math.nan]),
        ("FLOAT", [-math.inf, -1.5, -0.0, 0.0, 2.0, math.nan]),
        ("STRING", ["", "a", "a\0", "ab", "é", "中", "😀"]),
        ("BOOLEAN", [False, True]),
        ("BIGINT", [-(2**63), -1, 0, 2**63 - 1]),
    ],
)
def test_the_domain_has_javas_order_and_is_read_back(kind: str, ascending: list[Any]) -> None:
    values, domain = _domain(kind, ascending)
    assert sorted(domain.to_pylist()) == domain.to_pylist()
    assert len(set(domain.to_pylist())) == len(ascending)
    numbers = np.arange(len(ascending), dtype=np.int64)
    data, offsets = values.entries(domain, numbers, -numbers)
    assert offsets[-1] == len(data)
    assert values.read_entries(b"xy" + data, 2, len(ascending), 2) == (
        domain.to_pylist(),
        [[at, -at] for at in range(len(ascending))],
        2 + len(data),
    )


@pytest.mark.parametrize(
    ("kind", "value", "data"),
    [
        ("BOOLEAN", True, "01"),
        ("TINYINT", -2, "fe"),
        ("SMALLINT", 258, "0102"),
        ("INT", 3, "00000003"),
        ("BIGINT", 4, "0000000000000004"),
        ("FLOAT", -0.0, "80000000"),
        ("DOUBLE", -1.5, "bff8000000000000"),
        ("STRING", "ab", "000000026162"),
    ],
)
def test_an_entry_is_the_value_big_endian_and_its_number(kind: str, value: Any, data: str) -> None:
    values, domain = _domain(kind, [value])
    assert values.entries(domain, np.array([-1]))[0].hex() == data + "ffffffff"


@pytest.mark.parametrize("kind", ["INT", "STRING"])
def test_entries_that_end_early_are_refused(kind: str) -> None:
    values, domain = _domain(kind, [7, 8] if kind == "INT" else ["x", "y"])
    data, _ = values.entries(domain, np.array([1, 2]))
    for size in range(len(data)):
        with pytest.raises(struct.error):
            values.read_entries(data[:size], 0, 2, 1)
    assert values.entries(domain.slice(0, 0), np.array([], np.int64))[0] == b""
