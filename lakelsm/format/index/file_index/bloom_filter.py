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
#: Bits that are computed together, so that intermediate arrays stay in the processor's cache.
_AT_ONCE = 1 << 15
#: Maximum number of hash functions. The lowest false-positive rate that a double can express needs fewer.
_MAX_FUNCTIONS = 2048


@dataclass(frozen=True, eq=False)
class BloomFilter:
    """A bloom filter: each hash sets ``functions`` of the bits. It may also contain hashes that were not added."""

    functions: int
    bits: npt.NDArray[np.uint8]

    @staticmethod
    def sized(items: int, fpp: float) -> BloomFilter:
        """Return an empty filter for ``items`` values with the false-positive rate ``fpp``."""
        count = filter_bits(items, fpp)
        functions = max(1, math.floor(count / items * math.log(2) + 0.5))
        return BloomFilter(functions, np.zeros(count // 8, np.uint8))

    @staticmethod
    def decode(body: bytes, source: str) -> BloomFilter:
        """Return the filter of an index. Raises CorruptTableError, beginning with ``source``, for other bytes."""
        if len(body) <= _HEAD.size:
            raise CorruptTableError(f"{source} has a bloom filter of {len(body)} bytes, which is too short.")
        (functions,) = _HEAD.unpack_from(body)
        bits = np.frombuffer(body, np.uint8, offset=_HEAD.size)
        if not 1 <= functions <= _MAX_FUNCTIONS:
            raise CorruptTableError(f"{source} has a bloom filter of {functions} functions: it is damaged.")
        return BloomFilter(functions, bits)

    def encode(self) -> bytes:
        """Return the bytes of the index."""
        return _HEAD.pack(self.functions) + self.bits.tobytes()

    def add(self, hashes: Hashes) -> None:
        """Add hashes."""
        for block in self._blocks(hashes):
            indexes = self._bit_indexes(hashes[block]).ravel()
            np.bitwise_or.at(self.bits, indexes >> 3, np.uint8(1) << (indexes & 7).astype(np.uint8))

    def may_hold(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Return False for each hash that was certainly not added."""
        held = np.empty(len(hashes), np.bool_)
        for block in self._blocks(hashes):
            indexes = self._bit_indexes(hashes[block])
            held[block] = ((self.bits[indexes >> 3] >> (indexes & 7)) & 1).all(axis=1)
        return held

    def _blocks(self, hashes: Hashes) -> Iterator[slice]:
        step = -(-_AT_ONCE // self.functions)
        return (slice(start, start + step) for start in range(0, len(hashes), step))

    def _bit_indexes(self, hashes: Hashes) -> npt.NDArray[np.int32]:
        """Return the bit indexes of each hash, one row for each hash."""
        numbers = np.arange(1, self.functions + 1, dtype=np.int32)
        combined = hashes.astype(np.int32)[:, None] + (hashes >> 32).astype(np.int32)[:, None] * numbers
        # Equal to ~ of a negative number: Java's remainder has the number's sign, and there is no unsigned one.
        indexes: npt.NDArray[np.int32] = (combined ^ (combined >> 31)) % np.int32(8 * len(self.bits))
        return indexes
