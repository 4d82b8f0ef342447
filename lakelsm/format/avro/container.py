"""Avro object container files: framing, and a record-by-record codec by fastavro (docs/format.md 5.1).

Manifests, manifest lists and index manifests are such files. Fields are resolved by name; record names do not matter.
Callers ignore unknown fields.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar, cast

import fastavro
from fastavro.schema import SchemaParseException

from lakelsm.errors import CorruptTableError, UnsupportedFeatureError
from lakelsm.format.avro.codecs import CODEC_ERRORS, CODECS, compress, decompress_all
from lakelsm.format.avro.schema import check_decodable

Decoded = TypeVar("Decoded")

_MAGIC = b"Obj\x01"
_SYNC_SIZE = 16
#: Schemas of more bytes are not cached for the next file.
_MAX_KNOWN_BYTES = 1 << 16
#: Uncompressed size of written blocks. Manifests are decoded with one lane for each block (`format.avro.lanes`): with
#: 16 KiB, lanes are faster from about 1,000 entries on, and compression is 3 % worse than with 64 KiB (measured).
BLOCK_BYTES = 16 * 1024
#: Limit of a file's decompressed bytes: this constant plus the file's size times the factor. Manifests expand 8 to 50
#: times (measured), and 260 times if all statistics of 2,000 columns are null.
_MIN_PLAIN_BYTES = 8 << 20
_MAX_EXPANSION = 256
#: Limit of a file's records: this constant plus one for each `_RECORD_BYTES` bytes. A record of a writer takes 20 bytes
#: if all names share a uuid; it takes 2 bytes if names are numbered and everything else is equal (measured).
_MIN_RECORDS = 10_000
_RECORD_BYTES = 2
#: Exceptions of fastavro and of the framing below for damaged bytes.
DECODE_ERRORS = (
    ValueError,
    EOFError,
    KeyError,
    IndexError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
    struct.error,
    SchemaParseException,
    *CODEC_ERRORS,
)

Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Block:
    """One data block: ``count`` records in ``data``, decompressed."""

    count: int
    data: bytes | memoryview


@dataclass(frozen=True)
class Container:
    """A decoded container file. ``schema`` is the writer's, without logical types, so that values stay plain.

    ``metadata`` is from the header.
    """

    source: str
    schema: Schema
    blocks: tuple[Block, ...]
    metadata: Mapping[str, bytes]

    @property
    def record_count(self) -> int:
        """Number of records in all blocks."""
        return sum(block.count for block in self.blocks)


def write_container(
    schema: Schema,
    records: Iterable[Mapping[str, Any]],
    compression: str,
    block_bytes: int = BLOCK_BYTES,
    metadata: Mapping[str, str] | None = None,
) -> bytes:
    """Encode ``records`` with ``schema`` as a container file.

    A block is closed once it has ``block_bytes`` uncompressed bytes. ``metadata`` is added to Avro's own in the header.

    ``compression`` is an Avro codec (see `CODECS`); none and zstd mean null and zstandard.
    Raises UnsupportedFeatureError for other codecs.
    """
    codec = {"zstd": "zstandard", "none": "null"}.get(compression.lower(), compression.lower())
    if codec not in CODECS:
        raise UnsupportedFeatureError(f"option 'manifest.compression': {compression!r} is not supported. Use 'zstd'.")
    out = io.BytesIO()
    fastavro.writer(
        out,
        dict(schema),
        cast("Iterable[Any]", records),
        codec="null",
        sync_interval=block_bytes,
        metadata=dict(metadata or {}),
        sync_marker=bytes(_SYNC_SIZE),
        disable_tuple_notation=True,
    )
    return _packed(out.getvalue(), codec)


def _packed(plain: bytes, codec: str) -> bytes:
    """Return the container file with compressed blocks.

    The sync marker is a hash of the content: as good as a random one, and the same records give the same bytes.
    """
    meta, position = _read_header(plain)
    sync = hashlib.blake2b(plain, digest_size=_SYNC_SIZE).digest()
    position += _SYNC_SIZE
    meta["avro.codec"] = codec.encode()
    parts = [_MAGIC, _long(len(meta))]
    for key, value in meta.items():
        parts += [_long(len(key)), key.encode(), _long(len(value)), value]
    parts += [_long(0), sync]
    while position < len(plain):
        count, position = _read_long(plain, position)
        size, position = _read_long(plain, position)
        block = compress(codec, plain[position : position + size])
        parts += [_long(count), _long(len(block)), block, sync]
        position += size + _SYNC_SIZE
    return b"".join(parts)


def _long(value: int) -> bytes:
    """Return a number of 0 or more as a zigzag varint."""
    rest, out = value << 1, bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def read_container(data: bytes, source: str) -> Container:
    """Parse the framing of a container file and decompress its blocks.

    Raises CorruptTableError naming ``source`` if the bytes are not a complete container file.
    """
    try:
        return _parse(data, source)
    except DECODE_ERRORS as error:
        raise CorruptTableError(f"{source} is not a readable Avro file: {error}") from error


def read_records(container: Container) -> list[dict[str, Any]]:
    """Decode every record with fastavro, in file order: one dict per record.

    Raises CorruptTableError naming the source if a block does not decode to its end.
    """
    records: list[dict[str, Any]] = []
    try:
        schema = fastavro.parse_schema(dict(container.schema))
        for block in container.blocks:
            stream = io.BytesIO(block.data)
            for _ in range(block.count):
                records.append(cast("dict[str, Any]", fastavro.schemaless_reader(stream, schema, None)))
            if stream.tell() != len(block.data):
                raise ValueError(f"a block has {len(block.data) - stream.tell()} bytes after its records")
    except DECODE_ERRORS as error:
        raise CorruptTableError(f"{container.source} is not a readable Avro file: {error}") from error
    return records


def decode_records(
    container: Container, version: int, decode: Callable[[Mapping[str, Any]], Decoded], kind: str
) -> list[Decoded]:
    """Decode every record of a file, in file order; ``kind`` is the kind of file in messages.

    Raises CorruptTableError naming the source if a block or a record is damaged, and UnsupportedFeatureError if a
    record's ``_VERSION`` is not ``version``, as Java Paimon does.
    """
    records = read_records(container)
    try:
        for record in records:
            if record["_VERSION"] != version:
                raise refuse_version(record["_VERSION"], version, container.source)
        return [decode(record) for record in records]
    except DECODE_ERRORS as error:
        raise CorruptTableError(f"{container.source} is not a valid {kind}: {error!r} is missing or wrong.") from error


def refuse_version(found: int, expected: int, source: str) -> UnsupportedFeatureError:
    """Return the error for entries of another ``_VERSION``."""
    return UnsupportedFeatureError(f"{source} has entries of version {found}; lakelsm reads only {expected}.")


def _parse(data: bytes, source: str) -> Container:
    if data[:4] != _MAGIC:
        raise ValueError("it does not begin with the magic bytes of an Avro file")
    meta, position = _read_header(data)
    text = meta["avro.schema"]
    schema = _known_schema(text) if len(text) <= _MAX_KNOWN_BYTES else _checked_schema(text)
    codec = meta.get("avro.codec", b"null").decode()
    sync = data[position : position + _SYNC_SIZE]
    position += _SYNC_SIZE
    if len(sync) != _SYNC_SIZE:
        raise EOFError("the header is truncated")
    packed: list[bytes] = []
    counts: list[int] = []
    records = _MIN_RECORDS + len(data) // _RECORD_BYTES
    while position < len(data):
        count, position = _read_long(data, position)
        size, position = _read_long(data, position)
        end = position + size
        if count < 0 or size < 0 or data[end : end + _SYNC_SIZE] != sync:
            raise ValueError("a block is truncated or damaged")
        packed.append(data[position:end])
        counts.append(count)
        position = end + _SYNC_SIZE
    blocks = []
    for count, plain in zip(counts, decompress_all(codec, packed, _MIN_PLAIN_BYTES + _MAX_EXPANSION * len(data))):
        records -= count
        if count > len(plain) or records < 0:
            raise ValueError(f"a block claims {count} records, more than its bytes can contain")
        blocks.append(Block(count, plain))
    return Container(source, schema, tuple(blocks), meta)


def _checked_schema(text: bytes) -> Any:
    schema = _without_logical_types(json.loads(text))
    check_decodable(schema)
    return schema


#: Cached: files of one kind have one schema, and a table has many files. Callers do not change the result.
_known_schema = lru_cache(maxsize=64)(_checked_schema)


def _read_header(data: bytes) -> tuple[dict[str, bytes], int]:
    """Return the metadata map of the header and the position after it."""
    meta: dict[str, bytes] = {}
    count, position = _read_long(data, len(_MAGIC))
    while count:
        if count < 0:
            count = -count
            _, position = _read_long(data, position)
        for _ in range(count):
            key, position = _read_bytes(data, position)
            meta[key.decode()], position = _read_bytes(data, position)
        count, position = _read_long(data, position)
    return meta, position


def _read_bytes(data: bytes, position: int) -> tuple[bytes, int]:
    size, position = _read_long(data, position)
    if size < 0 or position + size > len(data):
        raise EOFError("the header is truncated")
    return data[position : position + size], position + size


def _read_long(data: bytes, position: int) -> tuple[int, int]:
    """Decode one zigzag varint. Return it and the position after it."""
    shift = value = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
        if shift > 63:
            raise ValueError("a number has more than ten bytes")


def _without_logical_types(schema: Any) -> Any:
    """Return the schema without ``logicalType``, so that times stay plain integers."""
    if isinstance(schema, list):
        return [_without_logical_types(branch) for branch in schema]
    if isinstance(schema, dict):
        return {
            key: _without_logical_types(value) if key in ("type", "items", "values", "fields") else value
            for key, value in schema.items()
            if key != "logicalType"
        }
    return schema
