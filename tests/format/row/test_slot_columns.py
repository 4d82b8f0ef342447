"""Damaged nested bytes give an error of lakelsm, or values, but no other error."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import CorruptTableError, UnsupportedFeatureError
from lakelsm.format.row.nested_bytes import nested_bytes
from lakelsm.format.row.row_bytes import RowBytes
from lakelsm.format.row.slot_columns import nested_column, spread
from lakelsm.types import parse_type, to_arrow

NONE = np.array([False])
DEEP = parse_type("MAP<STRING, ARRAY<ROW<a DECIMAL(30, 2), b STRING>>>")
VALUE = [("a key of many bytes", [{"a": 1, "b": "x"}, None, {"a": None, "b": "a text of many bytes"}])]


def decoded(value: bytes, kind: str) -> pa.Array:
    return nested_column(RowBytes.of(pa.array([value], pa.binary())), NONE, parse_type(kind))


@pytest.mark.parametrize(
    ("value", "kind", "problem"),
    [
        ("0100", "ARRAY<INT>", "an array without a size"),
        ("02000000 00000000 01000000", "ARRAY<INT>", "an array that does not fit"),
        ("ffffffff 00000000", "ARRAY<INT>", "an array that does not fit"),
        ("ffffff7f 00000000", "ARRAY<BOOLEAN>", "an array that does not fit"),
        ("01000000 00000000 0900000010000000", "ARRAY<STRING>", "points outside the row"),
        ("01000000 00000000 0900000000000000", "ARRAY<STRING>", "points outside the row"),
        ("0100", "MAP<INT, INT>", "a map without a size"),
        ("ffffffff 00000000", "MAP<INT, INT>", "keys that do not fit"),
        ("09000000 00000000", "MAP<INT, INT>", "keys that do not fit"),
        ("08000000 0000000000000000 01000000 00000000 01000000", "MAP<INT, INT>", "numbers of keys and values differ"),
        ("0c000000 01000000 01000000 00000000 01000000 00000000 00000000", "MAP<INT, INT>", "a key that is NULL"),
        ("00000000", "ROW<a INT>", "ends before its last field"),
    ],
)
def test_nested_bytes_that_contradict_the_layout_are_refused(value: str, kind: str, problem: str) -> None:
    with pytest.raises(CorruptTableError, match=problem):
        decoded(bytes.fromhex(value), kind)


def test_overlapping_elements_are_refused_before_they_are_copied() -> None:
    count, size = 1000, 100_000
    header = 4 + 4 * ((count + 31) // 32)
    slot = ((header + 8 * count) << 32 | size).to_bytes(8, "little")
    array = count.to_bytes(4, "little") + bytes(header - 4) + slot * count + bytes(size)
    with pytest.raises(CorruptTableError, match="overlap"):
        decoded(array, "ARRAY<BYTES>")


@given(st.integers(0, 250), st.integers(0, 255), st.integers(0, 300))
def test_damaged_nested_bytes_give_values_or_an_error_of_lakelsm(offset: int, byte: int, size: int) -> None:
    damaged = bytearray(nested_bytes(pa.array([VALUE], to_arrow(DEEP)), DEEP)[0].as_py())
    damaged[offset % len(damaged)] = byte
    rows = RowBytes.of(pa.array([bytes(damaged[:size])], pa.binary()))
    try:
        nested_column(rows, NONE, DEEP).validate(full=True)
    except (CorruptTableError, UnsupportedFeatureError) as error:
        assert str(error)


def test_a_type_without_bytes_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="VECTOR"):
        decoded(b"", "VECTOR<FLOAT, 2>")


def test_values_get_the_indexes_of_their_rows() -> None:
    nulls = np.array([True, False, True, False])
    assert spread(pa.array([1, 2]), nulls).to_pylist() == [None, 1, None, 2]
    assert spread(pa.array([], pa.int64()), np.array([True])).to_pylist() == [None]
