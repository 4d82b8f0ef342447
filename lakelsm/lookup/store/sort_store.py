"""Paimon's sort store (`lookup.local-file-type` = `sort`): rows in blocks, in the order of their keys.

The bloom filter is checked for a batch of keys first, then the index block, and then the data blocks, for all keys
together. Keys are compared as values, NULL first, not as bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.format.row.binary_row_slots import Longs
from lakelsm.format.row.bucket_hash import hash_bytes
from lakelsm.format.row.compacted_row import decode_compacted, encode_compacted, require_compacted_type
from lakelsm.format.row.row_bytes import RowBytes, check_rows
from lakelsm.lookup.cache import FoundRows
from lakelsm.lookup.store.lookup_store import BlockCache, LookupStore, StoreFormat, StoreLayout
from lakelsm.lookup.store.sort_block import BlockForm, BlockGroup, Bytes
from lakelsm.lookup.store.sort_reader import SortFileReader
from lakelsm.lookup.store.sort_writer import SortFileWriter
from lakelsm.lookup.store.store_file import new_file
from lakelsm.merge.key_order import order_keys, stable_order
from lakelsm.types import DataField, DataType, contiguous, to_arrow

#: Minimum bytes of unpacked blocks that are searched in one step.
_STEP_BYTES = 8 << 20
#: Maximum rows and bytes that are encoded and decoded at a time (except for a larger single row).
_BATCH_ROWS, _BATCH_BYTES = 1 << 16, 16 << 20
#: Maximum entries, in all and for each key, of which all are decoded; of more, a search decodes a dozen for each key.
_FEW_ROWS, _ROWS_OF_A_KEY = 1 << 13, 8


@dataclass(frozen=True)
class SortStoreFormat(StoreFormat):
    """Writes and opens sort stores, which share a cache of blocks."""

    form: BlockForm
    cache: BlockCache

    @property
    def copied_blocks(self) -> BlockCache:
        """See `StoreFormat.copied_blocks`."""
        return self.cache

    def write(self, path: Path, layout: StoreLayout, rows: Iterable[pa.Table]) -> None:
        """See `StoreFormat.write`. Raises UnsupportedFeatureError for columns of types that sort stores cannot have."""
        for field in (*layout.keys, *layout.values):
            require_compacted_type(field.name, field.type)
        values = CompactedValues(layout.values)
        with new_file(path) as file:
            writer = SortFileWriter(file, self.form, layout.digest)
            for table in rows:
                size = max(min(_BATCH_ROWS, _BATCH_BYTES * len(table) // max(table.nbytes, 1)), 1)
                for start in range(0, len(table), size):
                    batch = table.slice(start, size)
                    keys = encode_compacted(canonical_keys(batch, layout.keys), _types(layout.keys))
                    writer.put(contiguous(keys), values.encode(batch))
            writer.finish()

    def open(self, path: Path, layout: StoreLayout) -> SortStore:
        """See `StoreFormat.open`."""
        return SortStore(SortFileReader(path, self.cache, layout.digest), layout, CompactedValues(layout.values))


class ValueForm(Protocol):
    """The form of the values in a lookup file."""

    def decode(self, values: RowBytes) -> pa.Table:
        """Decode the columns of some values. Raises CorruptTableError for invalid bytes."""


@dataclass(frozen=True)
class CompactedValues:
    """Values as compacted rows of some fields."""

    fields: tuple[DataField, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the fields."""
        return tuple(field.name for field in self.fields)

    def encode(self, rows: pa.Table) -> pa.BinaryArray:
        """Encode each row."""
        columns = [rows.column(field.name) for field in self.fields]
        return contiguous(encode_compacted(columns, [field.type for field in self.fields]))

    def decode(self, values: RowBytes) -> pa.Table:
        """See `ValueForm.decode`."""
        columns = decode_compacted(values, [field.type for field in self.fields])
        return pa.table(columns, names=self.columns)


