"""Blocks of a sort store: sorted keys and values, their search, and their layout in the file.

Layout: docs/format.md 20.1 and 20.2.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.errors import CorruptTableError, UnsupportedFeatureError
from lakelsm.format.row.binary_row_slots import Longs
from lakelsm.format.row.row_bytes import PADDING, RowBytes, check_rows, load_numbers, load_varints, varint_bytes
from lakelsm.options.lookup_options import LookupOptions

Bytes = npt.NDArray[np.uint8]

TRAILER_BYTES = 5  # Persisted: do not change
_TAIL = struct.Struct("<iB")  # Persisted: do not change
_LZ4_HEADER = struct.Struct("<ii")  # Persisted: do not change
_ALIGNED, _UNALIGNED = 0, 1  # Persisted: do not change
_ZSTD_LEVEL = 1
#: Maximum bytes of a block in memory: a greater length is an error.
_MAX_BYTES = 1 << 30


class BlockCompression(Enum):
    """The compression of a block, with its code. Persisted: do not change."""

    NONE = 0
    ZSTD = 1
    LZ4 = 2


@dataclass(frozen=True)
class BlockForm:
    """Size and compression of a file's blocks, and the false-positive rate of its bloom filter (None: no filter)."""

    page_size: int
    _: KW_ONLY
    compression: BlockCompression = BlockCompression.NONE
    bloom_fpp: float | None = None

    @classmethod
    def of(cls, options: LookupOptions) -> BlockForm:
        """Return the form that a table's options choose."""
        return cls(
            options.cache_page_size,
            compression=BlockCompression[options.lookup_cache_spill_compression.upper()],
            bloom_fpp=options.lookup_cache_bloom_filter_fpp if options.lookup_cache_bloom_filter_enabled else None,
        )


def block_ends(sizes: Longs, page_size: int) -> list[int]:
    """Return the entries after which blocks end: a block ends when it has more than ``page_size`` bytes.

    ``sizes`` are those of the entries. Entries after the last end belong to a block that is not full yet.
    """
    ends = np.cumsum(sizes)
    with_offsets = ends + np.arange(4, 4 * len(sizes) + 1, 4)
    changes = np.append(np.flatnonzero(sizes[1:] != sizes[:-1]) + 1, len(sizes))
    found: list[int] = []
    start, room = 0, page_size - _TAIL.size
    while start < len(sizes):
        before = int(ends[start - 1]) if start else 0
        unlike = int(changes[np.searchsorted(changes, start, side="right")])
        last = int(np.searchsorted(ends[:unlike], before + room, side="right"))
        if last == unlike:
            last = max(int(np.searchsorted(with_offsets, before + 4 * start + room, side="right")), unlike)
        if last >= len(sizes):
            break
        start = last + 1
        found.append(start)
    return found


def block_bytes(entries: bytes, sizes: Longs) -> bytes:
    """Return a block of consecutive entries, followed by what is needed to find them."""
    if len(sizes) and (sizes == sizes[0]).all():
        return entries + _TAIL.pack(int(sizes[0]), _ALIGNED)
    offsets = (np.cumsum(sizes) - sizes).astype("<i4")
    return entries + offsets.tobytes() + _TAIL.pack(len(sizes), _UNALIGNED)


def stored_block(block: bytes, compression: BlockCompression) -> bytes:
    """Return a block as it is stored: packed, with a checksum of the packed bytes."""
    body = packed_block(block, compression)
    return body + zlib.crc32(body).to_bytes(4, "little")


def plain_block(stored: memoryview) -> Bytes:
    """Return a stored block, checked and unpacked. Raises CorruptTableError for damaged bytes."""
    if zlib.crc32(stored[:-4]) != int.from_bytes(stored[-4:], "little"):
        raise CorruptTableError("its checksum differs")
    return unpacked_block(stored[:-4])


def packed_block(block: bytes, compression: BlockCompression) -> bytes:
    """Compress a block if that saves more than an eighth; append the code of the compression."""
    packed = _compressed(block, compression)
    if len(packed) >= len(block) - len(block) // 8:
        packed, compression = block, BlockCompression.NONE
    return packed + bytes([compression.value])


def unpacked_block(body: memoryview) -> Bytes:
    """Unpack a packed block. Raises CorruptTableError for invalid bytes."""
    packed, code = body[:-1], body[-1]
    if code == BlockCompression.NONE.value:
        return np.array(np.frombuffer(packed, np.uint8))  # A copy: the bytes around it are not kept in memory.
    if code not in (BlockCompression.ZSTD.value, BlockCompression.LZ4.value):
        raise UnsupportedFeatureError(f"its compression code is {code}; known are 0 (none), 1 (zstd) and 2 (lz4)")
    data = np.frombuffer(packed, np.uint8)
    (length,), (size,) = load_varints(np.append(data, np.zeros(PADDING, np.uint8)), *np.array([[0], [len(data)]]))
    if length > _MAX_BYTES:
        raise CorruptTableError(f"its length is {length} bytes, more than {_MAX_BYTES}")
    return _decompressed(packed[int(size) :], int(length), BlockCompression(code))


