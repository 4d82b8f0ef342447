"""Columns from decoded values of rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import CorruptTableError, UnsupportedFeatureError
from lakelsm.format.row.row_columns import big_endian_words, bytes_column, decimal_column, time_column, value_column

NONE = np.array([False])


@given(st.integers(-(10**38) + 1, 10**38 - 1))
def test_big_endian_numbers_of_any_length_are_decimals(value: int) -> None:
    size = (value if value >= 0 else ~value).bit_length() // 8 + 1
    loaded = np.frombuffer(value.to_bytes(size, "big", signed=True) + b"\x55" * 16, np.uint64, 2)
    low, high = big_endian_words(loaded[:1], loaded[1:], np.array([size]))
    assert decimal_column(pa.decimal128(38, 0), low, high, NONE).to_pylist() == [value]


def test_parts_of_a_buffer_become_texts_in_the_requested_order() -> None:
    data = np.frombuffer(b"abcdef\xff", np.uint8)
    starts, lengths = np.array([3, 0, 0]), np.array([2, 3, 0])
    column = bytes_column(pa.string(), data, starts, lengths, np.array([False, False, True]))
    assert column.to_pylist() == ["de", "abc", None]
    with pytest.raises(CorruptTableError, match="not UTF-8"):
        bytes_column(pa.string(), data, np.array([6]), np.array([1]), NONE)


def test_a_time_outside_the_range_of_microseconds_is_refused() -> None:
    assert time_column(pa.timestamp("us"), np.array([-1]), np.array([1_000]), NONE).cast(pa.int64()).to_pylist() == [-999]
    with pytest.raises(UnsupportedFeatureError, match="outside the years"):
        time_column(pa.timestamp("us"), np.array([2**62]), np.array([0]), NONE)


def test_nulls_have_no_value() -> None:
    assert value_column(pa.int32(), np.array([1, 2], np.int32), np.array([True, False])).to_pylist() == [None, 2]
