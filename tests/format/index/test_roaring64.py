"""64-bit bitmaps have the bytes of Java's Roaring64Bitmap. All bytes here are Java's (RoaringBitmap 1.2.1)."""

from __future__ import annotations

import hashlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from lakelsm.format.index.roaring64 import decode_roaring64, encode_roaring64

EMPTY = ("00", [])
ONE = (
    "0101000000000000000400000000000000000000000000000000000100"
    "0000fe01000000010201000000010001000000000000000000000000000000",
    [1],
)
FAR_APART = (
    "010300000000000000000200000000ff0000020001000000010004000000000000000000000000000000000004000000000001000000"
    "010000000000000004000000ffffffffffff020000000000000001000000fe03000000010201000000010001020100000000000102"
    "01000000ffff03000000000000000000000002000000",
    [1, 2**40, 2**64 - 1],
)
RUNS = (
    "010200000000000000000200030000000000020004000000000000000000000000000000000004000000000000020000010000000000"
    "000001000000fe02000000010064000000010000006300010005000000010000000400020000000000000000000000"
    "01000000",
    [*range(100), *range(2**33, 2**33 + 5)],
)
#: Java reserves space for a sixth container.
ROOM_LEFT = (
    "01050000000000000001050005000000000000000009040301000000000000000000040000000000000000000000000000000000"
    "04000000000000000001010000000000000004000000000000000003020000000000000004000000000000000004030000000000"
    "000004000000000000000009040000000000000001000000fe060000000102010000000000010201000000000001020100000000"
    "00010201000000000001020100000000000005000000000000000000000004000000",
    [at << 16 for at in (0, 1, 3, 4, 9)],
)
#: Larger bitmaps, with the SHA-256 of Java's bytes.
DIGESTS = {
    "9d105ac5d2974df639d49db39b8773facf3d8edc512a75781dd911244f82e02d": [(at * 5 << 32) + at for at in range(28)],
    "0bdf5c86af5cdc4c2ba9b2d37c2c3a0e73f8a02e67426ce49ca35147b6795e61": [(at * 2 << 16) + at for at in range(94)],
    "b39541e08996e61e47a77933a361297574c29c134b9bd7d6f71c94330f5e8155": [2 * at + 2**48 for at in range(5000)],
}


@pytest.mark.parametrize(("java", "numbers"), [EMPTY, ONE, FAR_APART, RUNS, ROOM_LEFT])
def test_javas_bytes_are_read(java: str, numbers: list[int]) -> None:
    assert list(decode_roaring64(bytes.fromhex(java))) == numbers


@pytest.mark.parametrize(("java", "numbers"), [EMPTY, ONE, FAR_APART, RUNS])
def test_written_bytes_are_javas(java: str, numbers: list[int]) -> None:
    assert encode_roaring64(BitMap64(numbers)).hex() == java


@pytest.mark.parametrize(
    ("digest", "numbers"), DIGESTS.items(), ids=["a node of 48", "a node of 256", "a container of bits"]
)
def test_large_bitmaps_have_javas_bytes(digest: str, numbers: list[int]) -> None:
    data = encode_roaring64(BitMap64(numbers))
    assert hashlib.sha256(data).hexdigest() == digest
    assert list(decode_roaring64(data)) == numbers


@st.composite
def number_sets(draw: st.DrawFn) -> set[int]:
    """Draw numbers with common prefixes of any length, in containers of all three kinds."""
    found: set[int] = set()
    for _ in range(draw(st.integers(0, 3))):
        base = draw(st.integers(0, 2**64 - 1))
        shift = draw(st.integers(0, 56))
        some = draw(st.lists(st.integers(0, 255), max_size=100))
        found |= {base ^ (number << shift) for number in some}
    start = draw(st.integers(0, 2**64 - 20_000))
    step = draw(st.sampled_from([1, 2, 3]))
    return found | set(range(start, start + draw(st.sampled_from([0, 5, 20_000])), step))


@given(number_sets())
def test_written_bitmaps_are_read_back(numbers: set[int]) -> None:
    assert set(decode_roaring64(encode_roaring64(BitMap64(numbers)))) == numbers


def test_a_container_of_few_bits_and_an_empty_one_are_read() -> None:
    one = bytes.fromhex(ONE[0])
    array = b"\x02" + (1).to_bytes(4, "little") + b"\x01\x00"
    assert one.count(array) == 1
    bits = b"\x01" + (2).to_bytes(4, "little") + b"\x06" + bytes(8191)
    assert list(decode_roaring64(one.replace(array, bits))) == [1, 2]
    assert list(decode_roaring64(one.replace(array, b"\x00" + bytes(4) + b"\x00\x00"))) == []


@given(st.binary(max_size=80) | st.binary(max_size=80).map(lambda data: b"\x01\x01" + bytes(7) + data))
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    with suppress(ValueError):
        assert decode_roaring64(encode_roaring64(bitmap := decode_roaring64(data))) == bitmap


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: b"", "1 bytes are missing"),
        (lambda data: b"\x02" + data[1:], "not 0 or 1"),
        (lambda data: data[:-1], "bytes are missing"),
        (lambda data: data[:1] + b"\x02" + data[2:], "1 keys instead of 2"),
        (lambda data: data[:9] + b"\x07" + data[10:], "a node has the unknown kind 7"),
        (lambda data: data[:19] + b"\x09" + data[20:], "container 9 is missing"),
        (lambda data: data.replace(b"\x01\x02\x01\x00\x00\x00", b"\x01\x05\x01\x00\x00\x00"), "a container has kind 5"),
        (lambda data: bytes(BitMap64([1]).serialize()), "bytes are missing|starts with"),
    ],
)
def test_broken_bytes_are_refused_with_the_reason(change: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode_roaring64(change(bytes.fromhex(ONE[0])))  # type: ignore[operator]
