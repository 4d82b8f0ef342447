"""Rows in the order of a key of text or bytes: found by a word of each key, which is written beside the rows.

The keys of a record batch mostly begin alike. The word is the eight bytes behind what its first and its last key have in
common, as a number whose order is that of keys; rows with the same word, a few at most, are told apart by their keys.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.format.row.binary_row_slots import byte_layout
from lakelsm.lookup.cache import FoundRows
from lakelsm.lookup.store.arrow_segment import SegmentRows
from lakelsm.lookup.store.keyed_rows import SameKeys
from lakelsm.lookup.store.piece_file import PieceWriter
from lakelsm.types import DataField, to_arrow

Longs = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

WORDS = "words"
_WIDTH = 8
#: Rows that may have one word, and bytes of the first key of a record batch: those of other keys get an index.
_MOST_ALIKE = 8
_LONGEST = 1 << 10


class BatchKeys(NamedTuple):
    """What is known of the keys of a record batch: the first, and how many bytes all have in common."""

    first: bytes
    common: int


class TextWords:
    """Writes the words of record batches, as a section of the file that has them.

    ``apart`` says whether they tell rows apart: keys ascend, and hardly any have the same word.
    """

    def __init__(self, file: PieceWriter, column: str) -> None:
        self._file = file
        self._column = column
        self._last: bytes | None = None
        self._batches: list[BatchKeys] = []
        self.apart = True

    @staticmethod
    def fits(key: Sequence[DataField]) -> bool:
        """Whether keys of these columns have words."""
        kinds = [to_arrow(field.type) for field in key]
        return len(kinds) == 1 and bool(pa.types.is_string(kinds[0]) or pa.types.is_binary(kinds[0]))

    @property
    def facts(self) -> list[tuple[str, int]]:
        """What `TextRows` needs to know of the record batches."""
        return [(batch.first.hex(), batch.common) for batch in self._batches]

    def add(self, batch: pa.RecordBatch) -> None:
        """Write the words of the next record batch, which has rows."""
        column = batch.column(self._column)
        self.apart = self.apart and not column.null_count and self._ascends(column)
        if self.apart:
            first, last = _bytes(column[0].as_py()), _bytes(column[-1].as_py())
            common = next((at for at, (one, other) in enumerate(zip(first, last)) if one != other), len(first))
            words = TextBytes(column).words(common)
            alike = words[_MOST_ALIKE:] == words[:-_MOST_ALIKE]
            self.apart = len(first) <= _LONGEST and not alike.any()
            self._file.append(WORDS, words)
            self._batches.append(BatchKeys(first, common))
            self._last = last

    def _ascends(self, column: pa.Array) -> bool:
        above = self._last is None or self._last < _bytes(column[0].as_py())
        return above and pc.all(pc.less(column.slice(0, len(column) - 1), column.slice(1)), min_count=0).as_py() is True


class TextRows:
    """Rows of one segment and the words of their keys. Several threads may ask.

    Each method looks at the file's stamp first, and raises CorruptStoreError for a file that is damaged.
    """

    def __init__(self, rows: SegmentRows, key: DataField, batches: Sequence[tuple[str, int]]) -> None:
        """``batches`` are the `TextWords.facts` of the file."""
        (self._segment,) = rows.segments
        self._words = self._segment.file.section(WORDS)
        if not len(batches) == len(self._segment.lengths) == len(self._words.pieces):
            raise self._segment.file.damaged(f"it has the first keys of {len(batches)} record batches")
        self.rows = rows
        self._name = key.name
        self._kind = to_arrow(key.type)
        self._batches = [BatchKeys(bytes.fromhex(first), common) for first, common in batches]
        self._firsts = [batch.first for batch in self._batches]
        self._first_rows = [0, *np.cumsum(np.array(self._segment.lengths, dtype=np.int64)).tolist()]

    def find(self, keys: pa.Table, names: Sequence[str]) -> FoundRows:
        """The columns ``names`` of the rows of some keys, which have the key's column, in its type and without NULLs."""
        self._segment.file.check()
        probes, candidates = self._candidates(keys.column(self._name))
        return SameKeys.among(self.rows, keys.select([self._name]), probes, candidates).taken(self.rows, names)

    def rows_of(self, key: Sequence[Any]) -> list[int]:
        """The number of the row, if any, of one key of Python values, as `pa.Array.to_pylist` has them."""
        self._segment.file.check()
        wanted = _bytes(key[0])
        at = bisect_right(self._firsts, wanted) - 1
        if at < 0:
            return []
        common = self._batches[at].common
        word = int.from_bytes(wanted[common : common + _WIDTH].ljust(_WIDTH, b"\0"), "big")
        words = self._words.piece(at).cast("Q")
        row, rows = bisect_left(words, word), []
        while row < len(words) and words[row] == word:
            rows.append(self._first_rows[at] + row)
            row += 1
        return [row for row in rows if self.rows.row(row, (self._name,)) == tuple(key)]

    def _candidates(self, keys: pa.ChunkedArray) -> tuple[Longs, Longs]:
        """The places of keys, ascending, and the numbers of rows that may have them."""
        batches = np.full(len(keys), -1, dtype=np.int64)
        for first in self._firsts:
            begun = pc.greater_equal(keys, pa.scalar(first, pa.binary()).cast(self._kind))
            batches += begun.to_numpy()
        texts = TextBytes(keys.combine_chunks() if keys.num_chunks != 1 else keys.chunk(0))
        probes: list[Longs] = [np.empty(0, np.int64)]
        rows: list[Longs] = [np.empty(0, np.int64)]
        for batch in np.flatnonzero(np.bincount(batches + 1)[1:]).tolist():
            places = np.flatnonzero(batches == batch)
            here, found = self._in_batch(batch, texts.words(self._batches[batch].common, places))
            probes.append(places[here])
            rows.append(found + self._first_rows[batch])
        places, found = np.concatenate(probes), np.concatenate(rows)
        row_of = np.full(len(keys), -1, dtype=np.int64)
        row_of[places] = found
        once = np.flatnonzero(row_of >= 0)
        if len(once) == len(places):
            return once, row_of[once]
        order = np.lexsort((found, places))
        return places[order], found[order]

    def _in_batch(self, batch: int, wanted: Words) -> tuple[Longs, Longs]:
        """The places of words that rows of a record batch have, and the places of those rows."""
        order = np.argsort(wanted)
        ordered = wanted[order]  # Words close to each other touch the same memory.
        words = np.frombuffer(self._words.piece(batch), np.uint64)
        first = np.searchsorted(words, ordered)
        probes, rows = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        open_ = np.flatnonzero(words.take(first, mode="clip") == ordered)
        while len(open_):
            probes.append(order[open_])
            rows.append(first[open_])
            first[open_] += 1
            open_ = open_[words.take(first[open_], mode="clip") == ordered[open_]]
            open_ = open_[first[open_] < len(words)]
        return np.concatenate(probes), np.concatenate(rows)


