"""Bloom filters: Java's bytes, and no false negatives."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import CorruptTableError
from lakelsm.format.index.file_index.bloom_filter import BloomFilter
from lakelsm.format.index.file_index.fast_hash import fast_hashes


def test_a_filter_has_the_bytes_that_java_wrote() -> None:
    bloom = BloomFilter.sized(10, 0.1)
    bloom.add(fast_hashes(pa.array(["a", "b"])))
    assert bloom.encode().hex() == "00000003082000700200"
    assert BloomFilter.decode(bloom.encode(), "x").may_hold(fast_hashes(pa.array(["a", "b", "zz"]))).tolist() == [
        True,
        True,
        False,
    ]


@given(st.lists(st.integers(-(2**63), 2**63 - 1)), st.integers(1, 500), st.floats(0.0001, 0.9999), st.integers(0, 3))
def test_added_hashes_are_always_found(hashes: list[int], items: int, fpp: float, parts: int) -> None:
    bloom = BloomFilter.sized(items, fpp)
    added = np.array(hashes, np.int64)
    for part in np.array_split(added, parts + 1):
        bloom.add(part)
    assert BloomFilter.decode(bloom.encode(), "x").may_hold(added).all()


def test_few_other_values_are_found() -> None:
    bloom = BloomFilter.sized(1000, 0.01)
    bloom.add(fast_hashes(pa.array(range(1000))))
    assert bloom.may_hold(fast_hashes(pa.array(range(1000, 101_000)))).mean() < 0.02


@pytest.mark.parametrize("body", ["", "00000003", "0000000000", "ffffffff00", "0000080100"])
def test_other_bytes_instead_of_a_filter_are_refused_by_name(body: str) -> None:
    with pytest.raises(CorruptTableError, match=r"^Index i of data file d has a bloom filter of"):
        BloomFilter.decode(bytes.fromhex(body), "Index i of data file d")
