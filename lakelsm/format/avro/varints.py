"""Avro's zigzag numbers, decoded at many positions of a buffer together."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Longs: TypeAlias = npt.NDArray[np.int64]

_STOP_BITS = np.uint64(0x8080808080808080)
_LOW_BITS = np.uint64(0x0101010101010101)
_ONE = np.uint64(1)


class LaneBytes:
    """The decompressed blocks, concatenated, with reads at many positions together."""

    def __init__(self, data: bytes) -> None:
        self.size = len(data)
        self._bytes = np.frombuffer(data, np.uint8)
        # The 8 bytes at each position, as one number.
        self._words: npt.NDArray[np.uint64] = np.ndarray((max(len(data) - 7, 0),), "<u8", data, 0, (1,))

    def varints(self, positions: Longs) -> tuple[Longs, Longs]:
        """Return the zigzag numbers at ``positions``, and the positions after them."""
        first = self._bytes[positions]
        if len(first) == 0 or first.max() < 0x80:
            return _OF_ONE_BYTE[first], positions + 1
        words = self._words[positions]
        stops = ~words & _STOP_BITS
        if not stops.all():
            return self._long_varints(positions)
        stop = stops & (~stops + _ONE)
        below = stop - _ONE
        sizes = ((below & _LOW_BITS) * _LOW_BITS) >> np.uint64(56)
        raw_words = words & below
        for keep, move, shift in _SEVEN_BIT_JOINS:
            raw_words = (raw_words & keep) | ((raw_words & move) >> shift)
        raw = raw_words.view(np.int64)
        return (raw >> 1) ^ -(raw & 1), positions + sizes.view(np.int64)

    def skip(self, positions: Longs) -> Longs:
        """Return the positions after the numbers at ``positions``, without decoding them."""
        first = self._bytes[positions]
        if len(first) == 0 or first.max() < 0x80:
            return positions + 1
        stops = ~self._words[positions] & _STOP_BITS
        if not stops.all():
            return self._long_varints(positions)[1]
        below = (stops & (~stops + _ONE)) - _ONE
        sizes = ((below & _LOW_BITS) * _LOW_BITS) >> np.uint64(56)
        behind: Longs = positions + sizes.view(np.int64)
        return behind

    def _long_varints(self, positions: Longs) -> tuple[Longs, Longs]:
        """Return the result of `varints` for numbers of up to ten bytes, decoded byte by byte."""
        raw = np.zeros(len(positions), np.uint64)
        positions = positions.copy()
        unfinished = np.ones(len(positions), np.bool_)
        for shift in range(0, 70, 7):
            byte = self._bytes[positions]
            raw |= np.where(unfinished, (byte & 0x7F).astype(np.uint64) << np.uint64(shift), np.uint64(0))
            positions += unfinished
            unfinished &= byte >= 0x80
            if not unfinished.any():
                return ((raw >> _ONE) ^ (~(raw & _ONE) + _ONE)).view(np.int64), positions
        raise ValueError("a number has more than ten bytes")


#: The numbers of one byte, indexed by the byte.
_OF_ONE_BYTE = np.array([(byte >> 1) ^ -(byte & 1) for byte in range(0x80)], np.int64)

_SEVEN_BIT_JOINS = tuple(
    (np.uint64(keep), np.uint64(move), np.uint64(shift))
    for keep, move, shift in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)
