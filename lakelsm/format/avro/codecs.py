"""Codecs for the blocks of Avro container files, in both directions. Decoded blocks have a size limit."""

from __future__ import annotations

import bz2
import lzma
import sys
import zlib
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Protocol, cast

import pyarrow as pa

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

#: Exceptions of the codecs for damaged bytes, in addition to ValueError and EOFError.
CODEC_ERRORS = (OSError, lzma.LZMAError, zlib.error, zstd.ZstdError, pa.ArrowException)


class _Decompressor(Protocol):
    """A decoder of one compressed stream."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


def compress(codec: str, plain: bytes) -> bytes:
    """Return the compressed block. ``codec`` is one of `CODECS`."""
    return CODECS[codec](plain)


def decompress_all(codec: str, blocks: Sequence[bytes], room: int) -> list[bytes | memoryview]:
    """Return the plain bytes of each block. Raises ValueError, before it allocates them, if they exceed ``room`` bytes.

    Blocks of zstd, the usual codec of manifests, are decoded together: to begin a frame takes as long as to decode it.
    """
    joined = _joined_frames(blocks, room) if codec == "zstandard" else None
    if joined is not None:
        return joined
    plain: list[bytes | memoryview] = []
    for block in blocks:
        plain.append(decompress(codec, block, room))
        room -= len(plain[-1])
    return plain


def _joined_frames(blocks: Sequence[bytes], room: int) -> list[bytes | memoryview] | None:
    """Return the plain bytes of blocks that are single frames with a recorded length; None for other blocks."""
    try:
        recorded: list[int | None] = [zstd.get_frame_info(block).decompressed_size for block in blocks]
        sizes = [size for size in recorded if size is not None]
        if len(sizes) < len(blocks) or sum(sizes) > room:
            return None
        plain = memoryview(pa.Codec("zstd").decompress(b"".join(blocks), sum(sizes)))
    except CODEC_ERRORS:
        return None  # Decoding the blocks one by one reports the damage.
    ends = list(accumulate(sizes))
    return [plain[start:end] for start, end in zip([0, *ends], ends)] if len(plain) == sum(sizes) else None


def decompress(codec: str, block: bytes, room: int) -> bytes:
    """Return the plain bytes of a block. Raises ValueError, before it allocates them, if they exceed ``room`` bytes."""
    if codec == "null":
        plain = block
    elif codec == "deflate":
        plain = _deflated(block, room)
    elif codec == "snappy":
        plain = _snappy(block, room)
    elif codec in _STREAMS:
        plain = _streamed(_STREAMS[codec], block, room)
    else:
        raise ValueError(f"its codec {codec} is unknown")
    if len(plain) > room:
        raise _too_large(block)
    return plain


def _too_large(block: bytes) -> ValueError:
    return ValueError(f"a block of {len(block)} bytes expands to more than a manifest of its size can contain")


def _deflated(block: bytes, room: int) -> bytes:
    """Decode raw deflate, up to one byte more than ``room``."""
    decompressor = zlib.decompressobj(-15)
    plain = decompressor.decompress(block, room + 1)
    if len(plain) <= room and not decompressor.eof:
        raise EOFError("a compressed block is truncated")
    return plain


def _streamed(new: Callable[[], _Decompressor], block: bytes, room: int) -> bytes:
    """Decode consecutive streams or frames, up to one byte more than ``room``."""
    parts: list[bytes] = []
    while True:
        decompressor = new()
        parts.append(decompressor.decompress(block, room + 1))
        room -= len(parts[-1])
        if room < 0:
            break
        if not decompressor.eof:
            raise EOFError("a compressed block is truncated")
        block = decompressor.unused_data
        if not block:
            break
    return b"".join(parts)


def _snappy(block: bytes, room: int) -> bytes:
    """Decode Avro's snappy block: raw snappy, then the CRC-32 of the plain bytes (big-endian)."""
    plain_size, shift = 0, 0
    for byte in block[:5]:
        plain_size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if plain_size > room:
        raise _too_large(block)
    plain = cast("bytes", pa.decompress(block[:-4], plain_size, codec="snappy", asbytes=True))
    if zlib.crc32(plain) != int.from_bytes(block[-4:], "big"):
        raise ValueError("the checksum of a snappy block differs")
    return plain


def _to_deflated(plain: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(plain) + compressor.flush()


def _to_snappy(plain: bytes) -> bytes:
    return cast("bytes", pa.compress(plain, codec="snappy", asbytes=True)) + zlib.crc32(plain).to_bytes(4, "big")


#: Memory limit of xz. The block states the size of its dictionary; level 9, the highest, needs 65 MB.
_XZ_MEMORY = 80 << 20

_STREAMS: dict[str, Callable[[], _Decompressor]] = {
    "bzip2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY),
    "zstandard": zstd.ZstdDecompressor,
}
#: Avro's codecs by their names in files, each with the function that compresses a block. Persisted: do not change.
CODECS: dict[str, Callable[[bytes], bytes]] = {
    "bzip2": bz2.compress,
    "deflate": _to_deflated,
    "null": bytes,
    "snappy": _to_snappy,
    "xz": lzma.compress,
    "zstandard": zstd.compress,
}
