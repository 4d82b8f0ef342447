"""The bloom filter of stores."""

from __future__ import annotations

import numpy as np
import pytest

from lakelsm.lookup.store.store_bloom import StoreBloom

HASHES = np.random.default_rng(7).integers(-(2**31), 2**31, 20_000).astype(np.int32)


def bits_of(hash_: int, bloom: StoreBloom) -> list[int]:
    """Return the bits of a hash, one after the other, computed with signed 32-bit numbers."""
    size = 8 * len(bloom.bits)
    count = max(1, int(np.floor(size / bloom.entries * np.log(2) + 0.5)))
    found = []
    for number in range(1, count + 1):
        combined = (hash_ + number * ((hash_ & 0xFFFFFFFF) >> 16)) & 0xFFFFFFFF
        combined -= (combined >> 31) << 32
        found.append((~combined if combined < 0 else combined) % size)
    return found


@pytest.mark.parametrize("fpp", [0.01, 0.05, 0.5])
def test_no_key_is_excluded_and_few_other_keys_pass(fpp: float) -> None:
    bloom = StoreBloom.of([HASHES[:4000], HASHES[4000:10_000]], 10_000, fpp)
    assert bloom is not None
    assert bloom.may_have(HASHES[:10_000]).all()
    assert bloom.may_have(HASHES[10_000:]).mean() < 1.3 * fpp


def test_the_bits_are_those_of_the_page() -> None:
    bloom = StoreBloom.of([HASHES[:100]], 100, 0.05)
    assert bloom is not None
    expected = np.zeros(8 * len(bloom.bits), bool)
    for value in HASHES[:100].tolist():
        expected[bits_of(value, bloom)] = True
    assert np.unpackbits(bloom.bits, bitorder="little").astype(bool).tolist() == expected.tolist()


def test_no_filter_is_made_without_keys_or_beyond_the_bits_that_java_counts() -> None:
    assert StoreBloom.of([], 0, 0.05) is None
    assert StoreBloom.of([], 1_000_000_000, 0.05) is None
    one = StoreBloom.of([HASHES[:1]], 1, 0.9)
    assert one is not None and len(one.bits) == 1