class TextBytes:
    """The bytes of texts, by words."""

    def __init__(self, column: pa.Array) -> None:
        self._offsets, self._data = byte_layout(column)

    @cached_property
    def _windows(self) -> Words:
        """Every unaligned window of eight bytes of the texts, those at the end filled with NULs."""
        padded = np.concatenate([self._data, np.zeros(_WIDTH, np.uint8)])
        windows: Words = np.ndarray(len(self._data) + 1, np.uint64, padded.data, strides=(1,))
        return windows

    def words(self, skipped: int, places: Longs | None = None) -> Words:
        """The eight bytes behind the first ``skipped`` of each text, or those at ``places``, as a number.

        There are NULs where a text has ended.
        """
        starts, ends = self._offsets[:-1], self._offsets[1:]
        if places is not None and len(places) < len(starts):
            starts, ends = starts[places], ends[places]
        left = ends - starts - skipped
        least, most = (int(left.min()), int(left.max())) if len(left) else (0, 0)
        length = least + skipped
        if least == most >= 0 and length >= _WIDTH and len(left) == len(self._offsets) - 1:
            return self._even(length, skipped)
        words = self._windows[np.minimum(starts + skipped, len(self._data))]
        words.byteswap(inplace=True)
        if least >= _WIDTH:
            return words
        drop = (8 * (_WIDTH - np.clip(left, 1, _WIDTH))).astype(np.uint64)
        cut: Words = np.where(left > 0, (words >> drop) << drop, np.uint64(0))
        return cut

    def _even(self, length: int, skipped: int) -> Words:
        """The words of texts of one length, which lie evenly."""
        begin = min(skipped, length - _WIDTH)
        first, count = int(self._offsets[0]) + begin, len(self._offsets) - 1
        windows: Words = np.ndarray(count, np.uint64, self._data.data, offset=first, strides=(length,))
        words: Words = windows.byteswap()
        if skipped > begin:  # The last bytes of each, moved to the front. No number moves by all its bits.
            half = np.uint64(4 * (skipped - begin))
            words = (words << half) << half
        return words


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value