class SortStore(LookupStore):
    """An open sort store, whose ``values`` may have more columns than the layout."""

    def __init__(self, reader: SortFileReader, layout: StoreLayout, values: ValueForm) -> None:
        self._reader = reader
        self._layout = layout
        self._values = values
        self._types = _types(layout.keys)
        with reader.error_context("the index block"):
            self._last_keys = decode_compacted(reader.last_keys, self._types)

    @property
    def disk_bytes(self) -> int:
        """The size of the file, in bytes."""
        return self._reader.disk_bytes

    def close(self) -> None:
        """Close the file, without deleting it."""
        self._reader.close()

    def find(self, keys: pa.Table) -> FoundRows:
        """See `LookupStore.find`."""
        columns = canonical_keys(keys, self._layout.keys)
        probes = np.arange(len(keys))
        if self._reader.bloom is not None and len(keys):
            encoded = contiguous(encode_compacted(columns, self._types))
            probes = np.flatnonzero(self._reader.bloom.may_have(hash_bytes(RowBytes.of(encoded))))
            columns = [column.take(pa.array(probes)) for column in columns]
        columns, probes, blocks = self._by_block(columns, probes)
        found: list[Longs] = [np.zeros(0, np.int64)]
        tables = [pa.schema([(field.name, to_arrow(field.type)) for field in self._layout.values]).empty_table()]
        names = tables[0].column_names
        for numbers, group in self._groups(np.unique(blocks).tolist()):
            start, end = np.searchsorted(blocks, [numbers[0], numbers[-1] + 1]).tolist()
            some = [column.slice(start, end - start) for column in columns]
            with self._reader.error_context(f"one of the blocks {numbers[0]} to {numbers[-1]}"):
                hits, values = self._search(group, np.searchsorted(numbers, blocks[start:end]), some)
                for some_values in _batches(values):
                    tables.append(self._values.decode(some_values).select(names))
            found.append(probes[start:end][hits])
        indexes = np.concatenate(found)
        order = np.argsort(indexes, kind="stable")
        return FoundRows(indexes[order], pa.concat_tables(tables).take(pa.array(order)))

    def _by_block(self, columns: list[pa.Array], probes: Longs) -> tuple[list[pa.Array], Longs, Longs]:
        """Return keys in order, the probe of each, and the block that may have it, without keys after the last block."""
        last = len(self._reader.last_keys.starts)
        ordered = order_keys(_concatenated(self._last_keys, columns))
        order = stable_order(ordered[last:])
        blocks = np.searchsorted(ordered[:last], ordered[last:][order], side="left")
        order, blocks = order[blocks < last], blocks[blocks < last]
        return [column.take(pa.array(order)) for column in columns], probes[order], blocks

    def _groups(self, numbers: list[int]) -> Iterator[tuple[list[int], BlockGroup]]:
        """Yield blocks to search, in groups that are searched in one step."""
        held: list[Bytes] = []
        size = first = 0
        for at, block in enumerate(self._reader.blocks(numbers)):
            held.append(block)
            size += len(block)
            if size >= _STEP_BYTES or at + 1 == len(numbers):
                some = numbers[first : at + 1]
                with self._reader.error_context(f"one of the blocks {some[0]} to {some[-1]}"):
                    group = BlockGroup.of(held)
                yield some, group
                held, size, first = [], 0, at + 1

    def _search(self, group: BlockGroup, blocks: Longs, probes: list[pa.Array]) -> tuple[Longs, RowBytes]:
        """Return the keys that are in their blocks, and their values."""
        check_rows(group.counts == 0, "has no entries")
        rows = int(group.counts.sum())
        few = rows <= max(_FEW_ROWS, _ROWS_OF_A_KEY * len(blocks))
        keys, hits = (self._among_all if few else self._by_halves)(group, blocks, probes)
        return hits, group.values(blocks[hits], keys)

    def _among_all(self, group: BlockGroup, blocks: Longs, probes: list[pa.Array]) -> tuple[RowBytes, Longs]:
        """Find entries of keys by comparing all entries; return the entries, and the positions of the keys found."""
        of_blocks, keys = group.entry_blocks, group.all_keys()
        ordered = order_keys(_concatenated(decode_compacted(keys, self._types), probes))
        here, wanted = ordered[: len(of_blocks)], ordered[len(of_blocks) :]
        indexes = np.minimum(np.searchsorted(here, wanted, side="left"), len(here) - 1)
        hits = np.flatnonzero((here[indexes] == wanted) & (of_blocks[indexes] == blocks))
        return keys.take(indexes[hits]), hits

    def _by_halves(self, group: BlockGroup, blocks: Longs, probes: list[pa.Array]) -> tuple[RowBytes, Longs]:
        """Do the same by a binary search in the block of each key, which decodes few of many entries."""
        counts = group.counts[blocks]
        low, high = np.zeros(len(blocks), np.int64), counts
        while True:
            entries = np.minimum((low + high) >> 1, counts - 1)
            keys = group.keys(blocks, entries)
            ordered = order_keys(_concatenated(decode_compacted(keys, self._types), probes))
            here, wanted = ordered[: len(blocks)], ordered[len(blocks) :]
            is_open = low < high
            if not is_open.any():
                hits = np.flatnonzero(here == wanted)
                return keys.take(hits), hits
            below = here < wanted
            low = np.where(is_open & below, entries + 1, low)
            high = np.where(is_open & ~below, entries, high)


def _batches(values: RowBytes) -> Iterator[RowBytes]:
    """Yield values in parts of a bounded number of rows and bytes."""
    ends = np.cumsum(values.lengths)
    start = 0
    while start < len(ends):
        room = _BATCH_BYTES + (int(ends[start - 1]) if start else 0)
        end = max(min(int(np.searchsorted(ends, room, side="right")), start + _BATCH_ROWS), start + 1)
        yield values.take(np.arange(start, end))
        start = end


def canonical_keys(rows: pa.Table, keys: Sequence[DataField]) -> list[pa.Array]:
    """Return the key columns of rows, with normalized floats (docs/keys.md): 0.0 for -0.0, and one NaN."""
    columns = [contiguous(rows.column(field.name)) for field in keys]
    return [_one_zero_and_nan(column) if pa.types.is_floating(column.type) else column for column in columns]


def _one_zero_and_nan(column: pa.Array) -> pa.Array:
    zero, nan = pa.scalar(0.0, column.type), pa.scalar(float("nan"), column.type)
    return pc.if_else(pc.is_nan(column), nan, pc.add(column, zero))


def _concatenated(first: Sequence[pa.Array], second: Sequence[pa.Array]) -> list[pa.Array]:
    return [pa.concat_arrays([one, other]) for one, other in zip(first, second, strict=True)]


def _types(fields: Sequence[DataField]) -> list[DataType]:
    return [field.type for field in fields]
