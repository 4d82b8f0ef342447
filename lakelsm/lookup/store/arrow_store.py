"""The columnar store (`lookup.local-file-type` = 'arrow'): Arrow record batches, searched by their key, in one file.

A row's place is its number in the order in which rows were written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakelsm.lookup.cache import FoundRows
from lakelsm.lookup.store.arrow_segment import ChunkWriter, Segment, SegmentRows, hashes_path
from lakelsm.lookup.store.key_entries import KeyEntries
from lakelsm.lookup.store.key_index import KeyIndex, write_index
from lakelsm.lookup.store.key_numbers import KeyNumbers
from lakelsm.lookup.store.keyed_rows import KeyedRows
from lakelsm.lookup.store.lookup_store import StoreLayout
from lakelsm.lookup.store.piece_file import PieceFile, PieceWriter
from lakelsm.lookup.store.sorted_rows import NumberedBatches, SortedRows
from lakelsm.lookup.store.text_words import TextRows, TextWords
from lakelsm.types import DataField


class ArrowStoreFormat:
    """Writes and opens columnar stores.

    Rows that come in the order of their keys are searched themselves where these are numbers, and by words of them where
    they are a text; others have an index, and while it is made stands a file of their keys' hashes beside it, without a
    name.
    """

    def write(self, path: Path, layout: StoreLayout, rows: Iterable[pa.Table]) -> None:
        """As `StoreFormat.write`; rows may come in any order, and several may have one key."""
        numbers = KeyNumbers.of(layout.keys)
        batches = None if numbers is None else NumberedBatches(numbers.column)
        with PieceWriter(path) as file:
            words = TextWords(file, layout.keys[0].name) if TextWords.fits(layout.keys) else None
            watch = words or batches
            chunks = ChunkWriter(file, _columns(layout, numbers), None if watch is None else watch.add)
            for table in rows:
                chunks.add(table if numbers is None else numbers.added_to(table))
            chunks.flush()
            facts = chunks.facts | {"mark": layout.mark.hex()}
            if batches is not None and batches.ascend:
                file.finish(facts | {"firsts": batches.firsts})
            elif words is not None and words.apart:
                file.finish(facts | {"words": words.facts})
            else:
                file.finish(facts | {"index": _write_index(file, chunks, layout)})

    def open(self, path: Path, layout: StoreLayout) -> ArrowStore:
        """As `StoreFormat.open`."""
        file = PieceFile(path)
        try:
            return ArrowStore(file, layout)
        except BaseException:
            file.close()
            raise


class ArrowStore:
    """An open columnar store."""

    def __init__(self, file: PieceFile, layout: StoreLayout) -> None:
        if file.facts.get("mark") != layout.mark.hex():
            raise file.damaged("it has other rows or columns than are looked for")
        numbers = KeyNumbers.of(layout.keys)
        rows = SegmentRows(_columns(layout, numbers), [Segment(file)])
        self._file = file
        self._values = tuple(field.name for field in layout.values)
        self._rows: SortedRows | TextRows | KeyedRows
        if numbers is not None and "firsts" in file.facts:
            self._rows = SortedRows(rows, numbers, file.facts["firsts"])
        elif "words" in file.facts:
            self._rows = TextRows(rows, layout.keys[0], file.facts["words"])
        else:
            self._rows = KeyedRows(rows, KeyIndex(file, file.facts["index"]), layout.keys)

    @property
    def disk_bytes(self) -> int:
        """The size of its file."""
        return self._file.size

    def find(self, keys: pa.Table) -> FoundRows:
        """As `LookupStore.find`."""
        return self._rows.find(keys, self._values)

    def find_one(self, key: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The values, as users get them, of the rows of one key, which is as `pa.Array.to_pylist` has it."""
        return [self._rows.rows.row(row, self._values) for row in self._rows.rows_of(key)]

    def close(self) -> None:
        """Close the file; the file itself stays."""
        self._file.close()


def _columns(layout: StoreLayout, numbers: KeyNumbers | None) -> tuple[DataField, ...]:
    return (*layout.keys, *layout.values, *(() if numbers is None else numbers.added))


def _write_index(file: PieceWriter, chunks: ChunkWriter, layout: StoreLayout) -> dict[str, Any]:
    with PieceWriter(hashes_path(file.path, 0)) as beside:
        beside.path.unlink()
        entries, written = KeyEntries(beside, layout.keys), 0
        for batch in chunks.written():
            entries.add(written, pa.Table.from_batches([batch]))
            written += len(batch)
        beside.finish({"rows": written})
        with beside.reopened() as hashes:
            return write_index(file, [(hashes, 0)])
