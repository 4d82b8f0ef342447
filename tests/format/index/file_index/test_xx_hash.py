"""XXH64 of many byte strings together equals a plain implementation."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.format.index.file_index.xx_hash import xx_hash64

_MASK = 2**64 - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (64 - bits)) & _MASK


def _round(state: int, data: bytes) -> int:
    return _rotated((state + int.from_bytes(data, "little") * _P2) & _MASK, 31) * _P1 & _MASK


def plain_xxh64(data: bytes) -> int:
    """Return XXH64 with seed 0, computed by its specification."""
    at, state = 0, _P5
    if len(data) >= 32:
        lanes = [_P1 + _P2 & _MASK, _P2, 0, -_P1 & _MASK]
        while at + 32 <= len(data):
            lanes = [_round(lane, data[at + 8 * n : at + 8 * n + 8]) for n, lane in enumerate(lanes)]
            at += 32
        state = sum(map(_rotated, lanes, (1, 7, 12, 18))) & _MASK
        for lane in lanes:
            state = ((state ^ _round(0, lane.to_bytes(8, "little"))) * _P1 + _P4) & _MASK
    state = (state + len(data)) & _MASK
    while at + 8 <= len(data):
        state = (_rotated(state ^ _round(0, data[at : at + 8]), 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= len(data):
        word = int.from_bytes(data[at : at + 4], "little")
        state = (_rotated(state ^ word * _P1 & _MASK, 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        state = _rotated(state ^ byte * _P5 & _MASK, 11) * _P1 & _MASK
    state = (state ^ state >> 33) * _P2 & _MASK
    state = (state ^ state >> 29) * _P3 & _MASK
    return state ^ state >> 32


@pytest.mark.parametrize(
    ("data", "known"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_published_hashes(data: bytes, known: int) -> None:
    assert plain_xxh64(data) == known
    assert xx_hash64(pa.array([data], pa.binary())).tolist() == [known]


@given(st.lists(st.binary(max_size=150)), st.integers(0, 3))
def test_strings_of_any_lengths_are_hashed_together_as_separately(strings: list[bytes], skipped: int) -> None:
    found = xx_hash64(pa.array(strings, pa.binary()).slice(skipped))
    assert found.tolist() == [plain_xxh64(data) for data in strings[skipped:]]
