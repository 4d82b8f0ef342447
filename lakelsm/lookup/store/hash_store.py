"""The hash store, after PalDB (in Paimon up to 1.3): one file, written once, that finds keys by hash.

As in PalDB, keys and values are row bytes, keys are grouped by length, each length has a table of slots with open
addressing, values are in separate compressed pages, and a bloom filter is checked first. There are three differences.
Slots are in hash order (`hash_keys`), so that a file is written in one pass from runs sorted in bounded memory. Pages
have values only, so that slots are read in place. Every part has a checksum (`store_file`). The format is lakelsm's
own; that of Java was private to its caches.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.format.row.binary_row import decode_rows, encode_rows, with_arity
from lakelsm.format.row.binary_row_slots import is_row_type
from lakelsm.format.row.bucket_hash import Hashes, hash_rows
from lakelsm.local.arrow_rows import normalized_floats
from lakelsm.lookup.cache import FoundRows
from lakelsm.lookup.store.hash_keys import KeyRuns, filled_slots, home_count, homes_of, value_offsets
from lakelsm.lookup.store.lookup_store import BlockCache, LookupStore, StoreFormat, StoreLayout
from lakelsm.lookup.store.sort_block import BlockForm
from lakelsm.lookup.store.store_bloom import StoreBloom
from lakelsm.lookup.store.store_file import StoreFile, StoreFileWriter
from lakelsm.lookup.store.value_pages import ValuePages, ValueWriter, row_words
from lakelsm.types import DataField, to_arrow

Longs = npt.NDArray[np.int64]

_KIND = "hash-2"
_BLOOM = "bloom"
#: Maximum rows that are encoded, and keys that are searched, at a time.
_BLOCK_ROWS = 1 << 16
_MAX_KEYS = 1 << 18
#: Maximum bytes of rows that are encoded, and approximate bytes of rows that are decoded, at a time.
_BLOCK_BYTES = 64 << 20
_DECODED_BYTES = 1 << 29


@dataclass(frozen=True)
class HashStoreFormat(StoreFormat):
    """Writes and opens hash stores, which share a cache of pages; ``load_factor`` is `lookup.hash-load-factor`."""

    form: BlockForm
    cache: BlockCache
    load_factor: float

    def write(self, path: Path, layout: StoreLayout, rows: Iterable[pa.Table]) -> None:
        """See `StoreFormat.write`. Memory: keys of 32 MB three times, and the bits of the bloom filter."""
        for field in (*layout.keys, *layout.values):
            if not is_row_type(field.type):
                raise UnsupportedFeatureError(
                    f"column '{field.name}': 'hash' stores do not support type {field.type.sql()}. Set "
                    "'lookup.local-file-type' to 'arrow', or leave the column out."
                )
        with KeyRuns(path) as keys, StoreFileWriter(path) as file:
            values = ValueWriter(file, page_bytes=self.form.page_size, compression=self.form.compression)
            for table in rows:
                for block in _blocks(table, _BLOCK_ROWS):
                    _add_rows(block, layout, keys, values)
            values.finish()
            file.finish({"kind": _KIND, "mark": layout.digest.hex(), **self._write_keys(file, keys)})

    def open(self, path: Path, layout: StoreLayout) -> HashStore:
        """See `StoreFormat.open`."""
        file = StoreFile(path)
        if file.facts.get("kind") != _KIND or file.facts.get("mark") != layout.digest.hex():
            file.close()
            raise file.damaged("its rows, columns or version are not the expected ones")
        return HashStore(file, layout, self.cache)

    def _write_keys(self, file: StoreFileWriter, keys: KeyRuns) -> dict[str, Any]:
        """Write the slots of each key length, and the bloom filter; return the facts that a reader needs."""
        counts = {length: keys.count(length) for length in keys.lengths()}
        homes = {length: home_count(count, self.load_factor) for length, count in counts.items()}
        written = (hashes for length in homes for hashes in _written_slots(file, keys, length, homes[length]))
        if self.form.bloom_fpp is not None:
            bloom = StoreBloom.of(written, sum(counts.values()), self.form.bloom_fpp)
            if bloom is not None:
                file.append(_BLOOM, bloom.bits)
        deque(written, maxlen=0)
        return {"rows": sum(counts.values()), "homes": list(homes.items())}


class HashStore(LookupStore):
    """An open hash store."""

    def __init__(self, file: StoreFile, layout: StoreLayout, cache: BlockCache) -> None:
        facts = file.facts
        self._file = file
        self._layout = layout
        self._schema = pa.schema([(field.name, to_arrow(field.type)) for field in layout.values])
        self._tables = [_SlotTable(file, length, homes) for length, homes in facts["homes"]]
        self._bloom_section = file.section(_BLOOM)
        self._bloom = StoreBloom(self._bloom_section.array(np.uint8), facts["rows"])
        self._values = ValuePages(file, cache)

    @property
    def disk_bytes(self) -> int:
        """The size of its file."""
        return self._file.size

    def find(self, keys: pa.Table) -> FoundRows:
        """See `LookupStore.find`."""
        self._file.check()
        probes, tables, start = [np.empty(0, np.int64)], [self._schema.empty_table()], 0
        for block in _blocks(keys, _MAX_KEYS):
            offsets = self._value_offsets(_key_bytes(block, self._layout.keys))
            hits = np.flatnonzero(offsets >= 0)
            probes.append(hits + start)
            tables.append(self._found(offsets[hits]))
            start += len(block)
        return FoundRows(np.concatenate(probes), pa.concat_tables(tables))

    def close(self) -> None:
        """Close the file, and free the memory of its pages."""
        self._values.close()
        self._file.close()

    def _value_offsets(self, keys: pa.BinaryArray) -> Longs:
        """Return the offset of the value of each key, -1 for a missing key."""
        hashes = hash_rows(keys)
        starts, words = row_words(keys)
        lengths = np.diff(starts)
        possible = self._may_have(hashes)
        offsets = np.full(len(keys), -1, np.int64)
        for table in self._tables:
            members = np.flatnonzero((lengths == table.length) & possible)
            if len(members):
                own = words[starts[members][:, None] + np.arange(table.length)]
                offsets[members] = value_offsets(table.slots, own, homes_of(hashes[members], table.homes), table.check)
        return offsets

    def _may_have(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Return for each hash whether a key may have it. Without a bloom filter, a key may have any hash."""
        if not self._bloom_section.size:
            return np.ones(len(hashes), bool)
        self._bloom_section.check(0, self._bloom_section.size)
        return self._bloom.may_have(hashes)

    def _found(self, offsets: Longs) -> pa.Table:
        """Return the rows at offsets, in that order."""
        tables, numbers = [self._schema.empty_table()], []
        for part, values in self._values.values(offsets):
            numbers.append(part)
            group = np.frombuffer(values.buffers()[1], np.int64)[:-1] // _DECODED_BYTES
            cuts = [0, *(np.flatnonzero(np.diff(group)) + 1).tolist(), len(values)]
            tables += [self._rows(values.slice(start, stop - start)) for start, stop in itertools.pairwise(cuts)]
        rows = pa.concat_tables(tables)
        return rows.take(pa.array(np.argsort(np.concatenate(numbers)))) if len(numbers) > 1 else rows

    def _rows(self, values: pa.Array) -> pa.Table:
        """Decode rows from their bytes."""
        types = [field.type for field in self._layout.values]
        return pa.Table.from_arrays(decode_rows(with_arity(values, len(types)), types), schema=self._schema)


