"""Hive's hash of bucket keys: Java's values and a slow reference."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.format.row.bucket_hash import bucket_ids
from lakelsm.format.row.hive_hash import hive_hashes
from lakelsm.types import AtomicType, parse_type
from tests.format.row.binary_row_cases import WIDE, arrow_column, atomic_types, plain_values, rows_of_types

INT, BIGINT, STRING = atomic_types(["INT", "BIGINT", "STRING"])


def test_hive_buckets_equal_those_observed_in_java() -> None:
    assert bucket_ids([pa.array([1, -1, 17, -3])], [INT], 4, "hive").tolist() == [1, 3, 1, 1]
    assert bucket_ids([pa.array(["abc"])], [STRING], 4, "hive").tolist() == [2]


def _wrap(value: int) -> int:
    return value & 0xFFFFFFFF


def _reference_hive(value: Any, data_type: AtomicType) -> int:
    root = data_type.root
    if value is None:
        return 0
    if root in ("CHAR", "VARCHAR", "BINARY", "VARBINARY"):
        total = 0
        for byte in value.encode() if isinstance(value, str) else value:
            total = _wrap(total * 31 + (byte - 256 if byte > 127 else byte))
        return total
    if root == "DECIMAL":
        unscaled, scale = int(value.scaleb(data_type.scale or 0, WIDE)), data_type.scale or 0
        while scale and unscaled % 10 == 0:
            unscaled, scale = unscaled // 10, scale - 1
        digest = 0
        for shift in (96, 64, 32, 0):
            digest = digest * 31 + (abs(unscaled) >> shift & 0xFFFFFFFF)
        return _wrap(31 * (-digest if unscaled < 0 else digest) + scale) if unscaled else 0
    if root in ("FLOAT", "DOUBLE"):
        width = "<f4" if root == "FLOAT" else "<f8"
        bits = int.from_bytes(np.array(0.0 if value == 0 else value, width).tobytes(), "little")
        return _wrap(bits ^ bits >> 32)
    bits = value & (0xFFFFFFFFFFFFFFFF if root == "BIGINT" else 0xFFFFFFFF)
    return _wrap(bits ^ bits >> 32)


@given(rows_of_types(max_fields=4))
def test_hive_buckets_equal_those_of_a_row_by_row_hash(
    drawn: tuple[list[AtomicType], list[tuple[Any, ...]]],
) -> None:
    types, rows = drawn
    columns = [arrow_column([row[index] for row in rows], t) for index, t in enumerate(types)]
    if any(data_type.root.startswith("TIMESTAMP") for data_type in types):
        with pytest.raises(UnsupportedFeatureError, match="TIMESTAMP"):
            bucket_ids(columns, types, 7, "hive")
        return
    expected = []
    for row in rows:
        total = 0
        for value, data_type in zip(row, types, strict=True):
            total = _wrap(total * 31 + _reference_hive(value, data_type))
        expected.append((total & 0x7FFFFFFF) % 7)
    assert bucket_ids(columns, types, 7, "hive").tolist() == expected


@pytest.mark.parametrize(
    ("text", "name", "java_hash"),
    [
        ("1.50", "DECIMAL(10, 2)", 466),
        ("100", "DECIMAL(10, 0)", 3100),
        ("0.00", "DECIMAL(10, 2)", 0),
        ("-1.5", "DECIMAL(30, 4)", -464),
    ],
)
def test_hive_hashes_decimals_without_trailing_zeros(text: str, name: str, java_hash: int) -> None:
    buckets = bucket_ids([pa.array([Decimal(text)])], [parse_type(name)], 1 << 30, "hive")
    assert buckets.tolist() == [(java_hash & 0x7FFFFFFF) % (1 << 30)]


@pytest.mark.parametrize("name", ["FLOAT", "DOUBLE"])
def test_both_zeros_have_one_hash_and_all_nans_have_one(name: str) -> None:
    kind, bits = (np.float32, np.uint32) if name == "FLOAT" else (np.float64, np.uint64)
    payload = np.array([math.nan], kind).view(bits) + bits(1)
    column = pa.array(np.concatenate([np.array([0.0, -0.0, math.nan], kind), payload.view(kind)]))
    zero, negative, nan, other = hive_hashes([column], atomic_types([name])).tolist()
    assert (zero, negative) == (0, 0)
    assert nan == other == (0x7FC00000 if name == "FLOAT" else 0x7FF80000)


def test_a_null_field_hashes_to_zero() -> None:
    columns = [pa.array([7, None, 7]), pa.array([None, "a", "a"])]
    assert hive_hashes(columns, [BIGINT, STRING]).tolist() == [7 * 31, 97, 7 * 31 + 97]


def test_nested_types_have_no_hash() -> None:
    with pytest.raises(UnsupportedFeatureError, match="ARRAY"):
        hive_hashes([pa.array([[1]])], [parse_type("ARRAY<INT>")])


@pytest.mark.parametrize("name", ["DECIMAL(38, 0)", "DECIMAL(38, 10)", "STRING"])
@given(data=st.data())
def test_wide_decimals_and_texts_have_javas_hashes_also_in_slices(name: str, data: st.DataObject) -> None:
    [data_type] = atomic_types([name])
    values = data.draw(st.lists(st.none() | plain_values(data_type), max_size=9))
    start = data.draw(st.integers(0, len(values)))
    column = arrow_column(values, data_type).slice(start)
    expected = [_reference_hive(value, data_type) for value in values[start:]]
    assert hive_hashes([column], [data_type]).tolist() == expected
