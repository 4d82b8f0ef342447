"""The values of a hash store: one stream of 64-bit words, cut into pages that are compressed each by itself.

A value is row bytes (`lakelsm.format.row.binary_row`). Where all values of a store may differ in length, a word with the
number of words that follow precedes each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.lookup.store.lookup_store import BlockCache
from lakelsm.lookup.store.store_file import StoreFile, StoreFileWriter

Longs = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_PAGES, _PAGE_ENDS = "values", "value-ends"
_CODECS = {"zstd": "zstd", "lz4": "lz4_raw"}
#: Bytes of pages that are put together at once.
_AT_ONCE = 16 << 20


def row_words(rows: pa.BinaryArray) -> tuple[Longs, Words]:
    """Where each of some row bytes begins in their words, with the end of the last, and the words; for no slice."""
    starts = np.frombuffer(rows.buffers()[1], np.int32, len(rows) + 1).astype(np.int64) >> 3
    return starts, np.frombuffer(rows.buffers()[2], np.uint64)


class ValueWriter:
    """Writes the stream to a file. ``length`` is the length of each value in words, None where it varies."""

    def __init__(self, file: StoreFileWriter, *, page_words: int, compression: str, length: int | None) -> None:
        self.words = 0
        self._file = file
        self._ends = [0]
        self._page_words = page_words
        self._codec = _codec(compression)
        self._length = length
        self._rest: Words = np.empty(0, np.uint64)

    def add(self, rows: pa.BinaryArray) -> Longs:
        """Add row bytes; return the place of each in the stream."""
        starts, values = row_words(rows)
        if self._length is None:
            starts += np.arange(len(starts))
            stream = np.empty(len(values) + len(rows), np.uint64)
            lengths = np.ones(len(stream), bool)
            lengths[starts[:-1]] = False
            stream[lengths] = values
            stream[starts[:-1]] = np.diff(starts) - 1
            values = stream
        places = starts[:-1] + self.words
        self.words += len(values)
        values = np.concatenate([self._rest, values])
        whole = len(values) - len(values) % self._page_words
        for start in range(0, whole, self._page_words):
            self._write(values[start : start + self._page_words])
        self._rest = values[whole:].copy()
        return places

    def finish(self) -> None:
        """Write what is left, and where the pages end."""
        if len(self._rest):
            self._write(self._rest)
        self._file.append(_PAGE_ENDS, np.array(self._ends, np.int64))

    def _write(self, page: Words) -> None:
        """A page that compression saves less than an eighth of is kept as it is, and known by its size."""
        data = pa.py_buffer(page)
        if self._codec is not None:
            packed = self._codec.compress(data)
            data = packed if packed.size < data.size - data.size // 8 else data
        self._file.append(_PAGES, data)
        self._ends.append(self._ends[-1] + data.size)


@dataclass(frozen=True, eq=False)
class _Span:
    """Some pages of the stream, one after the other; ``rank``: how many of them are before each page of the stream."""

    words: Words
    rank: Longs

    def has(self, first: Longs, last: Longs) -> bool:
        """Whether all pages are there from each first one, which is, to the last one."""
        return bool((self.rank[last] - self.rank[first] == last - first).all())

    def starts(self, places: Longs, page_words: int) -> Longs:
        """Where places of the stream are among the words."""
        pages = places // page_words
        begin: Longs = places - (pages - self.rank[pages]) * page_words
        return begin


class ValuePages:
    """The stream of an open store. Pages that are decoded stay in the cache, up to its bound."""

    def __init__(
        self, file: StoreFile, cache: BlockCache, *, words: int, page_words: int, compression: str, length: int | None
    ) -> None:
        self._pages = file.section(_PAGES)
        ends = file.section(_PAGE_ENDS)
        self._ends: list[int] = np.frombuffer(ends.bytes(0, ends.size), np.int64).tolist()
        self._cache = cache
        self._store = cache.new_store()
        self._words = words
        self._page_words = page_words
        self._codec = _codec(compression)
        self._length = length

    def values(self, places: Longs) -> Iterator[tuple[Longs, pa.BinaryArray]]:
        """The row bytes at places: some at a time, with the numbers of the places that they are of."""
        for numbers in self._batches(places):
            yield numbers, self._gathered(places[numbers])

    def close(self) -> None:
        """Give the cache's memory back."""
        self._cache.drop(self._store)

    def _batches(self, places: Longs) -> Iterator[Longs]:
        """Numbers of places that few enough pages have, all in their order where all pages are few enough."""
        most = max(1, _AT_ONCE // (8 * self._page_words))
        pages = places // self._page_words
        touched = np.zeros(self._words // self._page_words + 1, bool)
        touched[pages] = True
        rank = np.cumsum(touched) - 1
        if len(places) and int(rank[-1]) < most:
            yield np.arange(len(places))
        elif len(places):
            order = np.argsort(places, kind="stable")
            group = rank[pages[order]] // most
            yield from np.split(order, np.flatnonzero(np.diff(group)) + 1)

    def _gathered(self, places: Longs) -> pa.BinaryArray:
        if self._length is None:
            span = self._span(places, places)
            starts = span.starts(places, self._page_words) + 1
            lengths = span.words[starts - 1].astype(np.int64)
            if not span.has(places // self._page_words, (places + lengths) // self._page_words):
                span = self._span(places, places + lengths)
                starts = span.starts(places, self._page_words) + 1
        else:
            lengths = np.full(len(places), self._length)
            span = self._span(places, places + lengths - 1)
            starts = span.starts(places, self._page_words)
        offsets = np.zeros(len(places) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        picks = np.repeat(starts - offsets[:-1], lengths)
        picks += np.arange(len(picks))
        data = pa.py_buffer(span.words[picks])
        layout = pa.py_buffer(offsets << 3)
        return pa.Array.from_buffers(pa.large_binary(), len(places), [None, layout, data])

    def _span(self, first: Longs, last: Longs) -> _Span:
        """The pages that have some ranges of the stream, from their first word to their last one."""
        edges = np.zeros(self._words // self._page_words + 2, np.int64)
        np.add.at(edges, first // self._page_words, 1)
        np.add.at(edges, last // self._page_words + 1, -1)
        touched = np.cumsum(edges) > 0
        pages = [self._page(number) for number in np.flatnonzero(touched).tolist()]
        return _Span(pages[0] if len(pages) == 1 else np.concatenate(pages), np.cumsum(touched) - 1)

    def _page(self, number: int) -> Words:
        page = self._cache.get(self._store, number)
        if page is None:
            data = self._pages.bytes(self._ends[number], self._ends[number + 1])
            size = 8 * min(self._page_words, self._words - number * self._page_words)
            if len(data) == size:
                page = np.frombuffer(bytes(data), np.uint8)
            else:
                assert self._codec is not None
                page = np.frombuffer(self._codec.decompress(pa.py_buffer(data), size), np.uint8)
            self._cache.put(self._store, number, page)
        return page.view(np.uint64)


def _codec(compression: str) -> pa.Codec | None:
    return None if compression == "none" else pa.Codec(_CODECS[compression])