def _compressed(block: bytes, compression: BlockCompression) -> bytes:
    if compression is BlockCompression.NONE:
        return block
    if compression is BlockCompression.ZSTD:
        packed: bytes = pa.Codec("zstd", compression_level=_ZSTD_LEVEL).compress(block, asbytes=True)
    else:
        raw = pa.Codec("lz4_raw").compress(block, asbytes=True)
        packed = _LZ4_HEADER.pack(len(raw), len(block)) + raw
    length: bytes = varint_bytes(np.array([len(block)]))[0].as_py()
    return length + packed


def _decompressed(packed: memoryview, length: int, compression: BlockCompression) -> Bytes:
    codec = "zstd"
    if compression is BlockCompression.LZ4:
        codec = "lz4_raw"
        if len(packed) < _LZ4_HEADER.size or _LZ4_HEADER.unpack(packed[: _LZ4_HEADER.size]) != (
            len(packed) - _LZ4_HEADER.size,
            length,
        ):
            raise CorruptTableError("its lengths contradict each other")
        packed = packed[_LZ4_HEADER.size :]
    try:
        plain = pa.Codec(codec).decompress(pa.py_buffer(packed), length)
    except (pa.ArrowException, OSError) as error:
        raise CorruptTableError(f"it cannot be decompressed: {error}") from error
    if len(plain) != length:
        raise CorruptTableError(f"it has {len(plain)} bytes instead of {length}")
    found: Bytes = np.frombuffer(plain, np.uint8)
    return found


@dataclass(frozen=True)
class BlockGroup:
    """Unpacked blocks, one after the other in a padded buffer, so that many entries are found in one step.

    For each block: the offsets of its start and of its entries' end, the number of entries, their size (0: it varies),
    and the offset of the list of their offsets.
    """

    buffer: Bytes
    _: KW_ONLY
    starts: Longs
    ends: Longs
    counts: Longs
    sizes: Longs
    lists: Longs

    @classmethod
    def of(cls, blocks: Sequence[Bytes]) -> BlockGroup:
        """Group blocks. Raises CorruptTableError for contradictory blocks."""
        buffer = np.concatenate([*blocks, np.zeros(PADDING, np.uint8)])
        bounds = np.cumsum([0, *map(len, blocks)])
        starts, tails = bounds[:-1], bounds[1:] - _TAIL.size
        check_rows(tails < starts, "is shorter than its tail")
        numbers = load_numbers(buffer, tails, "<i4").astype(np.int64)
        kinds = buffer[bounds[1:] - 1]
        aligned = kinds == _ALIGNED
        check_rows((kinds > _UNALIGNED) | (numbers < 0) | (aligned & (numbers == 0)), "has an invalid tail")
        ends = np.where(aligned, tails, tails - 4 * numbers)
        check_rows(ends < starts + np.where(aligned, 0, numbers), "has more entries than bytes")
        sizes = np.where(aligned, numbers, 0)
        fits = (ends - starts) % np.maximum(sizes, 1) == 0
        check_rows(aligned & ~fits, "has entries that do not fit its entry size")
        counts = np.where(aligned, (ends - starts) // np.maximum(sizes, 1), numbers)
        lists = np.where(aligned, starts, ends)
        return cls(buffer, starts=starts, ends=ends, counts=counts, sizes=sizes, lists=lists)

    @property
    def entry_blocks(self) -> Longs:
        """The block of each entry, in order."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def all_keys(self) -> RowBytes:
        """Return the keys of all entries, in order."""
        blocks = self.entry_blocks
        firsts = np.cumsum(self.counts) - self.counts
        return self.keys(blocks, np.arange(len(blocks)) - firsts[blocks])

    def keys(self, blocks: Longs, entries: Longs) -> RowBytes:
        """Return the keys of some entries, given by block and number in the block."""
        sizes = self.sizes[blocks]
        listed = self.lists[blocks] + np.where(sizes, 0, 4 * entries)
        offsets = np.where(sizes, entries * sizes, load_numbers(self.buffer, listed, "<i4"))
        ends = self.ends[blocks]
        offsets = offsets + self.starts[blocks]
        check_rows((offsets < self.starts[blocks]) | (offsets >= ends), "has an entry outside its block")
        return self._counted(offsets, ends)

    def values(self, blocks: Longs, keys: RowBytes) -> RowBytes:
        """Return the values that follow keys."""
        return self._counted(keys.starts + keys.lengths, self.ends[blocks])

    def _counted(self, offsets: Longs, ends: Longs) -> RowBytes:
        lengths, sizes = load_varints(self.buffer, offsets, ends)
        check_rows(lengths > ends - offsets - sizes, "has an entry that continues beyond its block")
        return RowBytes(self.buffer, offsets + sizes, lengths)
