"""Blocks: where they end, their layout in a file, and the damage that is detected in them."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import CorruptTableError, UnsupportedFeatureError
from lakelsm.lookup.store.sort_block import (
    BlockCompression,
    BlockGroup,
    block_bytes,
    block_ends,
    plain_block,
    stored_block,
)


def reference_ends(sizes: Sequence[int], page_size: int) -> list[int]:
    """Compute the ends entry by entry: a block ends when its bytes, with its tail, are more than a page."""
    found, held = [], []
    for number, size in enumerate(sizes):
        held.append(size)
        memory = sum(held) + 5 + (4 * len(held) if len(set(held)) > 1 else 0)
        if memory > page_size:
            found.append(number + 1)
            held = []
    return found


@given(st.lists(st.sampled_from([4, 4, 4, 4, 5, 40]), max_size=60), st.integers(10, 90))
def test_a_block_ends_when_it_is_larger_than_a_page(sizes: list[int], page_size: int) -> None:
    assert block_ends(np.array(sizes, np.int64), page_size) == reference_ends(sizes, page_size)


def entry(key: bytes, value: bytes) -> bytes:
    return bytes([len(key)]) + key + bytes([len(value)]) + value


@given(st.lists(st.lists(st.tuples(st.binary(max_size=9), st.binary(max_size=9)), min_size=1, max_size=9), min_size=1))
def test_entries_of_many_blocks_are_found_in_one_step(blocks: list[list[tuple[bytes, bytes]]]) -> None:
    made = []
    for block in blocks:
        entries = [entry(*pair) for pair in block]
        made.append(np.frombuffer(block_bytes(b"".join(entries), np.array([len(e) for e in entries])), np.uint8))
    group = BlockGroup.of(made)
    assert group.counts.tolist() == [len(block) for block in blocks]
    positions = [(number, at) for number, block in enumerate(blocks) for at in range(len(block))][::-1]
    numbers, entries_ = (np.array(column) for column in zip(*positions))
    keys = group.keys(numbers, entries_)
    values = group.values(numbers, keys)
    for row, (number, at) in enumerate(positions):
        pair = [bytes(part.buffer[part.starts[row] :][: part.lengths[row]]) for part in (keys, values)]
        assert tuple(pair) == blocks[number][at]


@pytest.mark.parametrize("compression", BlockCompression)
@given(st.binary(max_size=300), st.integers(0, 60))
def test_stored_blocks_can_be_read_back(compression: BlockCompression, data: bytes, times: int) -> None:
    block = data * times
    assert plain_block(memoryview(stored_block(block, compression))).tobytes() == block


@pytest.mark.parametrize("compression", [BlockCompression.ZSTD, BlockCompression.LZ4])
def test_a_block_is_compressed_only_if_that_saves_more_than_an_eighth(compression: BlockCompression) -> None:
    noise = Random(1).randbytes(1000)
    assert stored_block(noise, compression)[-5] == 0
    assert stored_block(noise + bytes(1000), compression)[-5] == compression.value


@pytest.mark.parametrize("compression", BlockCompression)
def test_each_bit_of_a_stored_block_is_checked(compression: BlockCompression) -> None:
    stored = bytearray(stored_block(b"abcdefgh" * 20, compression))
    for bit in range(8 * len(stored)):
        stored[bit >> 3] ^= 1 << (bit & 7)
        with pytest.raises(CorruptTableError, match="checksum"):
            plain_block(memoryview(bytes(stored)))
        stored[bit >> 3] ^= 1 << (bit & 7)


def trailed(packed: bytes, code: int) -> memoryview:
    body = packed + bytes([code])
    return memoryview(body + zlib.crc32(body).to_bytes(4, "little"))


@pytest.mark.parametrize(
    ("packed", "code", "problem"),
    [
        (b"\x05abcde", 1, "cannot be decompressed"),
        (b"\xff\xff\xff\xff\x7fabc", 1, "its length is 34359738367 bytes"),
        (b"\x80", 1, "continues after its end"),
        (b"\x05abc", 2, "contradict"),
        (b"\x05" + bytes([3, 0, 0, 0, 6, 0, 0, 0]) + b"abc", 2, "contradict"),
        (b"\x05" + bytes([3, 0, 0, 0, 5, 0, 0, 0]) + b"\xff\xff\xff", 2, "cannot be decompressed|it has"),
    ],
)
def test_compressed_bytes_that_contradict_themselves_are_refused(packed: bytes, code: int, problem: str) -> None:
    with pytest.raises(CorruptTableError, match=problem):
        plain_block(trailed(packed, code))


def test_an_unknown_compression_is_refused_by_its_code() -> None:
    with pytest.raises(UnsupportedFeatureError, match="code is 3"):
        plain_block(trailed(b"\x05abc", 3))


@pytest.mark.parametrize(
    ("tail", "problem"),
    [
        ("00", "shorter than its tail"),
        ("0a000000 02", "an invalid tail"),
        ("ffffffff 01", "an invalid tail"),
        ("00000000 00", "an invalid tail"),
        ("ffffff7f 01", "more entries than bytes"),
        ("aabbcc 02000000 00", "do not fit its entry size"),
    ],
)
def test_tails_that_contradict_their_block_are_refused(tail: str, problem: str) -> None:
    with pytest.raises(CorruptTableError, match=problem):
        BlockGroup.of([np.frombuffer(bytes.fromhex(tail), np.uint8)])


@pytest.mark.parametrize("positions", ["07000000", "ffffffff"])
def test_entries_outside_their_block_are_refused(positions: str) -> None:
    group = BlockGroup.of([np.frombuffer(entry(b"k", b"v") + bytes.fromhex(positions + "01000000 01"), np.uint8)])
    with pytest.raises(CorruptTableError, match="outside its block"):
        group.keys(np.array([0]), np.array([0]))


def test_entries_that_continue_beyond_their_block_are_refused() -> None:
    group = BlockGroup.of([np.frombuffer(b"\x09k\x01v" + bytes.fromhex("04000000 00"), np.uint8)])
    with pytest.raises(CorruptTableError, match="continues beyond its block"):
        group.keys(np.array([0]), np.array([0]))
