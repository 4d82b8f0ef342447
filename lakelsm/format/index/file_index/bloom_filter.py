"""Bloom filters of a column's values (Paimon's ``BloomFilterFileIndex``; docs/format.md 7.5)."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lakelsm.errors import CorruptTableError
from lakelsm.format.index.file_index.fast_hash import Hashes
from lakelsm.options.file_index_options import filter_bits

_HEAD = struct.Struct(">i")
#: Bits that are found together, so that what is in between stays in the processor's cache.
_AT_ONCE = 1 << 15
#: The rarest false positives that a double can express need fewer functions.
_MAX_FUNCTIONS = 2048


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
        if not 1 <= functions <= _MAX_FUNCTIONS:
            raise CorruptTableError(f"{source} has a bloom filter of {functions} functions for {8 * len(bits)} bits.")
        return BloomFilter(functions, bits)

    def encode(self) -> bytes:
        """The index's bytes."""
        return _HEAD.pack(self.functions) + self.bits.tobytes()

    def add(self, hashes: Hashes) -> None:
        """Add hashes."""
        for block in self._blocks(hashes):
            places = self._places(hashes[block]).ravel()
            np.bitwise_or.at(self.bits, places >> 3, np.uint8(1) << (places & 7).astype(np.uint8))

    def may_hold(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """For each hash, False if it was surely not added."""
        held = np.empty(len(hashes), np.bool_)
        for block in self._blocks(hashes):
            places = self._places(hashes[block])
            held[block] = ((self.bits[places >> 3] >> (places & 7)) & 1).all(axis=1)
        return held

    def _blocks(self, hashes: Hashes) -> Iterator[slice]:
        step = -(-_AT_ONCE // self.functions)
        return (slice(start, start + step) for start in range(0, len(hashes), step))

    def _places(self, hashes: Hashes) -> npt.NDArray[np.int32]:
        """The bits of each hash, a row a hash."""
        numbers = np.arange(1, self.functions + 1, dtype=np.int32)
        combined = hashes.astype(np.int32)[:, None] + (hashes >> 32).astype(np.int32)[:, None] * numbers
        # ~ of a negative number; Java's remainder has the sign of the number, and there is no unsigned one.
        places: npt.NDArray[np.int32] = (combined ^ (combined >> 31)) % np.int32(8 * len(self.bits))
        return places
