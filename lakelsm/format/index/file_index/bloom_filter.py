"""Bloom filters of a column's values (Paimon's ``BloomFilterFileIndex``; docs/format.md 7.5)."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lakelsm.errors import CorruptTableError
from lakelsm.format.index.file_index.fast_hash import Hashes
from lakelsm.options.file_index_options import filter_bits

_HEAD = struct.Struct(">i")


@dataclass(frozen=True, eq=False)
class BloomFilter:
    """A set of hashes that may also seem to have some that were not added: ``functions`` bits of ``bits`` a hash."""

    functions: int
    bits: npt.NDArray[np.uint8]

    @staticmethod
    def sized(items: int, fpp: float) -> BloomFilter:
        """An empty filter for so many values with this rate of false positives."""
        count = filter_bits(items, fpp)
        functions = max(1, math.floor(count / items * math.log(2) + 0.5))
        return BloomFilter(functions, np.zeros(count // 8, np.uint8))

    @staticmethod
    def decode(body: bytes, source: str) -> BloomFilter:
        """The filter in an index's bytes; CorruptTableError, beginning with ``source``, where they hold none."""
        if len(body) <= _HEAD.size:
            raise CorruptTableError(f"{source} has a bloom filter of {len(body)} bytes, which is too short for any.")
        (functions,) = _HEAD.unpack_from(body)
        bits = np.frombuffer(body, np.uint8, offset=_HEAD.size)
        if not 1 <= functions <= 8 * len(bits):
            raise CorruptTableError(f"{source} has a bloom filter of {functions} functions for {8 * len(bits)} bits.")
        return BloomFilter(functions, bits)

    def encode(self) -> bytes:
        """The index's bytes."""
        return _HEAD.pack(self.functions) + self.bits.tobytes()

    def add(self, hashes: Hashes) -> None:
        """Add hashes."""
        low, high = _halves(hashes)
        for number in range(1, self.functions + 1):
            places = self._places(low, high, number)
            for bit in range(8):
                self.bits[places[places & 7 == bit] >> 3] |= np.uint8(1 << bit)

    def may_hold(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """For each hash, False if it was surely not added."""
        low, high = _halves(hashes)
        held = np.ones(len(hashes), np.bool_)
        for number in range(1, self.functions + 1):
            places = self._places(low, high, number)
            held &= (self.bits[places >> 3] >> (places & 7)) & 1 == 1
        return held

    def _places(self, low: npt.NDArray[np.int32], high: npt.NDArray[np.int32], number: int) -> npt.NDArray[np.int32]:
        combined = low + high * np.int32(number)
        places: npt.NDArray[np.int32] = np.where(combined < 0, ~combined, combined) % np.int32(8 * len(self.bits))
        return places


def _halves(hashes: Hashes) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    return hashes.astype(np.int32), (hashes >> 32).astype(np.int32)
