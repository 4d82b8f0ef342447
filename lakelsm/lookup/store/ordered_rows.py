"""Rows of one segment in the order of their key, searched without an index: for keys of one integer or one text.

Integers are searched directly. For texts and bytes, *words* are searched: the eight bytes that follow the common prefix
of a record batch's keys, as numbers in a section of the file. Rows with equal words are distinguished by their keys.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.format.row.binary_row_slots import byte_layout, primitive_values
from lakelsm.lookup.cache import FoundRows
from lakelsm.lookup.store.arrow_segment import TOO_LARGE, RowsByBatch, SegmentRows
from lakelsm.lookup.store.store_file import StoreFileWriter
from lakelsm.types import DataField, contiguous, to_arrow

Longs = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

_WORDS = "words"
_WIDTH = 8
#: Maximum rows of a record batch with one word, and maximum bytes of its first key. Other keys have an index.
_MAX_ROWS_PER_WORD = 8
_LONGEST_FIRST = 1 << 10
#: Texts whose words are made at a time: their arrays stay in the processor's cache.
_BLOCK = 1 << 14
#: Words that are copied at a time.
_COPIED = 1 << 20


class OrderedRows:
    """Rows of one segment in the order of an integer column, which is searched directly. Threads may search them.

    Compared with an index, its stores take 13 bytes a row less, are made in 0.6 of the time (4 million rows: 0.22 s, not
    0.37), and answer a single key in 13 µs, not 17. Methods and errors are those of `KeyedRows`.
    """

    def __init__(self, rows: SegmentRows, key: DataField, firsts: Sequence[Any]) -> None:
        """``firsts`` are the first keys of the record batches."""
        (self._segment,) = rows.segments
        if len(firsts) != len(self._segment.lengths):
            raise self._segment.file.damaged(f"it has the first keys of {len(firsts)} record batches")
        self.rows = rows
        self._name = key.name
        self._firsts = firsts
        self._first_rows = [0, *np.cumsum(np.array(self._segment.lengths, dtype=np.int64)).tolist()]
        self._views: list[memoryview | None] = [None] * len(firsts)

    def find(self, keys: pa.Table, names: Sequence[str]) -> FoundRows:
        """Find the rows of some keys; return their columns ``names``."""
        try:
            probes, selected = self._rows_by_batch(keys)
            return FoundRows(probes, selected.take(names))
        except TOO_LARGE:
            if len(keys) < 2:
                raise
            half = len(keys) // 2
            one, other = self.find(keys.slice(0, half), names), self.find(keys.slice(half), names)
            rows = pa.concat_tables([one.rows, other.rows])
            return FoundRows(np.concatenate([one.probes, other.probes + half]), rows)

    def _rows_by_batch(self, keys: pa.Table) -> tuple[Longs, RowsByBatch]:
        """Return the indexes of the keys that have a row, ascending, and those rows.

        Rows are searched and read in the order of the keys, so that neighbours are in the processor's cache.
        """
        self._segment.file.check()
        chunks, bounds, hits, local = [], [0], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for at, key_indexes, rows in self._found(contiguous(keys.column(self._name))):
            chunks.append(self._segment.chunk(at))
            hits.append(key_indexes)
            local.append(rows)
            bounds.append(bounds[-1] + len(rows))
        found = np.concatenate(hits)
        has_row = np.zeros(len(keys), dtype=bool)
        has_row[found] = True
        order = (np.cumsum(has_row) - 1)[found]
        selected = RowsByBatch(self.rows.schema, chunks, bounds=bounds, local=np.concatenate(local), order=order)
        return np.flatnonzero(has_row), selected

    def _found(self, keys: pa.Array) -> Iterator[tuple[int, Longs, Longs]]:
        """Yield each record batch with some of the keys, the indexes of those keys, and their rows in the batch."""
        wanted = primitive_values(keys)
        order = np.argsort(wanted)
        wanted = wanted[order]
        starts = [*np.searchsorted(wanted, np.array(self._firsts, dtype=wanted.dtype)).tolist(), len(wanted)]
        for at, start in enumerate(starts[:-1]):
            if start < starts[at + 1]:
                stored, own = primitive_values(self._segment.chunk(at)[self._name]), wanted[start : starts[at + 1]]
                rows = np.searchsorted(stored, own)
                hit = np.flatnonzero(stored.take(rows, mode="clip") == own)
                yield at, order[hit + start], rows[hit]

    def rows_of(self, key: Sequence[Any]) -> list[int]:
        """Return the indexes of the rows with one key of Python values, as `pa.Array.to_pylist` returns them."""
        self._segment.file.check()
        at = bisect_right(self._firsts, key[0]) - 1
        if at < 0:
            return []
        view, number = self._view(at), self._number(at, key[0])
        row, stop = bisect_left(view, number), len(view)
        rows = []
        while row < stop and view[row] == number:
            rows.append(self._first_rows[at] + row)
            row += 1
        return rows

    def _view(self, at: int) -> memoryview:
        """Return the checked values of a record batch that are searched for one key."""
        chunk = self._segment.chunk(at)
        view = self._views[at]
        if view is None:
            view = self._views[at] = primitive_values(chunk[self._name]).data
        return view

    def _number(self, at: int, key: Any) -> int:
        """Return the value that is searched for one key in a record batch."""
        return key  # type: ignore[no-any-return]


class OrderedTexts(OrderedRows):
    """Rows in the order of a column of texts or bytes, with the words of their keys. Threads may search them.

    Compared with an index, its stores take 4 bytes a row less and are made in half the time.
    """

    def __init__(self, rows: SegmentRows, key: DataField, batches: Sequence[tuple[str, int, int]]) -> None:
        """``batches`` are the facts of `OrderedKeys`."""
        super().__init__(rows, key, [bytes.fromhex(first) for first, _, _ in batches])
        self._common = [common for _, common, _ in batches]
        self._alike = [alike for _, _, alike in batches]
        self._section = self._segment.file.section(_WORDS)
        self._words = self._section.array(np.uint64)
        if len(self._words) != len(rows):
            raise self._segment.file.damaged(f"it has the words of {len(self._words)} keys instead of {len(rows)}")

    def _found(self, keys: pa.Array) -> Iterator[tuple[int, Longs, Longs]]:
        keys = keys.cast(pa.binary())
        batches = np.full(len(keys), -1, dtype=np.int64)
        for first in self._firsts:
            batches += pc.greater_equal(keys, first).to_numpy(zero_copy_only=False)
        for at in np.flatnonzero(np.bincount(batches + 1)[1:]).tolist():
            key_indexes = np.flatnonzero(batches == at)
            wanted = key_words(keys, self._common[at], key_indexes)
            order = np.argsort(wanted)
            yield at, *self._equal(at, keys, wanted[order], key_indexes[order])

    def _equal(self, at: int, keys: pa.Array, wanted: Words, key_indexes: Longs) -> tuple[Longs, Longs]:
        """The ``key_indexes`` of keys that a record batch has, and their rows in it; ``wanted`` are their words."""
        words, stored = self._numbers(at), self._segment.chunk(at)[self._name].cast(pa.binary())
        lowest = np.searchsorted(words, wanted)
        found, found_rows = [], []
        for step in range(self._alike[at]):
            rows = lowest + step
            hit = np.flatnonzero((words.take(rows, mode="clip") == wanted) & (rows < len(words)))
            same = pc.equal(stored.take(pa.array(rows[hit])), keys.take(pa.array(key_indexes[hit])))
            hit = hit[same.to_numpy(zero_copy_only=False)]
            found.append(key_indexes[hit])
            found_rows.append(rows[hit])
        return np.concatenate(found), np.concatenate(found_rows)

    def rows_of(self, key: Sequence[Any]) -> list[int]:
        """See `OrderedRows.rows_of`."""
        value = key[0].encode() if isinstance(key[0], str) else key[0]
        return [row for row in super().rows_of((value,)) if self.rows.row(row, (self._name,)) == tuple(key)]

    def _numbers(self, at: int) -> Words:
        first, stop = self._first_rows[at], self._first_rows[at + 1]
        self._section.check(_WIDTH * first, _WIDTH * stop)
        return self._words[first:stop]

    def _view(self, at: int) -> memoryview:
        return self._numbers(at).data

    def _number(self, at: int, key: Any) -> int:
        return int.from_bytes(key[self._common[at] :][:_WIDTH].ljust(_WIDTH, b"\0"), "big")


class OrderedKeys:
    """Checks, for record batches that are written, whether keys ``ascend`` and can be searched without an index.

    The words are in a file ``beside`` the rows until all rows are written.
    """

    def __init__(self, key: Sequence[DataField], beside: StoreFileWriter) -> None:
        kind = to_arrow(key[0].type)
        self._name = key[0].name
        self._texts = pa.types.is_string(kind) or pa.types.is_binary(kind)
        self._beside = beside
        self._last: Any = None
        self._firsts: list[Any] = []
        self._rows = 0
        self.ascend = len(key) == 1 and bool(self._texts or pa.types.is_integer(kind))

    def add(self, batch: pa.RecordBatch) -> None:
        """Check the next record batch, which is not empty."""
        column = batch.column(self._name)
        self.ascend = self.ascend and not column.null_count and self._follows(column)

    def finish(self, file: StoreFileWriter) -> dict[str, Any]:
        """Write the words to the ``file`` of the rows; return the facts with which the rows are opened."""
        for start in range(0, self._rows, _COPIED):
            words = min(_COPIED, self._rows - start)
            file.append(_WORDS, self._beside.read_at(_WORDS, _WIDTH * start, _WIDTH * words))
        return {"texts" if self._texts else "firsts": self._firsts}

    def _follows(self, column: pa.Array) -> bool:
        if self._texts:
            column = column.cast(pa.binary())
        first, last = column[0].as_py(), column[-1].as_py()
        above = self._last is None or self._last < first
        if not above or not pc.all(pc.less(column[:-1], column[1:]), min_count=0).as_py():
            return False
        self._last = last
        if self._texts:
            return self._has_words(column, first, last)
        self._firsts.append(first)
        return True

    def _has_words(self, column: pa.Array, first: bytes, last: bytes) -> bool:
        common = next((at for at, (one, other) in enumerate(zip(first, last)) if one != other), len(first))
        words = key_words(column, common)
        alike = next((step for step in range(1, _MAX_ROWS_PER_WORD + 1) if (words[step:] != words[:-step]).all()), None)
        if alike is None or len(first) > _LONGEST_FIRST:
            return False
        self._beside.append(_WORDS, words)
        self._firsts.append((first.hex(), common, alike))
        self._rows += len(words)
        return True


def key_words(texts: pa.Array, skipped: int, key_indexes: Longs | None = None) -> Words:
    """Return the eight bytes after the first ``skipped`` bytes of texts, as big-endian numbers.

    ``key_indexes`` (None: all) selects the texts. Missing bytes are NUL.
    """
    offsets, data = byte_layout(texts)
    if len(data) < _WIDTH:
        data = np.concatenate([data, np.zeros(_WIDTH, np.uint8)])
    windows: Words = np.ndarray(len(data) - _WIDTH + 1, np.dtype(">u8"), data.data, strides=(1,))
    words = np.empty(len(texts) if key_indexes is None else len(key_indexes), np.uint64)
    for block in (slice(start, start + _BLOCK) for start in range(0, len(words), _BLOCK)):
        some = block if key_indexes is None else key_indexes[block]
        starts = offsets[:-1][some] + skipped
        inside = np.minimum(starts, len(windows) - 1)
        found = windows[inside].astype(np.uint64)
        late = np.flatnonzero(starts > inside)
        found[late] <<= (8 * np.minimum(starts[late] - inside[late], _WIDTH - 1)).astype(np.uint64)
        left = offsets[1:][some] - starts
        short = np.flatnonzero(left < _WIDTH)
        kept = np.uint64(0xFFFFFFFFFFFFFFFF) << (8 * (_WIDTH - np.clip(left[short], 1, _WIDTH))).astype(np.uint64)
        found[short] &= np.where(left[short] > 0, kept, np.uint64(0))
        words[block] = found
    return words
