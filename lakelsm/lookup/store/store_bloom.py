"""The bloom filter of sort and hash stores, which excludes most missing keys (docs/format.md 20.3)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.int32]

#: Java counts bits in 32-bit integers, so it cannot read a larger filter.
_MAX_BYTES = (1 << 28) - 1


@dataclass(frozen=True)
class StoreBloom:
    """The filter of ``entries`` keys."""

    bits: npt.NDArray[np.uint8]
    entries: int

    @classmethod
    def of(cls, hashes: Iterable[Hashes], entries: int, fpp: float) -> StoreBloom | None:
        """Make the filter of some keys with false-positive rate ``fpp``. Return None for no keys, or too many."""
        size = math.ceil(int(-entries * math.log(fpp) / math.log(2) ** 2) / 8)
        if not entries or size > _MAX_BYTES:
            return None
        bloom = cls(np.zeros(max(size, 1), np.uint8), entries)
        for some in hashes:
            for positions in bloom._bit_positions(some):
                np.bitwise_or.at(bloom.bits, positions >> 3, np.uint8(1) << (positions & 7).astype(np.uint8))
        return bloom

    def may_have(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Return for each hash whether a key may have it."""
        found = np.ones(len(hashes), bool)
        for positions in self._bit_positions(hashes):
            found &= (self.bits[positions >> 3] >> (positions & 7).astype(np.uint8)) & np.uint8(1) != 0
        return found

    def _bit_positions(self, hashes: Hashes) -> Iterable[npt.NDArray[np.uint32]]:
        """Yield the bit position of each hash, for each hash function."""
        size = 8 * len(self.bits)
        count = max(1, math.floor(size / self.entries * math.log(2) + 0.5))
        first = hashes.view(np.uint32)
        step = first >> np.uint32(16)
        for number in range(1, count + 1):
            combined = first + np.uint32(number) * step
            yield np.where(combined >> np.uint32(31), ~combined, combined) % np.uint32(size)
