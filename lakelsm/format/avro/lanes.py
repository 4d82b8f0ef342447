"""Columnar decoding of Avro files: all data blocks in parallel, one numpy cursor ("lane") for each block.

Blocks can be decoded independently. One sweep over the writer's schema therefore decodes the n-th record of every
block, with a few numpy operations on all lanes for each field. The result is columns of integers and of (offset, length)
pairs into the decompressed bytes; Python objects are made later, on demand. With many blocks this is faster than
`container.read_records`, with few blocks slower.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from fastavro.schema import expand_schema

from lakelsm.errors import CorruptTableError
from lakelsm.format.avro.container import DECODE_ERRORS, Container
from lakelsm.format.avro.varints import LaneBytes

Longs: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

_PADDING = bytes(16)
#: Maximum sweeps over the items of one array field. A sweep takes as long as fastavro needs for many items, so with more
#: sweeps lanes are slower.
_MAX_ITEM_SWEEPS = 200_000


class UnsupportedLayoutError(Exception):
    """The writer's schema has a shape that lanes do not support. Read the records one by one instead."""


@dataclass(frozen=True)
class LongColumn:
    """An int, long or boolean field; ``present`` is False for null (None: no nulls)."""

    values: Longs
    present: Mask | None


@dataclass(frozen=True)
class SliceColumn:
    """A string or bytes field: offset and length of each value in the decompressed data; the length is 0 for null."""

    offsets: Longs
    lengths: Longs
    present: Mask | None


@dataclass(frozen=True)
class ListColumn:
    """An array field: the items of record i are ``items[offsets[i]:offsets[i + 1]]``."""

    offsets: Longs
    present: Mask | None
    items: LongColumn | SliceColumn


Column: TypeAlias = LongColumn | SliceColumn | ListColumn


@dataclass(frozen=True)
class DecodedColumns:
    """``count`` records in file order. ``columns`` are by path (``_FILE._LEVEL``), without missing fields."""

    count: int
    data: bytes
    columns: Mapping[str, Column]


def decode_columns(containers: Sequence[Container], wanted: Collection[str]) -> DecodedColumns:
    """Decode the ``wanted`` fields of container files that share one writer schema, in the given order.

    Raises UnsupportedLayoutError for a schema with maps, enums, fixed, nested arrays or arrays of records, and
    CorruptTableError if a block does not decode exactly to its end.
    """
    source = ", ".join(container.source for container in containers)
    try:
        schema = cast("Mapping[str, Any]", expand_schema(dict(containers[0].schema)))
        plan = _Record(schema, "", frozenset(wanted), nested=False)
        lanes = _Lanes.over(containers)
        _sweep(plan, lanes)
        columns: dict[str, Column] = {}
        plan.collect(lanes.record_count, columns)
    except DECODE_ERRORS as error:
        raise CorruptTableError(f"{source} is not a readable Avro file: {error}") from error
    return DecodedColumns(lanes.record_count, lanes.data, columns)


@dataclass(frozen=True, kw_only=True)
class _Lanes:
    """Blocks sorted by falling record count, so that the lanes that still run are always the first ones."""

    data: bytes
    starts: Longs
    ends: Longs
    counts: Longs
    first_records: Longs
    record_count: int

    @classmethod
    def over(cls, containers: Sequence[Container]) -> _Lanes:
        blocks = [block for container in containers for block in container.blocks]
        sizes = np.array([len(block.data) for block in blocks], np.int64)
        counts = np.array([block.count for block in blocks], np.int64)
        ends = np.cumsum(sizes)
        order = np.argsort(-counts, kind="stable")
        return cls(
            data=b"".join([*(block.data for block in blocks), _PADDING]),
            starts=(ends - sizes)[order],
            ends=ends[order],
            counts=counts[order],
            first_records=(np.cumsum(counts) - counts)[order],
            record_count=int(counts.sum()),
        )


def _sweep(plan: _Record, lanes: _Lanes) -> None:
    """Decode every lane to its end."""
    source = LaneBytes(lanes.data)
    positions = lanes.starts.copy()
    steps = int(lanes.counts[0]) if len(lanes.counts) else 0
    if steps > len(lanes.data):
        raise ValueError("a block claims more records than it has bytes")
    running = np.searchsorted(-lanes.counts, -np.arange(steps), side="left")
    for step in range(steps):
        active = int(running[step])
        moved = plan.decode(source, positions[:active], lanes.first_records[:active] + step)
        if (moved > lanes.ends[:active]).any():
            raise EOFError("a record is truncated")
        positions[:active] = moved
    if not np.array_equal(positions, lanes.ends):
        raise ValueError("a block has bytes after its records")


