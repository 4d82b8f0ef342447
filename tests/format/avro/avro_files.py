"""Hand-made Avro container files for the tests of the readers."""

from __future__ import annotations

import bz2
import json
import lzma
import sys
import zlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ONE_FIELD = {"type": "record", "name": "r", "fields": [{"name": "x", "type": "bytes"}]}
SYNC = bytes(range(16))


def number(value: int) -> bytes:
    """Return Avro's zigzag number."""
    raw, out = (value << 1) ^ (value >> 63), bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes([*out, raw])


def container(blocks: list[tuple[int, bytes]], codec: str = "null", schema: Any = ONE_FIELD) -> bytes:
    """Return a file of blocks, given as (claimed records, stored bytes)."""
    meta = {"avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode()}
    entries = b"".join(number(len(part)) + part for pair in meta.items() for part in (pair[0].encode(), pair[1]))
    head = b"Obj\x01" + number(len(meta)) + entries + number(0) + SYNC
    return head + b"".join(number(count) + number(len(data)) + data + SYNC for count, data in blocks)


def deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(9, wbits=-15)
    return packer.compress(data) + packer.flush()


def snappy(data: bytes) -> bytes:
    packed: bytes = pa.compress(data, codec="snappy", asbytes=True)
    return packed + zlib.crc32(data).to_bytes(4, "big")


#: The compression of a block by another writer, for each codec.
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "bzip2": bz2.compress,
    "deflate": deflated,
    "snappy": snappy,
    "xz": lambda data: lzma.compress(data, preset=0),
    "zstandard": zstd.compress,
}


def record(name: str, *types: Any) -> dict[str, Any]:
    """Return the schema of a record with fields f0, f1 … of these types."""
    return {"type": "record", "name": name, "fields": [{"name": f"f{i}", "type": t} for i, t in enumerate(types)]}
