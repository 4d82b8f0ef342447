"""Index files of deletion vectors: for data files, the positions of the rows that are deleted (docs/format.md 13.5).

A file is a version byte and vectors, each its length, a magic number, a bitmap and a checksum. Where a vector begins
is in the index manifest only (`DeletionVectorRange`). The magic number distinguishes two layouts of the bitmap:
Java's default of 32 bits, and one of 64 bits (``deletion-vectors.bitmap64``) that Iceberg reads too.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

from pyroaring import BitMap

from lakelsm.format.index.index_manifest import DeletionVectorRange

#: The first byte of an index file. Persisted: do not change
VERSION = b"\x01"
# Persisted, all of them: do not change.
_MAGIC_32 = struct.pack(">i", 1581511376)
_MAGIC_64 = struct.pack("<i", 1681511377)
_LENGTH = struct.Struct(">i")
_CHECKSUM = struct.Struct(">I")
_MAPS = struct.Struct("<Q")

#: Bytes around a vector that its length does not count: the length itself and the checksum.
FRAME_BYTES = _LENGTH.size + _CHECKSUM.size


def decode_vector(data: bytes, length: int) -> BitMap:
    """The masked positions of a vector that begins with ``data``; ``length`` is that of the index manifest.

    Raises ValueError, saying what is wrong, for anything but a whole vector of that length.
    """
    if len(data) < FRAME_BYTES + 4:
        raise ValueError("there is no vector")
    (bytes_said,) = _LENGTH.unpack_from(data)
    magic = data[4:8]
    if magic not in (_MAGIC_32, _MAGIC_64):
        raise ValueError(f"its magic number is {magic.hex()}, which no known layout has")
    expected = length if magic == _MAGIC_32 else length - FRAME_BYTES
    if bytes_said != expected:
        raise ValueError(f"it has {bytes_said} bytes, but the index manifest says {expected}")
    body = data[4 : 4 + bytes_said]
    checksum = data[4 + bytes_said : FRAME_BYTES + bytes_said]
    if bytes_said < 4 or len(checksum) < _CHECKSUM.size:
        raise ValueError(f"its {bytes_said} bytes and a checksum reach beyond the end of the index file")
    if zlib.crc32(body) != _CHECKSUM.unpack(checksum)[0]:
        raise ValueError("its bytes do not have the checksum that follows them")
    try:
        return BitMap.deserialize(body[4:]) if magic == _MAGIC_32 else _lowest_map(body[4:])
    except ValueError as error:
        raise ValueError(f"its bitmap cannot be decoded ({error})") from error


def encode_vectors(
    vectors: Mapping[str, BitMap], bitmap64: bool = False
) -> tuple[bytes, tuple[DeletionVectorRange, ...]]:
    """The bytes of an index file of the vectors of data files by name, and where each vector lies in it."""
    parts, ranges, offset = [VERSION], [], len(VERSION)
    for name, positions in vectors.items():
        body = _body(positions, bitmap64)
        vector = _LENGTH.pack(len(body)) + body + _CHECKSUM.pack(zlib.crc32(body))
        length = len(vector) if bitmap64 else len(body)
        ranges.append(DeletionVectorRange(name, offset, length, len(positions)))
        parts.append(vector)
        offset += len(vector)
    return b"".join(parts), tuple(ranges)


def _body(positions: BitMap, bitmap64: bool) -> bytes:
    """Magic number and bitmap, runs compressed."""
    shrunk = positions.copy()
    shrunk.run_optimize()
    portable = bytes(shrunk.serialize())
    if not bitmap64:
        return _MAGIC_32 + portable
    return _MAGIC_64 + (_MAPS.pack(1) + b"\0\0\0\0" + portable if positions else _MAPS.pack(0))


def _lowest_map(data: bytes) -> BitMap:
    """The bitmap of 64 bits, which may have numbers below 2^32 alone: a data file has no more rows."""
    if len(data) < _MAPS.size:
        raise ValueError("its number of parts is missing")
    (maps,) = _MAPS.unpack_from(data)
    if not maps:
        return BitMap()
    key = data[_MAPS.size : _MAPS.size + 4]
    if maps > 1 or key != b"\0\0\0\0":
        raise ValueError("it masks rows from 2^32 on, and no data file that can be read has so many")
    return BitMap.deserialize(data[_MAPS.size + 4 :])
