"""Reads a sort store's file by ranges: footer, bloom filter, index block, and data blocks when they are needed."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lakelsm.errors import CorruptStoreError, CorruptTableError, UnsupportedFeatureError
from lakelsm.format.row.binary_row_slots import Longs
from lakelsm.format.row.bucket_hash import hash_bytes
from lakelsm.format.row.row_bytes import RowBytes, load_varints
from lakelsm.lookup.store.lookup_store import BlockCache
from lakelsm.lookup.store.sort_block import TRAILER_BYTES, BlockGroup, Bytes, plain_block
from lakelsm.lookup.store.sort_writer import DIGEST_BYTES, FOOTER, MAGIC, seal
from lakelsm.lookup.store.store_bloom import Hashes, StoreBloom
from lakelsm.lookup.store.store_file import opened

_SEAL_BYTES = DIGEST_BYTES + 4
#: Blocks are verified in steps of about this many unpacked bytes.
_VERIFIED_BYTES = 4 << 20


class SortFileReader:
    """An open file. Each block is checked when it is read, and kept in the ``cache``. Several threads may use it.

    ``digest`` is the expected digest (None: any). ``has_digest``: whether the file has one, which Java's files lack.
    ``bloom`` is None if the file has no filter, or one without a checksum, as in Java's files: a flipped bit would hide
    a key. ``last_keys`` has the last key of each block.
    Raises CorruptStoreError, with the file and the part, for missing or damaged parts.
    """

    def __init__(self, path: Path, cache: BlockCache, digest: bytes | None = None) -> None:
        self.path = path
        self._cache = cache
        self._store = cache.new_store()
        self._descriptor = opened(path)
        self._stamp = self._stat()
        self.disk_bytes = self._stamp[0]
        self._close = weakref.finalize(self, _closed, cache, self._store, self._descriptor)
        try:
            self.bloom = self._open(digest)
        except BaseException:
            self.close()
            raise

    def blocks(self, numbers: Sequence[int]) -> Iterator[Bytes]:
        """Yield unpacked blocks by their numbers."""
        for number in numbers:
            block = self._cache.get(self._store, number)
            if block is None:
                offset = int(self._offsets[number])
                stored = self._read(offset, int(self._sizes[number]) + TRAILER_BYTES)
                with self.error_context(f"block {number} at byte {offset}"):
                    block = plain_block(stored)
                self._cache.put(self._store, number, block)
            yield block

    def verify(self, entries: int, fpp: float | None, check: Callable[[RowBytes, RowBytes], None]) -> None:
        """Check all blocks, and that they have ``entries`` entries; then make a bloom filter of their keys.

        ``check`` is called with keys and values; it raises CorruptTableError for invalid ones.
        """
        held: list[Bytes] = []
        hashes: list[Hashes] = []
        count = size = 0
        last = len(self._offsets) - 1
        for number, block in enumerate(self.blocks(range(last + 1))):
            held.append(block)
            size += len(block)
            if size < _VERIFIED_BYTES and number < last:
                continue
            with self.error_context(f"one of the blocks up to {number}"):
                group = BlockGroup.of(held)
                keys = group.all_keys()
                check(keys, group.values(group.entry_blocks, keys))
            count += len(keys.starts)
            hashes.append(hash_bytes(keys))
            held, size = [], 0
        if count != entries:
            raise CorruptStoreError(f"{self.path}: the lookup store has {count} entries instead of {entries}")
        self.bloom = None if fpp is None else StoreBloom.of(hashes, count, fpp)

    @contextmanager
    def error_context(self, part: str) -> Iterator[None]:
        """Raise damage that is found within the context as an error with this file and the part."""
        try:
            yield
        except CorruptStoreError:
            raise
        except CorruptTableError as error:
            raise CorruptStoreError(f"{self.path}: {part} of the lookup store is damaged: {error}") from error
        except UnsupportedFeatureError as error:
            raise UnsupportedFeatureError(f"{self.path}: {part} of the lookup store: {error}") from error

    def close(self) -> None:
        """Close the file, and drop its blocks."""
        self._close()

    def _read(self, start: int, size: int) -> memoryview:
        try:
            data = os.pread(self._descriptor, size, start)
        except OSError as error:
            raise CorruptStoreError(f"{self.path}: the lookup store cannot be read: {error}") from error
        if len(data) != size:
            raise CorruptStoreError(f"{self.path}: the lookup store ends before byte {start + size}")
        if self._stat() != self._stamp:  # Blocks of other contents may have valid checksums.
            raise CorruptStoreError(f"{self.path}: the lookup store has changed since it was opened")
        return memoryview(data)

    def _stat(self) -> tuple[int, int]:
        status = os.fstat(self._descriptor)
        return status.st_size, status.st_mtime_ns

    def _open(self, digest: bytes | None) -> StoreBloom | None:
        if self.disk_bytes < FOOTER.size:
            raise CorruptStoreError(f"{self.path}: the lookup store has {self.disk_bytes} bytes, too few for a footer")
        footer = FOOTER.unpack(self._read(self.disk_bytes - FOOTER.size, FOOTER.size))
        bloom_offset, bloom_size, entries, index_offset, index_size, magic = footer
        end = self.disk_bytes - FOOTER.size
        with self.error_context("the footer"):
            if magic != MAGIC:
                raise CorruptTableError(f"it ends with {magic} instead of {MAGIC}")
            if index_offset < 0 or index_size < 0 or index_offset + index_size + TRAILER_BYTES != end:
                raise CorruptTableError(f"its index block would be at {index_offset}, of {index_size} bytes")
        with self.error_context("the index block"):
            block = plain_block(self._read(index_offset, index_size + TRAILER_BYTES))
            self.last_keys, self._offsets, self._sizes = _index(BlockGroup.of([block]))
            data_end = int(self._offsets[-1] + self._sizes[-1]) + TRAILER_BYTES if len(self._offsets) else 0
        with self.error_context("the bloom filter"):
            if (bloom_offset, bloom_size, entries) == (0, 0, 0):
                bloom_offset = data_end
            if bloom_offset != data_end or bloom_size < 0 or entries < 0 or (bloom_size > 0) != (entries > 0):
                raise CorruptTableError(f"it would be at {bloom_offset}, of {bloom_size} bytes and {entries} keys")
            rest = index_offset - bloom_offset - bloom_size
            self.has_digest = rest != 0
            if rest not in (0, _SEAL_BYTES) or (rest == 0 and digest is not None):
                raise CorruptTableError(f"it is followed by {rest} bytes instead of {_SEAL_BYTES}")
            if rest == 0:
                return None
            bits = bytes(self._read(bloom_offset, bloom_size))
            found = bytes(self._read(bloom_offset + bloom_size, rest))
            if found != seal(bits, entries, found[:DIGEST_BYTES]):
                raise CorruptTableError("its checksum differs")
            if digest is not None and found[:DIGEST_BYTES] != digest:
                raise CorruptTableError("the file has other rows")
        return StoreBloom(np.frombuffer(bits, np.uint8), entries) if entries else None


def _closed(cache: BlockCache, store: int, descriptor: int) -> None:
    os.close(descriptor)
    cache.drop(store)


def _index(group: BlockGroup) -> tuple[RowBytes, Longs, Longs]:
    """Return the last key of each data block, its offset, and its size without the trailer."""
    count = int(group.counts[0])
    numbers: npt.NDArray[np.int64] = np.arange(count)
    zeros = np.zeros(count, np.int64)
    keys = group.keys(zeros, numbers)
    handles = group.values(zeros, keys)
    ends = handles.starts + handles.lengths
    offsets, taken = load_varints(group.buffer, handles.starts, ends)
    sizes, _ = load_varints(group.buffer, handles.starts + taken, ends)
    expected = np.concatenate([[0], (offsets + sizes + TRAILER_BYTES)[:-1]])[:count]
    if (offsets != expected).any():
        raise CorruptTableError("blocks overlap or have gaps between them")
    return keys, offsets, sizes
