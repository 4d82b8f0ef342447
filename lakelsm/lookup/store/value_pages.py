"""The values of a hash store: a stream of 64-bit words, cut into pages that are packed like blocks of sort stores.

A value is a word with a word count, then row bytes (`lakelsm.format.row.binary_row`). Pages have whole values. They have
no own CRC-32: the CRC-32 of a file's block would be the same for any bytes that are followed by their own CRC-32.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.lookup.store.lookup_store import BlockCache
from lakelsm.lookup.store.sort_block import BlockCompression, packed_block, unpacked_block
from lakelsm.lookup.store.store_file import StoreFile, StoreFileWriter

Longs = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_PAGES, _STARTS = "values", "value-pages"
#: Words of pages that are concatenated at a time.
_AT_ONCE = 2 << 20


def row_words(rows: pa.BinaryArray) -> tuple[Longs, Words]:
    """Return the start of each row in the words, with the end of the last, and the words. ``rows`` is not a slice."""
    starts = np.frombuffer(rows.buffers()[1], np.int32, len(rows) + 1).astype(np.int64) >> 3
    return starts, np.frombuffer(rows.buffers()[2], np.uint64)


class ValueWriter:
    """Writes the stream to a file. A page has at most ``page_bytes`` bytes, or one larger value."""

    def __init__(self, file: StoreFileWriter, *, page_bytes: int, compression: BlockCompression) -> None:
        self._file = file
        self._page_words = page_bytes // 8
        self._compression = compression
        #: The start of each page, and of the waiting one: in words of the stream, and in bytes of the section.
        self._starts = [(0, 0)]
        self._waiting: Words = np.empty(0, np.uint64)
        self._ends: Longs = np.empty(0, np.int64)

    def add(self, rows: pa.BinaryArray) -> Longs:
        """Add row bytes; return the position of each in the stream."""
        starts, values = row_words(rows)
        first_word = self._starts[-1][0]
        heads = starts[:-1] + np.arange(len(rows)) + len(self._waiting)
        stream = np.empty(len(self._waiting) + len(values) + len(rows), np.uint64)
        stream[: len(self._waiting)] = self._waiting
        is_value = np.ones(len(stream), bool)
        is_value[: len(self._waiting)] = False
        is_value[heads] = False
        stream[heads] = np.diff(starts)
        stream[is_value] = values
        ends = np.concatenate([self._ends, heads + 1 + np.diff(starts)])
        start = value = 0
        while (fitting := int(np.searchsorted(ends, start + self._page_words, side="right"))) < len(ends):
            value = max(fitting, value + 1)
            self._write(stream[start : ends[value - 1]])
            start = int(ends[value - 1])
        self._waiting, self._ends = stream[start:].copy(), ends[value:] - start
        positions: Longs = heads + first_word
        return positions

    def finish(self) -> None:
        """Write the remaining values, and the starts of the pages."""
        if len(self._waiting):
            self._write(self._waiting)
        self._file.append(_STARTS, np.array(self._starts, np.int64))

    def _write(self, page: Words) -> None:
        data = packed_block(page.tobytes(), self._compression)
        self._file.append(_PAGES, data)
        words, size = self._starts[-1]
        self._starts.append((words + len(page), size + len(data)))


class ValuePages:
    """The stream of an open store. Unpacked pages stay in the cache, up to its limit, until `close`."""

    def __init__(self, file: StoreFile, cache: BlockCache) -> None:
        starts = file.section(_STARTS)
        self._starts, self._offsets = np.frombuffer(starts.bytes(0, starts.size), np.int64).reshape(-1, 2).T
        self._section = file.section(_PAGES)
        self._cache = cache
        self._store = cache.new_store()
        self.close = weakref.finalize(self, cache.drop, self._store)

    def values(self, positions: Longs) -> Iterator[tuple[Longs, pa.BinaryArray]]:
        """Yield the row bytes at positions of the stream, a part at a time, each with the indexes of its positions."""
        if not len(positions):
            return
        pages = np.searchsorted(self._starts, positions, side="right") - 1
        touched = np.zeros(len(self._starts), bool)
        touched[pages] = True
        sizes = np.where(touched[:-1], np.diff(self._starts), 0)
        group = (np.cumsum(sizes) // _AT_ONCE)[pages]
        if (group == group[0]).all():
            yield np.arange(len(positions)), self._gathered(positions, pages)
            return
        order = np.argsort(pages, kind="stable")
        for numbers in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
            yield numbers, self._gathered(positions[numbers], pages[numbers])

    def _gathered(self, positions: Longs, pages: Longs) -> pa.BinaryArray:
        """Return the row bytes at positions, whose pages are read together."""
        shifts = np.full(len(self._starts), -1)
        shifts[pages] = 0
        touched = np.flatnonzero(shifts == 0)
        parts = [self._page(number) for number in touched.tolist()]
        words = parts[0] if len(parts) == 1 else np.concatenate(parts)
        shifts[touched] = np.cumsum([0, *map(len, parts)])[:-1] - self._starts[touched]
        starts = positions + shifts[pages] + 1
        lengths = words[starts - 1].astype(np.int64)
        offsets = np.zeros(len(positions) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        picks = np.repeat(starts - offsets[:-1], lengths)
        picks += np.arange(len(picks))
        data = pa.py_buffer(words[picks])
        return pa.Array.from_buffers(pa.large_binary(), len(positions), [None, pa.py_buffer(offsets << 3), data])

    def _page(self, number: int) -> Words:
        page = self._cache.get(self._store, number)
        if page is None:
            page = unpacked_block(self._section.bytes(int(self._offsets[number]), int(self._offsets[number + 1])))
            self._cache.put(self._store, number, page)
        return page.view(np.uint64)
