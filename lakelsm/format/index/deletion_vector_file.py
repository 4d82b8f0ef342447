"""Index files of deletion vectors: the row indexes of deleted rows of data files (docs/format.md 13.5).

A file is a version byte and vectors. A vector is its length, a magic number, a bitmap and a checksum. Only the index
manifest knows the offset of each vector (`DeletionVectorRange`). The magic number distinguishes two layouts of the
bitmap: Java's default of 32 bits, and one of 64 bits (``deletion-vectors.bitmap64``) that Iceberg also reads.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

from pyroaring import BitMap

from lakelsm.format.index.index_manifest import DeletionVectorRange

#: The first byte of an index file. Persisted: do not change
VERSION = b"\x01"
# All of these are persisted: do not change.
_MAGIC_32 = struct.pack(">i", 1581511376)
_MAGIC_64 = struct.pack("<i", 1681511377)
_LENGTH = struct.Struct(">i")
_CHECKSUM = struct.Struct(">I")
_MAPS = struct.Struct("<Q")

#: Bytes of a vector that its length does not count: the length field and the checksum.
FRAME_BYTES = _LENGTH.size + _CHECKSUM.size


def decode_vector(data: bytes, length: int) -> BitMap:
    """Return the masked row indexes of the vector at the start of ``data``; ``length`` is that of the index manifest.

    Raises ValueError, with the reason, unless ``data`` begins with a complete vector of that length.
    """
    if len(data) < FRAME_BYTES + 4:
        raise ValueError("the vector is missing")
    (recorded_length,) = _LENGTH.unpack_from(data)
    magic = data[4:8]
    if magic not in (_MAGIC_32, _MAGIC_64):
        raise ValueError(f"its magic number {magic.hex()} is unknown")
    expected = length if magic == _MAGIC_32 else length - FRAME_BYTES
    if recorded_length != expected:
        raise ValueError(f"it has {recorded_length} bytes, but the index manifest says {expected}")
    body = data[4 : 4 + recorded_length]
    checksum = data[4 + recorded_length : FRAME_BYTES + recorded_length]
    if recorded_length < 4 or len(checksum) < _CHECKSUM.size:
        raise ValueError(f"its {recorded_length} bytes and its checksum extend beyond the index file")
    if zlib.crc32(body) != _CHECKSUM.unpack(checksum)[0]:
        raise ValueError("its checksum differs")
    try:
        return BitMap.deserialize(body[4:]) if magic == _MAGIC_32 else _lowest_map(body[4:])
    except ValueError as error:
        raise ValueError(f"its bitmap cannot be decoded ({error})") from error


def encode_vectors(
    vectors: Mapping[str, BitMap], bitmap64: bool = False
) -> tuple[bytes, tuple[DeletionVectorRange, ...]]:
    """Return the bytes of an index file with the vectors of data files by name, and the range of each vector in it."""
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
    """Return magic number and bitmap, with compressed runs."""
    shrunk = positions.copy()
    shrunk.run_optimize()
    portable = bytes(shrunk.serialize())
    if not bitmap64:
        return _MAGIC_32 + portable
    return _MAGIC_64 + (_MAPS.pack(1) + b"\0\0\0\0" + portable if positions else _MAPS.pack(0))


def _lowest_map(data: bytes) -> BitMap:
    """Return the 64-bit bitmap. Only numbers below 2^32 are allowed: a data file has no more rows."""
    if len(data) < _MAPS.size:
        raise ValueError("its number of parts is missing")
    (maps,) = _MAPS.unpack_from(data)
    if not maps:
        return BitMap()
    key = data[_MAPS.size : _MAPS.size + 4]
    if maps > 1 or key != b"\0\0\0\0":
        raise ValueError("it masks rows from 2^32 on, more than a data file can have")
    return BitMap.deserialize(data[_MAPS.size + 4 :])