class _SlotTable:
    """The slots of keys of ``length`` words."""

    def __init__(self, file: StoreFile, length: int, homes: int) -> None:
        self.length = length
        self.homes = homes
        self._section = file.section(_slots(length))
        self.slots = self._section.array(np.uint64).reshape(-1, length + 1)

    def check(self, slots: Longs) -> None:
        """Compare slots with their checksums before they are read."""
        self._section.check_values(slots, slots + 1, 8 * (self.length + 1))


def _written_slots(file: StoreFileWriter, keys: KeyRuns, length: int, homes: int) -> Iterator[Hashes]:
    """Write the slots of the keys of a length; yield the hashes of the keys, a part at a time."""
    for hashes, slots in filled_slots(keys.ordered(length), homes):
        file.append(_slots(length), slots)
        yield hashes


def _add_rows(rows: pa.Table, layout: StoreLayout, keys: KeyRuns, values: ValueWriter) -> None:
    """Write the values of rows, and add their keys with the offsets of the values."""
    own = _key_bytes(rows, layout.keys)
    offsets = values.add(_value_bytes(rows, layout.values))
    hashes = hash_rows(own).view(np.uint32)
    starts, words = row_words(own)
    lengths = np.diff(starts)
    for length in np.unique(lengths).tolist():
        members = np.flatnonzero(lengths == length)
        entries = np.empty((len(members), length + 2), np.uint64)
        entries[:, 0] = hashes[members]
        entries[:, 1:-1] = words[starts[members][:, None] + np.arange(length)]
        entries[:, -1] = offsets[members]
        keys.add(entries)


def _key_bytes(rows: pa.Table, fields: Sequence[DataField]) -> pa.BinaryArray:
    """Encode the keys of rows as row bytes: equal keys have equal bytes."""
    columns = [normalized_floats(rows.column(field.name), zeros=False) for field in fields]
    return encode_rows(columns, [field.type for field in fields])


def _value_bytes(rows: pa.Table, fields: Sequence[DataField]) -> pa.BinaryArray:
    return encode_rows([rows.column(field.name) for field in fields], [field.type for field in fields])


def _blocks(rows: pa.Table, max_rows: int) -> Iterator[pa.Table]:
    """Yield rows in order, in tables small enough to be encoded at a time; no empty table."""
    for start in range(0, len(rows), max_rows):
        block = rows.slice(start, max_rows)
        if block.nbytes > _BLOCK_BYTES and len(block) > 1:
            yield from _blocks(block, -(-len(block) // 2))
        else:
            yield block


def _slots(length: int) -> str:
    """Return the name of the section with the slots of a key length."""
    return f"slots-{length}"
