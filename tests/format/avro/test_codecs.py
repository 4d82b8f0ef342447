"""Blocks of Avro files are compressed and decompressed in every codec, within a size limit."""

from __future__ import annotations

import lzma
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import CorruptTableError
from lakelsm.format.avro.codecs import CODEC_ERRORS, CODECS, compress, decompress, decompress_all
from lakelsm.format.avro.container import read_container, read_records
from tests.format.avro.avro_files import PACKERS, container, number

#: Far above the size limit of any small file.
BOMB = bytes(48 << 20)

PLAIN = st.binary(max_size=300) | st.builds(bytes, st.integers(0, 100_000))


@pytest.mark.parametrize("codec", CODECS)
@given(plain=PLAIN)
def test_a_block_fits_exactly_into_its_plain_size(codec: str, plain: bytes) -> None:
    packed = compress(codec, plain)
    assert decompress(codec, packed, len(plain)) == plain
    if plain:
        with pytest.raises(ValueError, match=r"^a block of \d+ bytes expands to more"):
            decompress(codec, packed, len(plain) - 1)


@pytest.mark.parametrize("codec", PACKERS)
def test_blocks_of_another_writer_are_read(codec: str) -> None:
    assert decompress(codec, PACKERS[codec](b"0123456789" * 9), 1000) == b"0123456789" * 9


def test_an_unknown_codec_of_a_block_is_named() -> None:
    with pytest.raises(ValueError, match="its codec lzo is unknown"):
        decompress("lzo", b"", 10)


def test_a_snappy_block_with_another_blocks_checksum_is_refused() -> None:
    one, other = compress("snappy", b"one"), compress("snappy", b"two")
    with pytest.raises(ValueError, match="the checksum of a snappy block differs"):
        decompress("snappy", one[:-4] + other[-4:], 10)


@pytest.mark.parametrize("codec", PACKERS)
def test_a_damaged_block_is_refused_by_name(codec: str) -> None:
    block = bytearray(PACKERS[codec](b"some plain bytes that are long enough" * 9))
    for at in (0, len(block) // 2, len(block) - 1):
        damaged = bytes([*block[:at], block[at] ^ 0xFF, *block[at + 1 :]])
        with pytest.raises(CorruptTableError, match=r"^m is not a readable Avro file"):
            read_records(read_container(container([(1, damaged)], codec), "m"))


@pytest.mark.parametrize("codec", PACKERS)
def test_a_block_that_expands_beyond_its_files_size_is_refused_in_little_memory(codec: str) -> None:
    # Snappy compresses at most 21 to 1, so it can only claim the size.
    packed = number(1 << 32)[:5] + bytes(100) if codec == "snappy" else PACKERS[codec](BOMB)
    data = container([(1, packed)], codec)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptTableError, match=r"^m is not a readable Avro file: a block of \d+ bytes expands"):
            read_container(data, "m")
        assert tracemalloc.get_traced_memory()[1] < len(BOMB)
    finally:
        tracemalloc.stop()


def test_the_memory_of_an_xz_block_is_limited() -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": 128 << 20, "mf": lzma.MF_HC3, "mode": lzma.MODE_FAST}]
    packed = lzma.compress(b"\2a", filters=filters)
    with pytest.raises(CorruptTableError, match=r"m is not a readable Avro file: .*[Mm]emory"):
        read_container(container([(1, packed)], "xz"), "m")
    best = read_container(container([(1, lzma.compress(b"\2a", preset=9))], "xz"), "m")
    assert read_records(best) == [{"x": b"a"}]


def test_several_frames_of_one_block_share_the_limit() -> None:
    frame = PACKERS["zstandard"](bytes(4 << 20))
    with pytest.raises(CorruptTableError, match="expands to more than"):
        read_container(container([(1, frame * 8)], "zstandard"), "m")
    small = read_container(
        container([(2, PACKERS["zstandard"](b"\2a") + PACKERS["zstandard"](b"\2b"))], "zstandard"), "m"
    )
    assert [record["x"] for record in read_records(small)] == [b"a", b"b"]


@pytest.mark.parametrize("codec", ["zstandard", "deflate", "bzip2", "xz"])
def test_a_truncated_compressed_block_is_refused(codec: str) -> None:
    packed = PACKERS[codec](b"\x14" + b"0123456789")
    assert read_records(read_container(container([(1, packed)], codec), "m")) == [{"x": b"0123456789"}]
    with pytest.raises(CorruptTableError, match="m is not a readable Avro file"):
        read_container(container([(1, packed[:-1])], codec), "m")


@pytest.mark.parametrize("codec", CODECS)
@given(parts=st.lists(PLAIN, max_size=4))
def test_blocks_are_decompressed_together_as_one_by_one(codec: str, parts: list[bytes]) -> None:
    packed = [compress(codec, plain) for plain in parts]
    room = sum(map(len, parts))
    assert [bytes(plain) for plain in decompress_all(codec, packed, room)] == parts
    if room:
        with pytest.raises(ValueError, match="expands to more"):
            decompress_all(codec, packed, room - 1)


def test_zstd_blocks_other_than_single_sized_frames_are_decompressed_one_by_one() -> None:
    one, other = compress("zstandard", b"one"), compress("zstandard", b"other")
    assert list(decompress_all("zstandard", [one + other, one], 100)) == [b"oneother", b"one"]
    with pytest.raises((*CODEC_ERRORS, EOFError)):
        decompress_all("zstandard", [one, other[:-1]], 100)
