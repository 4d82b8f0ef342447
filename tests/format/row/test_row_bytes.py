"""Byte strings at any offsets of a buffer."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import CorruptTableError
from lakelsm.format.row.row_bytes import (
    RowBytes,
    fixed_bytes,
    left_justified,
    load_numbers,
    load_varints,
    padded,
    varint_bytes,
    with_nulls,
)


@given(st.lists(st.tuples(st.integers(0, 2**63 - 1), st.booleans()), max_size=20))
def test_numbers_of_variable_length_are_read_back(cases: list[tuple[int, bool]]) -> None:
    values = np.array([value for value, _ in cases], np.int64)
    nulls = np.array([null for _, null in cases], bool)
    rows = RowBytes.of(varint_bytes(values))
    found, sizes = load_varints(rows.buffer, rows.starts, rows.starts + rows.lengths)
    assert (found == values).all() and (sizes == rows.lengths).all()
    assert varint_bytes(values, nulls).is_null().to_pylist() == nulls.tolist()


@pytest.mark.parametrize("data", ["80", "ffffffffffffffffff01", "ffffffffffffffffffff"])
def test_a_number_that_does_not_end_or_has_too_many_bits_is_refused(data: str) -> None:
    rows = RowBytes.of(pa.array([bytes.fromhex(data)]))
    with pytest.raises(CorruptTableError, match="row number 0"):
        load_varints(rows.buffer, rows.starts, rows.starts + rows.lengths)


def test_numbers_are_loaded_at_any_alignment() -> None:
    buffer = padded(np.frombuffer(b"\x01\x02\x03\x04\x05\x06\x07\x08\x09", np.uint8))
    offsets = np.array([1, 0, 3])
    assert load_numbers(buffer, offsets, "<u2").tolist() == [0x0302, 0x0201, 0x0504]
    assert load_numbers(buffer, offsets[:2], "<u8").tolist() == [0x0908070605040302, 0x0807060504030201]


def test_strings_of_a_slice_are_taken_in_any_order() -> None:
    rows = RowBytes.of(pa.array([b"x", b"ab", None, b"cde"]).slice(1)).take(np.array([2, 0]))
    assert [bytes(rows.buffer[a : a + n]) for a, n in zip(rows.starts, rows.lengths)] == [b"cde", b"ab"]


def test_values_of_one_width_and_their_nulls() -> None:
    strings = fixed_bytes(np.array([1, 2, 3], "<u2"), 2, np.array([False, True, False]))
    assert strings.to_pylist() == [b"\1\0", None, b"\3\0"]
    assert with_nulls(pa.array([b"x", b"a", b"b"]).slice(1), np.array([True, False])).to_pylist() == [None, b"b"]


def test_the_first_bytes_of_two_words() -> None:
    words = np.array([int.from_bytes(b"abcdefgh", "big"), 0], np.uint64)
    found = left_justified(words, words, np.array([10, 1]), np.array([False, True]))
    assert found.to_pylist() == [b"abcdefghab", None]
