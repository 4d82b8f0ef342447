"""The columnar store (`lookup.local-file-type` = 'arrow'): Arrow record batches and the index of their key in one file.

A row's place is its number in the order in which rows were written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakelsm.lookup.found_rows import FoundRows
from lakelsm.lookup.store.arrow_segment import ChunkWriter, Segment, SegmentRows, hashes_path
from lakelsm.lookup.store.key_entries import KeyEntries
from lakelsm.lookup.store.key_index import KeyIndex, write_index
from lakelsm.lookup.store.keyed_rows import KeyedRows
from lakelsm.lookup.store.lookup_store import StoreLayout
from lakelsm.lookup.store.piece_file import PieceFile, PieceWriter


class ArrowStoreFormat:
    """Writes and opens columnar stores. Beside one that is written stands a file of its keys' hashes, without a name."""

    def write(self, path: Path, layout: StoreLayout, rows: Iterable[pa.Table]) -> None:
        """As `StoreFormat.write`; rows may come in any order, and several may have one key."""
        with PieceWriter(path) as file, PieceWriter(hashes_path(path, 0)) as beside:
            beside.path.unlink()
            chunks = ChunkWriter(file, (*layout.keys, *layout.values))
            entries, written = KeyEntries(beside, layout.keys), 0
            for table in rows:
                entries.add(written, table)
                chunks.add(table)
                written += len(table)
            chunks.flush()
            beside.finish({"rows": written})
            with beside.reopened() as hashes:
                index = write_index(file, [(hashes, 0)])
            file.finish(chunks.facts | {"index": index, "mark": layout.mark.hex()})

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
        rows = SegmentRows((*layout.keys, *layout.values), [Segment(file)])
        self._file = file
        self._keys = tuple(field.name for field in layout.keys)
        self._values = tuple(field.name for field in layout.values)
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
