"""Writes a sort store's file in one pass: data blocks, bloom filter, index block, footer (docs/format.md 20)."""

from __future__ import annotations

import struct
import zlib
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from lakelsm.format.row.binary_row_slots import Longs, byte_layout
from lakelsm.format.row.bucket_hash import hash_bytes
from lakelsm.format.row.row_bytes import RowBytes, join_bytes, varint_bytes
from lakelsm.lookup.store.sort_block import (
    TRAILER_BYTES,
    BlockForm,
    block_bytes,
    block_ends,
    stored_block,
)
from lakelsm.lookup.store.store_bloom import Hashes, StoreBloom

MAGIC = 1481571681  # Persisted: do not change
#: Offset, bytes and keys of the bloom filter; offset and bytes of the index block; magic. Persisted: do not change
FOOTER = struct.Struct("<qiqqii")
DIGEST_BYTES = 16  # Persisted: do not change


class SortFileWriter:
    """Takes keys in ascending order, with their values, as byte strings.

    Memory: a batch, a block, and 4 bytes for each key if there is a bloom filter. With a ``digest``
    (`StoreLayout.digest`) the file has it and a checksum of the bloom filter; without it, the file has Java's bytes.
    """

    def __init__(self, file: BinaryIO, form: BlockForm, digest: bytes | None = None) -> None:
        self._file = file
        self._form = form
        self._digest = digest
        self._position = 0
        self._entries: pa.BinaryArray = pa.array([], pa.binary())
        self._keys: pa.BinaryArray = pa.array([], pa.binary())
        self._index: list[tuple[bytes, bytes]] = []
        self._hashes: list[Hashes] = []
        self._count = 0

    def put(self, keys: pa.BinaryArray, values: pa.BinaryArray) -> None:
        """Add entries after the earlier ones."""
        if self._form.bloom_fpp is not None:
            self._hashes.append(hash_bytes(RowBytes.of(keys)))
        self._count += len(keys)
        self._entries = pa.concat_arrays([self._entries, _entries(keys, values)])
        self._keys = pa.concat_arrays([self._keys, keys])
        start = 0
        for end in block_ends(_lengths(self._entries), self._form.page_size):
            self._flush(start, end)
            start = end
        self._entries, self._keys = self._entries.slice(start), self._keys.slice(start)

    def finish(self) -> None:
        """Write the remaining entries, the bloom filter, the index block and the footer."""
        if len(self._keys):
            self._flush(0, len(self._keys))
        bloom = None
        if self._form.bloom_fpp is not None:
            bloom = StoreBloom.of(self._hashes, self._count, self._form.bloom_fpp)
        filter_bytes = b"" if bloom is None else bloom.bits.tobytes()
        bloom_handle = (0, 0, 0) if bloom is None else (self._position, len(filter_bytes), bloom.entries)
        self._write(filter_bytes)
        if self._digest is not None:
            self._write(seal(filter_bytes, bloom_handle[2], self._digest))
        index_handle = self._block([key for key, _ in self._index], [handle for _, handle in self._index])
        self._write(FOOTER.pack(*bloom_handle, *index_handle, MAGIC))

    def _flush(self, start: int, end: int) -> None:
        """Write some of the waiting entries as a data block."""
        offsets, data = byte_layout(self._entries)
        offsets = offsets[start : end + 1]
        block = block_bytes(data[offsets[0] : offsets[-1]].tobytes(), np.diff(offsets))
        handle = varint_bytes(np.array(self._store(block)))
        self._index.append((self._keys[end - 1].as_py(), b"".join(handle.to_pylist())))

    def _block(self, keys: list[bytes], values: list[bytes]) -> tuple[int, int]:
        """Write the index block; return its offset and size."""
        entries = _entries(pa.array(keys, pa.binary()), pa.array(values, pa.binary()))
        offsets, data = byte_layout(entries)
        return self._store(block_bytes(data.tobytes(), np.diff(offsets)))

    def _store(self, block: bytes) -> tuple[int, int]:
        """Write a block; return its offset, and its size without the trailer."""
        stored = stored_block(block, self._form.compression)
        offset = self._position
        self._write(stored)
        return offset, len(stored) - TRAILER_BYTES

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self._position += len(data)


def seal(filter_bytes: bytes, entries: int, digest: bytes) -> bytes:
    """Return what lakelsm writes after the bloom filter, and Java ignores: the digest, and a checksum of both."""
    content = filter_bytes + entries.to_bytes(8, "little") + digest
    return digest + zlib.crc32(content).to_bytes(4, "little")


def _entries(keys: pa.BinaryArray, values: pa.BinaryArray) -> pa.BinaryArray:
    parts = [varint_bytes(_lengths(keys)), keys, varint_bytes(_lengths(values)), values]
    return join_bytes(parts)


def _lengths(strings: pa.BinaryArray) -> Longs:
    return np.diff(byte_layout(strings)[0])
