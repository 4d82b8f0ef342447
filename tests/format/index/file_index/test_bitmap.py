"""Bitmap indexes: Java's bytes, both layouts, and damage."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import CorruptTableError, UnsupportedFeatureError
from lakelsm.format.index.file_index.bitmap import BitmapBuilder, Bitmaps
from lakelsm.format.index.file_index.file_index_container import FileIndexContainer
from lakelsm.types import parse_type, to_arrow
from tests.format.index.file_index.java_container import FIELDS, JAVA, rows_in_memory

_INT, _TEXT = parse_type("INT"), parse_type("STRING")
#: Rows 'a', NULL, 'b', 'a' in the first layout.
FLAT = "01000000040000000201fffffffe0000000161000000000000000162fffffffd3a30000001000000000001001000000000000300"


def _index(values: list[Any], kind: Any, version: int = 2, block_bytes: int = 1 << 14, cut: int = 0) -> bytes:
    builder = BitmapBuilder(kind, version, block_bytes)
    column = pa.array(values, to_arrow(kind))
    for part in (column.slice(0, cut), column.slice(cut)):
        if len(part):
            builder.add(part)
    return builder.encode()


def _rows(bitmaps: Bitmaps, kind: Any, *values: Any) -> list[int]:
    return list(bitmaps.rows_of(pa.array(values, to_arrow(kind))))


def test_each_type_has_javas_bytes_and_javas_bytes_are_read() -> None:
    theirs, rows = FileIndexContainer.decode(JAVA, "x").bodies, rows_in_memory()
    for name, types in theirs.items():
        if "bitmap" not in types:
            continue
        column, kind = rows.column(name).chunk(0), FIELDS[name].type
        builder = BitmapBuilder(kind)
        builder.add(column)
        assert builder.encode() == types["bitmap"], name
        bitmaps = Bitmaps(types["bitmap"], kind, "x")
        first = [0, 2, 4] if kind.root == "BOOLEAN" else [0, 4]
        assert (bitmaps.row_count, list(bitmaps.nulls()), list(bitmaps.rows_of(column.slice(0, 1)))) == (5, [3], first)


def test_the_first_layout_has_the_bytes_that_java_reads() -> None:
    assert _index(["a", None, "b", "a"], _TEXT, version=1).hex() == FLAT


_VALUES = {
    "INT": st.integers(-9, 9),
    "STRING": st.text("ab\0é", max_size=3),
    "DOUBLE": st.sampled_from([0.0, -0.0, 1.5, -2.0, math.inf, -math.inf]),
    "BOOLEAN": st.booleans(),
}


@given(st.data())
def test_the_rows_of_each_value_are_read_back_in_both_layouts(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(_VALUES)))
    kind = parse_type(name)
    values = data.draw(st.lists(st.none() | _VALUES[name], min_size=1, max_size=60))
    cut, block = data.draw(st.integers(0, len(values))), data.draw(st.integers(1, 90))
    wanted = data.draw(st.lists(_VALUES[name], max_size=4))
    for version in (1, 2):
        bitmaps = Bitmaps(_index(values, kind, version, block, cut), kind, "x")
        assert bitmaps.row_count == len(values)
        assert list(bitmaps.nulls()) == [at for at, value in enumerate(values) if value is None]
        # An index distinguishes the two zeros.
        held = {(value, str(value)) for value in wanted}
        assert _rows(bitmaps, kind, *wanted) == [at for at, value in enumerate(values) if (value, str(value)) in held]


def test_not_a_number_is_one_value() -> None:
    bitmaps = Bitmaps(_index([math.nan, 1.0, -math.nan], parse_type("DOUBLE")), parse_type("DOUBLE"), "x")
    assert _rows(bitmaps, parse_type("DOUBLE"), math.nan) == [0, 2]


def test_many_rows_and_values_of_several_blocks() -> None:
    values = [f"value {at % 5000:05}" for at in range(20_000)]
    bitmaps = Bitmaps(_index(values, _TEXT, cut=7000), _TEXT, "x")
    for at in (0, 1, 2500, 4999):
        assert _rows(bitmaps, _TEXT, f"value {at:05}") == list(range(at, 20_000, 5000))
    assert _rows(bitmaps, _TEXT, "value", "value 99999", "value 02500x") == []


def test_a_value_larger_than_a_block_has_its_own_block() -> None:
    values = ["x" * 50, "y", "z" * 40, "z" * 40]
    bitmaps = Bitmaps(_index(values, _TEXT, block_bytes=16), _TEXT, "x")
    assert [_rows(bitmaps, _TEXT, value) for value in values] == [[0], [1], [2, 3], [2, 3]]


def test_another_version_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="bitmap version 3; lakelsm reads only 1 and 2"):
        Bitmaps(b"\x03" + _index([1], _INT)[1:], _INT, "x")


@pytest.mark.parametrize("version", [1, 2])
def test_a_truncated_index_is_refused_by_name(version: int) -> None:
    body = _index([3, 1, None, 3, 3, None], _INT, version)
    for size in range(len(body)):
        with pytest.raises(CorruptTableError, match=r"^Index i of data file d has a bitmap index that cannot be decoded"):
            bitmaps = Bitmaps(body[:size], _INT, "Index i of data file d")
            _rows(bitmaps, _INT, 1, 3)
            bitmaps.nulls()


@given(st.data())
def test_any_damage_is_an_error_or_rows_of_the_file(data: st.DataObject) -> None:
    kind = parse_type(data.draw(st.sampled_from(["INT", "STRING"])))
    values = [3, 1, None, 3, 3, None, 7] if kind == _INT else ["c", "a", None, "c", "c", None, "g"]
    damaged = bytearray(_index(values, kind, data.draw(st.sampled_from([1, 2]))))
    at = data.draw(st.integers(0, len(damaged) - 1))
    damaged[at] ^= data.draw(st.integers(1, 255))
    with suppress(CorruptTableError, UnsupportedFeatureError):
        bitmaps = Bitmaps(bytes(damaged), kind, "x")
        found = bitmaps.nulls() | bitmaps.rows_of(pa.array([value for value in values if value], to_arrow(kind)))
        assert not found or found.max() < bitmaps.row_count
