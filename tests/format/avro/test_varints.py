"""Numbers of any size are decoded at many positions together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.format.avro.varints import LaneBytes
from tests.format.avro.avro_files import number

#: The maximum and minimum numbers of each size in bytes, and their neighbours.
EDGES = [sign * (1 << (7 * size - 1)) + step for size in range(1, 10) for sign in (1, -1) for step in (-1, 0, 1)]
LONGS = st.integers(-(1 << 63), (1 << 63) - 1) | st.sampled_from([*EDGES, (1 << 63) - 1, -(1 << 63)])


#: Lists of numbers of one byte, of up to eight bytes, and of any size: each list takes another code path.
LISTS = [st.lists(st.integers(-(1 << bits), (1 << bits) - 1), max_size=9) for bits in (6, 55)]


@given(st.one_of(*LISTS, st.lists(LONGS, max_size=9)))
def test_numbers_of_all_sizes_are_read_side_by_side(values: list[int]) -> None:
    parts = [number(value) for value in values]
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    starts = ends - np.array([len(part) for part in parts], np.int64)
    source = LaneBytes(b"".join(parts) + bytes(16))
    for order in (slice(None), slice(None, None, -1)):
        found, behind = source.varints(starts[order])
        assert found.tolist() == values[order]
        assert behind.tolist() == ends[order].tolist() == source.skip(starts[order]).tolist()


def test_a_number_of_more_than_ten_bytes_is_refused() -> None:
    assert LaneBytes(b"\xff" * 9 + b"\x01" + bytes(16)).varints(np.array([0]))[0].tolist() == [-(1 << 63)]
    endless = LaneBytes(b"\xff" * 11 + bytes(16))
    for read in (endless.varints, endless.skip):
        with pytest.raises(ValueError, match="more than ten bytes"):
            read(np.array([0]))
