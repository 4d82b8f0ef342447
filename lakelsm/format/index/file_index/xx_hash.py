"""XXH64 with seed 0 of many texts or byte strings together (the hash of Paimon's bloom filters)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

ULongs = npt.NDArray[np.uint64]

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_STRIPE = 32
_LANES = _STRIPE // 8


def xx_hash64(values: pa.Array) -> ULongs:
    """Return the hashes of the values of a string or binary array without nulls.

    All values advance together, one stripe of 32 bytes at a time, whatever their lengths.
    """
    offsets = np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, values.offset * 4).astype(np.int64)
    data = values.buffers()[2]
    content = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    lengths = offsets[1:] - offsets[:-1]
    longest_first = np.argsort(-lengths, kind="stable")
    hashes = np.empty(len(values), np.uint64)
    hashes[longest_first] = _hashed(content, offsets[:-1][longest_first], lengths[longest_first])
    return hashes


def _hashed(content: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> ULongs:
    """Return the hashes of byte strings at ``offsets`` of ``content``, sorted by falling length."""
    state = np.full(len(lengths), _P5, np.uint64)
    long = int(np.count_nonzero(lengths >= _STRIPE))
    offsets = offsets.copy()
    if long:
        state[:long] = _stripes(content, offsets, lengths[:long])
    state += lengths.astype(np.uint64)
    left = lengths % _STRIPE
    for _ in range(_STRIPE // 8 - 1):
        here = np.flatnonzero(left >= 8)
        words = _words(content, offsets[here], 8)[:, 0]
        state[here] = _rotated(state[here] ^ _round(np.uint64(0), words), 27) * _P1 + _P4
        offsets[here] += 8
        left[here] -= 8
    here = np.flatnonzero(left >= 4)
    state[here] = _rotated(state[here] ^ _words(content, offsets[here], 4, "<u4")[:, 0] * _P1, 23) * _P2 + _P3
    offsets[here] += 4
    left[here] -= 4
    for _ in range(3):
        here = np.flatnonzero(left)
        state[here] = _rotated(state[here] ^ content[offsets[here]] * _P5, 11) * _P1
        offsets[here] += 1
        left[here] -= 1
    state ^= state >> np.uint64(33)
    state *= _P2
    state ^= state >> np.uint64(29)
    state *= _P3
    state ^= state >> np.uint64(32)
    return state


def _stripes(content: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> ULongs:
    """Return the state after all complete stripes of strings with at least one; ``offsets`` move behind the stripes."""
    zero = np.zeros(1, np.uint64)
    lanes = np.repeat(np.stack([zero + _P1 + _P2, zero + _P2, zero, zero - _P1], axis=1), len(lengths), axis=0)
    counts = lengths // _STRIPE
    # Strings are sorted by falling length, so those with more stripes are a prefix.
    ends = np.searchsorted(-counts, -np.arange(1, int(counts[0]) + 1), side="right")
    for active in ends.tolist():
        lanes[:active] = _round(lanes[:active], _words(content, offsets[:active], _STRIPE))
        offsets[:active] += _STRIPE
    state: ULongs = np.zeros(len(lengths), np.uint64)
    for lane, bits in enumerate((1, 7, 12, 18)):
        state += _rotated(lanes[:, lane], bits)
    for lane in range(_LANES):
        state = (state ^ _round(np.uint64(0), lanes[:, lane])) * _P1 + _P4
    return state


def _words(content: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], width: int, kind: str = "<u8") -> ULongs:
    """Return the words of ``width`` bytes at each offset, one row for each."""
    found = content[offsets[:, None] + np.arange(width)]
    words: ULongs = found.view(kind).astype(np.uint64, copy=False)
    return words


def _round(state: Any, words: ULongs) -> ULongs:
    mixed: ULongs = _rotated(state + words * _P2, 31) * _P1
    return mixed


def _rotated(words: ULongs, bits: int) -> ULongs:
    rotated: ULongs = (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))
    return rotated
