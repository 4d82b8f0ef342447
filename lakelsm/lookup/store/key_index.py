"""The index of a key: it finds the rows that may have a key by the 32-bit hash of the key.

An entry is the hash of a key and the index of its row, in 64 bits. The hash is that of buckets
(`lakelsm.format.row.bucket_hash`), of normalized values: 0.0 for -0.0, and one NaN, because these are equal in the
order of keys (`lakelsm.merge.key_order`). A row with a NULL in its key has no entry. Several rows may have one key.

`write_index` sorts the entries of one or more files of rows. It divides them by their leading bits into parts, and sorts
one part after the other, so that memory is bounded by a part, not by the rows, and threads may sort parts in parallel. A
directory has the position of the first entry for each value of the leading bits; it has about as many items as there
are entries. So a key is found by one access to the directory and one to the entries. `keyed_rows` distinguishes keys with
equal hashes by their columns.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.errors import InvalidInputError
from lakelsm.format.row.bucket_hash import key_hashes
from lakelsm.local.arrow_rows import normalized_floats
from lakelsm.lookup.store.store_file import StoreFile, StoreFileWriter
from lakelsm.types import DataField

Longs = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint32]
Entries = npt.NDArray[np.uint64]

_ENTRIES = "entries"
_DIRECTORY = "directory"
_SORTED = "index"
#: An index has row indexes of 32 bits.
MAX_ROWS = (1 << 32) - 1
#: Entries of a part, which is sorted in memory, and of a block, which is divided in memory.
_PART_ENTRIES = 1 << 17
_BLOCK_ENTRIES = 1 << 18
_MAX_PART_BITS = 12
#: Maximum entries with the same leading bits that are compared one by one; more are searched.
_FEW = 8
#: Maximum entries of an index with a filter in memory, and minimum bits of the filter for each entry: one hash of 16 is
#: a false positive.
_FILTERED_ENTRIES = 1 << 20
_FILTER_BITS = 16
#: Hashes that are searched at a time: their arrays stay in the processor's cache.
_BLOCK_HASHES = 1 << 13


class EntryWriter:
    """Writes the entries of one key of rows to a file, in the order of the rows."""

    def __init__(self, file: StoreFileWriter, key: Sequence[DataField]) -> None:
        self._file = file
        self._key = tuple(key)
        self._rows = 0

    def add(self, rows: pa.Table) -> None:
        """Write the entries of the next rows. Raises InvalidInputError for more rows than an index can have."""
        check_rows(self._rows + len(rows))
        for start in range(0, len(rows), _BLOCK_ENTRIES):
            block = rows.slice(start, _BLOCK_ENTRIES)
            self._file.append(_ENTRIES, key_entries(self._rows + start, block, self._key))
        self._rows += len(rows)

    def finish(self) -> None:
        """Complete the file, for `write_index`."""
        self._file.finish({"rows": self._rows})


def check_rows(rows: int) -> None:
    """Raise InvalidInputError for more rows than an index can have."""
    if rows > MAX_ROWS:
        raise InvalidInputError(
            f"a cache of {rows} rows is too large; the maximum is {MAX_ROWS}. Look up in fewer partitions or "
            "buckets, or with 'lookup.cache' = 'partial'."
        )


def key_entries(first_row: int, rows: pa.Table, key: Sequence[DataField]) -> Entries:
    """Return the entries of rows; ``first_row`` is the index of the first row."""
    entries = hashes_of(rows, key).astype(np.uint64)
    entries <<= np.uint64(32)
    entries |= np.arange(first_row, first_row + len(rows), dtype=np.uint64)
    columns = [rows.column(field.name) for field in key]
    if any(column.null_count for column in columns):
        return entries[np.logical_and.reduce([pc.is_valid(column).to_numpy() for column in columns])]
    return entries


def hashes_of(rows: pa.Table, key: Sequence[DataField]) -> Hashes:
    """Return the hashes of the keys of rows."""
    columns = [normalized_floats(rows.column(field.name), zeros=False) for field in key]
    return key_hashes(columns, [field.type for field in key]).view(np.uint32)


def write_index(file: StoreFileWriter, sources: Sequence[tuple[StoreFile, int]], threads: int = 1) -> dict[str, Any]:
    """Write the index of the entries of files, each with the index of its first row; return its facts.

    The facts are for `StoreFileWriter.finish`, alone or with others, and for `KeyIndex`. Memory: 8 MB, and 5 MB for each
    thread, or more if a larger share of the rows has one key.
    """
    return _IndexWriter(file, sources).write(threads)


class _IndexWriter:
    def __init__(self, file: StoreFileWriter, sources: Sequence[tuple[StoreFile, int]]) -> None:
        self._file = file
        self._sources = sources
        self._entries = sum(source.section(_ENTRIES).size for source, _ in sources) // 8
        self._rows = max((first + int(source.facts["rows"]) for source, first in sources), default=0)
        check_rows(self._rows)
        bits = max(self._entries - 1, 0).bit_length()
        self._part_bits = min(max(bits - (_PART_ENTRIES - 1).bit_length(), 0), _MAX_PART_BITS)
        self._bits = max(bits, self._part_bits)

    def write(self, threads: int) -> dict[str, Any]:
        """Divide, sort and write the entries."""
        self._file.reserve(_DIRECTORY, 4 * ((1 << self._bits) + 1))
        self._file.reserve(_SORTED, 8 * self._entries)
        if self._part_bits:
            ends = self._part()
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(self._sort_part, range(len(ends)), [0, *ends[:-1]], ends))
        else:
            self._write_part(0, 0, np.concatenate([np.empty(0, np.uint64), *self._blocks()]))
        self._file.write_at(_DIRECTORY, 4 << self._bits, np.array([self._entries], dtype=np.uint32))
        return {"rows": self._rows, "entries": self._entries, "bits": self._bits}

    def _blocks(self) -> Iterator[Entries]:
        """Yield the entries in the order of their rows, many at a time, because each block is written to all parts."""
        for source, first_row in self._sources:
            source.check()
            section = source.section(_ENTRIES)
            for start in range(0, section.size, 8 * _BLOCK_ENTRIES):
                block = section.bytes(start, min(start + 8 * _BLOCK_ENTRIES, section.size))
                yield np.frombuffer(block, np.uint64) + np.uint64(first_row)

    def _part(self) -> list[int]:
        """Write the entries to the regions of their parts; return the ends of the parts."""
        shift = np.uint64(64 - self._part_bits)
        parts = 1 << self._part_bits
        counts = np.zeros(parts, dtype=np.int64)
        for block in self._blocks():
            counts += np.bincount((block >> shift).astype(np.intp), minlength=parts)
        ends = np.cumsum(counts)
        cursors = (ends - counts).tolist()
        for block in self._blocks():
            part = (block >> shift).astype(np.uint16)
            block = block[np.argsort(part, kind="stable")]
            start = 0
            for number, count in enumerate(np.bincount(part, minlength=parts).tolist()):
                if count:
                    self._file.write_at(_SORTED, 8 * cursors[number], block[start : start + count])
                    cursors[number] += count
                    start += count
        return [int(end) for end in ends]

    def _sort_part(self, part: int, first: int, stop: int) -> None:
        data = self._file.read_at(_SORTED, 8 * first, 8 * (stop - first))
        self._write_part(part, first, np.frombuffer(data, np.uint64))

    def _write_part(self, part: int, first: int, entries: Entries) -> None:
        """Write the sorted entries of a part, and its share of the directory."""
        entries = self._sorted(entries)
        slots = 1 << (self._bits - self._part_bits)
        slot = (entries >> np.uint64(64 - self._bits)) if self._bits else np.zeros(len(entries), np.uint64)
        counts = np.bincount((slot - np.uint64(part * slots)).astype(np.intp), minlength=slots)
        starts = (first + np.cumsum(counts) - counts).astype(np.uint32)
        self._file.write_at(_DIRECTORY, 4 * part * slots, starts)
        self._file.write_at(_SORTED, 8 * first, entries)

    def _sorted(self, entries: Entries) -> Entries:
        """Sort the entries of a part, which come in the order of their rows.

        It sorts by 16 bits of the hash first, which needs no comparisons; Timsort, which is fast for nearly sorted input,
        does the rest. This takes a third of the time of a sort without the first step.
        """
        bits = (entries >> np.uint64(48 - self._part_bits)).astype(np.uint16)
        entries = entries.take(np.argsort(bits, kind="stable"))
        entries.sort(kind="stable")
        return entries


class KeyIndex:
    """An open index. Several threads may search it, also in forked processes.

    ``rows`` is the row count of its files, ``entries`` the number of rows with a key.
    """

    def __init__(self, file: StoreFile, facts: dict[str, Any]) -> None:
        """``facts`` are those that `write_index` returned when the file was written."""
        self.file = file
        self.rows = int(facts["rows"])
        self.entries = int(facts["entries"])
        self._bits = int(facts["bits"])
        self._sections = file.section(_DIRECTORY), file.section(_SORTED)
        self._directory = self._sections[0].array(np.uint32)
        self._sorted = self._sections[1].array(np.uint64)
        if len(self._directory) != (1 << self._bits) + 1 or len(self._sorted) != self.entries:
            raise file.damaged("its index is incomplete")
        self._starts = self._directory.data
        self._entry_view = self._sorted.data
        self._filter: bytes | None = None
        self._filter_shift = 32 - min(max(_FILTER_BITS * self.entries - 1, 7).bit_length(), 32)

    def candidates(self, hashes: Hashes) -> tuple[Longs, Longs]:
        """Return the rows of each hash: the positions of the hashes that have rows, and those rows, both ascending.

        A hash with several rows is repeated. The caller compares the file's stamp first (`StoreFile.check`).
        """
        blocks = [self._block(hashes, start) for start in range(0, max(len(hashes), 1), _BLOCK_HASHES)]
        return np.concatenate([probes for probes, _ in blocks]), np.concatenate([rows for _, rows in blocks])

    def _block(self, every: Hashes, start: int) -> tuple[Longs, Longs]:
        hashes = every[start : start + _BLOCK_HASHES]
        slots = (hashes >> np.uint32(32 - self._bits)).astype(np.int64) if self._bits else np.zeros(len(hashes), np.int64)
        directory, entries = self._sections
        directory.check_values(slots, slots + 2, 4)
        first = self._directory.take(slots).astype(np.int64)
        stop = self._directory.take(slots + 1).astype(np.int64)
        entries.check_values(first, stop, 8)
        counts = stop - first
        positions = np.repeat(first - (np.cumsum(counts) - counts), counts)
        positions += np.arange(len(positions))
        rows = self._sorted.take(positions, mode="clip")  # All are in range; "clip" avoids a check.
        rows ^= np.repeat(hashes.astype(np.uint64) << np.uint64(32), counts)
        hit = np.flatnonzero(rows <= np.uint64(0xFFFFFFFF))
        probes = np.repeat(np.arange(start, start + len(hashes)), counts)
        return probes.take(hit), rows.take(hit).view(np.int64)

    def rows_of(self, key_hash: int) -> list[int]:
        """Return the rows of one hash, ascending. The caller compares the file's stamp first."""
        slot = key_hash >> (32 - self._bits)
        directory, entries = self._sections
        directory.check(4 * slot, 4 * slot + 8)
        first, stop = self._starts[slot], self._starts[slot + 1]
        if first == stop:
            return []
        entries.check(8 * first, 8 * stop)
        low = key_hash << 32
        if stop - first > _FEW:
            first = bisect_left(self._entry_view, low, first, stop)
            stop = bisect_left(self._entry_view, low + (1 << 32), first, stop)
        return [entry - low for entry in self._entry_view[first:stop] if entry >> 32 == key_hash]

    def may_have(self, key_hash: int) -> bool:
        """Return whether `rows_of` may find a row. A small index has a filter in memory that excludes most hashes.

        It takes a tenth of the time of `rows_of`, because the file is read only to make the filter.
        """
        bits = self._filter
        if bits is None:
            if self.entries > _FILTERED_ENTRIES:
                return True
            bits = self._filter = self._filtered()
        at = key_hash >> self._filter_shift
        return bool(bits[at >> 3] >> (at & 7) & 1)

    def _filtered(self) -> bytes:
        self.file.check()
        self._sections[1].check(0, self._sections[1].size)
        has = np.zeros(1 << (32 - self._filter_shift), dtype=bool)
        has[(self._sorted >> np.uint64(32 + self._filter_shift)).astype(np.intp)] = True
        return np.packbits(has, bitorder="little").tobytes()


__all__ = ["KeyIndex", "write_index"]