@dataclass
class _Chunks:
    """Decoded values, each array with the record numbers (``slots``) of its values. `gather` puts them in order."""

    slots: list[Longs] = field(default_factory=list)
    values: list[Longs] = field(default_factory=list)

    def add(self, slots: Longs, values: Longs) -> None:
        self.slots.append(slots)
        self.values.append(values)

    def gather(self, count: int) -> Longs:
        """Return the value of each of ``count`` slots, 0 if it has none."""
        result = np.zeros(count, np.int64)
        if self.slots:
            result[np.concatenate(self.slots)] = np.concatenate(self.values)
        return result

    def present(self, count: int) -> Mask | None:
        """Return which slots have a value; None if all have one."""
        if sum(map(len, self.slots)) == count:
            return None
        mask = np.zeros(count, np.bool_)
        if self.slots:
            mask[np.concatenate(self.slots)] = True
        return mask


class _Node(ABC):
    """One field of the writer's schema. ``decode`` reads it in some lanes and returns its ends."""

    @abstractmethod
    def decode(self, source: LaneBytes, positions: Longs, slots: Longs) -> Longs: ...

    def collect(self, count: int, columns: dict[str, Column]) -> None:  # noqa: B027 Most fields have no column.
        """Add the columns of this field, ``count`` slots long, to ``columns`` under their paths."""


class _Fixed(_Node):
    """null, float and double: a fixed number of bytes, never wanted."""

    def __init__(self, size: int) -> None:
        self._size = size

    def decode(self, source: LaneBytes, positions: Longs, slots: Longs) -> Longs:
        return positions + self._size


class _Long(_Node):
    """int, long and boolean (whose byte 1 is the zigzag number -1)."""

    def __init__(self, path: str, wanted: bool) -> None:
        self._path = path
        self._chunks = _Chunks() if wanted else None

    def decode(self, source: LaneBytes, positions: Longs, slots: Longs) -> Longs:
        if self._chunks is None:
            return source.skip(positions)
        values, positions = source.varints(positions)
        self._chunks.add(slots, values)
        return positions

    def collect(self, count: int, columns: dict[str, Column]) -> None:
        if self._chunks is not None:
            columns[self._path] = LongColumn(self._chunks.gather(count), self._chunks.present(count))


class _Slice(_Node):
    """string and bytes."""

    def __init__(self, path: str, wanted: bool) -> None:
        self._path = path
        self._offsets = _Chunks() if wanted else None
        self._lengths = _Chunks()

    def decode(self, source: LaneBytes, positions: Longs, slots: Longs) -> Longs:
        lengths, positions = source.varints(positions)
        if len(lengths) and lengths.min() < 0:
            raise ValueError("a text has a negative length")
        if self._offsets is not None:
            self._offsets.add(slots, positions)
            self._lengths.add(slots, lengths)
        return positions + lengths

    def collect(self, count: int, columns: dict[str, Column]) -> None:
        if self._offsets is not None:
            columns[self._path] = SliceColumn(
                self._offsets.gather(count), self._lengths.gather(count), self._lengths.present(count)
            )


class _Union(_Node):
    """A union. The collected column is that of its only branch that is not null."""

    def __init__(self, branches: Sequence[_Node]) -> None:
        self._branches = branches

    def decode(self, source: LaneBytes, positions: Longs, slots: Longs) -> Longs:
        choices, positions = source.varints(positions)
        if len(choices) == 0:
            return positions
        low, high = int(choices.min()), int(choices.max())
        if low < 0 or high >= len(self._branches):
            raise ValueError("a union has a branch that is not in its schema")
        if low == high:
            return self._branches[low].decode(source, positions, slots)
        for number, branch in enumerate(self._branches):
            lanes = np.flatnonzero(choices == number)
            if len(lanes):
                positions[lanes] = branch.decode(source, positions[lanes], slots[lanes])
        return positions

    def collect(self, count: int, columns: dict[str, Column]) -> None:
        for branch in self._branches:
            branch.collect(count, columns)


class _Record(_Node):
    """A record: its fields in order. Wanted fields are named by their path."""

    def __init__(self, schema: Mapping[str, Any], path: str, wanted: frozenset[str], nested: bool) -> None:
        if nested:
            raise UnsupportedLayoutError("the schema has an array of records")
        self._fields = [
            _compile(item["type"], f"{path}.{item['name']}" if path else item["name"], wanted, nested)
            for item in schema["fields"]
        ]

    def decode(self, source: LaneBytes, positions: Longs, slots: Longs) -> Longs:
        for node in self._fields:
            positions = node.decode(source, positions, slots)
        return positions

    def collect(self, count: int, columns: dict[str, Column]) -> None:
        for node in self._fields:
            node.collect(count, columns)


