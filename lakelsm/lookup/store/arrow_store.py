"""The columnar store (`lookup.local-file-type` = 'arrow'): a segment of rows and an index of their key, in one file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakelsm.lookup.cache import FoundRows
from lakelsm.lookup.store.arrow_segment import RecordBatchWriter, Segment, SegmentRows, hashes_path
from lakelsm.lookup.store.key_index import EntryWriter, KeyIndex, write_index
from lakelsm.lookup.store.keyed_rows import KeyedRows
from lakelsm.lookup.store.lookup_store import LookupStore, StoreFormat, StoreLayout
from lakelsm.lookup.store.ordered_rows import OrderedKeys, OrderedRows, OrderedTexts
from lakelsm.lookup.store.store_file import StoreFile, StoreFileWriter


class ArrowStoreFormat(StoreFormat):
    """Writes and opens columnar stores.

    Rows in the order of a key of one integer or text have no index. While a store is written, the hashes or words of its
    keys are in a second file without a name.
    """

    def write(self, path: Path, layout: StoreLayout, rows: Iterable[pa.Table]) -> None:
        """See `StoreFormat.write`. Rows may have any order, and several rows may have one key."""
        with StoreFileWriter(path) as file, StoreFileWriter(hashes_path(path, 0)) as beside:
            beside.path.unlink()
            ordered = OrderedKeys(layout.keys, beside)
            entries = EntryWriter(beside, layout.keys)
            may_ascend = ordered.ascend
            batches = RecordBatchWriter(file, (*layout.keys, *layout.values), ordered.add if may_ascend else None)
            for table in rows:
                batches.add(table)
                if not may_ascend:
                    entries.add(table)
            facts = batches.finish() | {"mark": layout.digest.hex()}
            if ordered.ascend:
                file.finish(facts | ordered.finish(file))
                return
            if may_ascend:
                for batch in batches.written():
                    entries.add(pa.Table.from_batches([batch]))
            entries.finish()
            with beside.reopened() as hashes:
                file.finish(facts | {"index": write_index(file, [(hashes, 0)])})

    def open(self, path: Path, layout: StoreLayout) -> ArrowStore:
        """See `StoreFormat.open`."""
        file = StoreFile(path)
        try:
            return ArrowStore(file, layout)
        except BaseException:
            file.close()
            raise


class ArrowStore(LookupStore):
    """An open columnar store."""

    def __init__(self, file: StoreFile, layout: StoreLayout) -> None:
        if file.facts.get("mark") != layout.digest.hex():
            raise file.damaged("its rows or columns are not the expected ones")
        rows = SegmentRows((*layout.keys, *layout.values), [Segment(file)])
        self._file = file
        self._values = tuple(field.name for field in layout.values)
        self._rows: OrderedRows | KeyedRows
        if "firsts" in file.facts:
            self._rows = OrderedRows(rows, layout.keys[0], file.facts["firsts"])
        elif "texts" in file.facts:
            self._rows = OrderedTexts(rows, layout.keys[0], file.facts["texts"])
        else:
            self._rows = KeyedRows(rows, KeyIndex(file, file.facts["index"]), layout.keys)

    @property
    def disk_bytes(self) -> int:
        """The size of its file."""
        return self._file.size

    def find(self, keys: pa.Table) -> FoundRows:
        """See `LookupStore.find`."""
        return self._rows.find(keys, self._values)

    def find_plain(self, key: Sequence[Any]) -> list[tuple[Any, ...]] | None:
        """See `LookupStore.find_plain`."""
        rows = self._rows.rows_of(key)
        return None if rows is None else [self._rows.rows.row(row, self._values) for row in rows]

    def close(self) -> None:
        """Close the file, without deleting it."""
        self._file.close()