class _Array(_Node):
    """An array of plain values. Items are numbered in the order of decoding, and sorted at the end."""

    def __init__(self, items: Any, path: str, wanted: frozenset[str]) -> None:
        self._path = path
        self._wanted = path in wanted
        self._items = _compile(items, path, wanted, nested=True)
        self._lengths = _Chunks()
        self._item_slots: list[tuple[Longs, Longs]] = []
        self._item_count = 0
        self._sweeps = 0

    def decode(self, source: LaneBytes, positions: Longs, slots: Longs) -> Longs:
        counts, positions = source.varints(positions)
        lengths = np.zeros(len(slots), np.int64)
        while counts.any():
            if (counts < 0).any():
                counts, positions = self._sized_block(source, counts, positions)
            positions = self._block(source, counts, positions, slots, lengths)
            lengths += counts
            more = np.flatnonzero(counts)
            counts = np.zeros(len(slots), np.int64)
            counts[more], positions[more] = source.varints(positions[more])
        if self._wanted:
            self._lengths.add(slots, lengths)
        return positions

    def _sized_block(self, source: LaneBytes, counts: Longs, positions: Longs) -> tuple[Longs, Longs]:
        """Read the block's size in bytes, which follows a negative count. Return the counts and the next positions."""
        lanes = np.flatnonzero(counts < 0)
        _, positions[lanes] = source.varints(positions[lanes])
        return np.abs(counts), positions

    def _block(
        self, source: LaneBytes, counts: Longs, positions: Longs, slots: Longs, lengths: Longs
    ) -> Longs:
        """Decode one block of ``counts`` items in each lane, after ``lengths`` decoded items."""
        max_count = int(counts.max())
        if max_count > source.size:
            raise ValueError("an array claims more items than there are bytes")
        self._sweeps += max_count
        if self._sweeps > _MAX_ITEM_SWEEPS:
            raise UnsupportedLayoutError(f"{self._path} has a long array")
        is_uniform = max_count == int(counts.min())
        for number in range(max_count):
            lanes = slice(None) if is_uniform else np.flatnonzero(counts > number)
            where = slots[lanes]
            provisional = np.arange(self._item_count, self._item_count + len(where))
            self._item_count += len(where)
            if self._wanted:
                self._item_slots.append((where, lengths[lanes] + number))
            positions[lanes] = self._items.decode(source, positions[lanes], provisional)
        return positions

    def collect(self, count: int, columns: dict[str, Column]) -> None:
        if not self._wanted:
            return
        offsets = np.zeros(count + 1, np.int64)
        np.cumsum(self._lengths.gather(count), out=offsets[1:])
        inner: dict[str, Column] = {}
        self._items.collect(self._item_count, inner)
        items = _items(inner[self._path])
        if self._item_slots:
            records = np.concatenate([records for records, _ in self._item_slots])
            numbers = np.concatenate([numbers for _, numbers in self._item_slots])
            order = np.empty(self._item_count, np.int64)
            order[offsets[records] + numbers] = np.arange(self._item_count)
            items = _taken(items, order)
        columns[self._path] = ListColumn(offsets, self._lengths.present(count), items)


def _compile(avro_type: Any, path: str, wanted: frozenset[str], nested: bool) -> _Node:
    """Return the node that decodes ``avro_type``; ``nested`` is true for the items of an array."""
    if isinstance(avro_type, list):
        if sum(branch != "null" for branch in avro_type) > 1:
            raise UnsupportedLayoutError(f"{path} is a union of several types")
        return _Union([_compile(branch, path, wanted, nested) for branch in avro_type])
    name = avro_type["type"] if isinstance(avro_type, Mapping) else avro_type
    if not isinstance(name, str):
        return _compile(name, path, wanted, nested)
    if name == "record":
        return _Record(avro_type, path, wanted, nested)
    if name == "array" and not nested:
        return _Array(avro_type["items"], path, wanted)
    if name in ("int", "long", "boolean"):
        return _Long(path, path in wanted)
    if name in ("string", "bytes"):
        return _Slice(path, path in wanted)
    if name == "null":
        return _Fixed(0)
    if name in _FIXED_SIZES and path not in wanted:
        return _Fixed(_FIXED_SIZES[name])
    raise UnsupportedLayoutError(f"{path} is of Avro type {name}")


_FIXED_SIZES = {"float": 4, "double": 8}


def _items(column: Column) -> LongColumn | SliceColumn:
    if isinstance(column, ListColumn):
        raise UnsupportedLayoutError("the schema has an array of arrays")
    return column


def _taken(items: LongColumn | SliceColumn, order: Longs) -> LongColumn | SliceColumn:
    """Return ``items`` in another order."""
    present = None if items.present is None else items.present[order]
    if isinstance(items, SliceColumn):
        return SliceColumn(items.offsets[order], items.lengths[order], present)
    return LongColumn(items.values[order], present)
