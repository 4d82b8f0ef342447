"""Cache generations: the rows that one refresh added, with an index for each key, and a bitmap of dead rows.

The files of a generation never change. A row whose key is written again becomes dead, and its new row belongs to a
younger generation. So each live row of the cache is in exactly one generation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.lookup.cache import Longs
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.store.arrow_segment import Segment, SegmentRows, SegmentWriter, hashes_path
from lakelsm.lookup.store.key_index import KeyIndex, write_index
from lakelsm.lookup.store.keyed_rows import KeyedRows
from lakelsm.lookup.store.store_file import Stamp, StoreFile, StoreFileWriter
from lakelsm.types import DataField, to_arrow

Bits = npt.NDArray[np.uint8]

_DEAD = "dead"
#: Rows that are copied at a time.
_COPIED_ROWS = 1 << 16


@dataclass(frozen=True)
class CacheLayout:
    """The ``fields`` of a cache's rows, and those of each of its ``keys``; the first key is the primary key."""

    fields: tuple[DataField, ...]
    keys: tuple[tuple[DataField, ...], ...]

    @property
    def schema(self) -> pa.Schema:
        """The stored columns."""
        return pa.schema([(field.name, to_arrow(field.type)) for field in self.fields])


@dataclass(frozen=True)
class SealedFile:
    """A file of a generation; ``seal`` identifies it among files of the same name."""

    name: str
    seal: int


@dataclass(frozen=True)
class WrittenSegment:
    """A segment that this process has written: ``rows`` is its row count, ``stamp`` that of the undamaged file."""

    name: str
    rows: int
    stamp: Stamp


@dataclass(frozen=True)
class GenerationFiles:
    """The files of a generation: its segments, an index for each key, and the dead rows (None: there are none)."""

    segments: tuple[SealedFile, ...]
    indexes: tuple[SealedFile, ...]
    dead: SealedFile | None
    _: KW_ONLY
    rows: int
    dead_rows: int

    @property
    def names(self) -> list[str]:
        """The names of all files."""
        return [file.name for file in (*self.segments, *self.indexes, *((self.dead,) if self.dead else ()))]


class Generation:
    """An open generation. It never changes, and several threads may search it.

    Its methods raise CorruptStoreError for a damaged file.
    """

    def __init__(self, files: GenerationFiles, keyed: Sequence[KeyedRows], dead: Bits | None) -> None:
        self.files = files
        self.keyed = tuple(keyed)
        self.rows = keyed[0].rows
        self._dead = dead

    @staticmethod
    def open(
        directory: CacheDirectory, layout: CacheLayout, files: GenerationFiles, whole: Mapping[str, Stamp] | None = None
    ) -> Generation:
        """Open the files; ``whole`` has, by name, the stamps of files that this process has written.

        Raises CorruptStoreError if one is missing, damaged or replaced.
        """
        stamps = {} if whole is None else whole
        rows = SegmentRows(layout.fields, [Segment(_opened(directory, file, stamps)) for file in files.segments])
        opened = [_opened(directory, file, stamps) for file in files.indexes]
        indexes = [KeyIndex(file, file.facts) for file in opened]
        keyed = [KeyedRows(rows, index, key) for index, key in zip(indexes, layout.keys, strict=True)]
        dead = None
        if files.dead is not None:
            with _opened(directory, files.dead, {}) as file:
                section = file.section(_DEAD)
                dead = np.frombuffer(bytes(section.bytes(0, section.size)), np.uint8)
        if len(rows) != files.rows or (dead is not None and len(dead) != -(-files.rows // 8)):
            raise indexes[0].file.damaged("its row count is not that of the cache's state")
        return Generation(files, keyed, dead)

    @property
    def live_rows(self) -> int:
        """The number of rows that are not dead."""
        return self.files.rows - self.files.dead_rows

    def row_indexes(self, key: int, keys: pa.Table) -> tuple[Longs, Longs]:
        """Return the indexes of keys with live rows, ascending, and those rows; ``key`` is the position of the index."""
        probes, rows = self.keyed[key].row_indexes(keys)
        if self._dead is None or not len(rows):
            return probes, rows
        live = ~self._are_dead(rows)
        return probes[live], rows[live]

    def live_rows_of(self, key: int, values: Sequence[Any], key_hash: int) -> list[int]:
        """Return the live rows with one key, given as Python values and its `KeyedRows.hash_of`."""
        rows, dead = self.keyed[key].rows_of_hash(values, key_hash), self._dead
        return rows if dead is None else [row for row in rows if not dead[row >> 3] >> (row & 7) & 1]

    def live(self) -> Iterator[pa.Table]:
        """Yield the live rows in order, with all columns."""
        names = self.rows.schema.names
        for start in range(0, self.files.rows, _COPIED_ROWS):
            rows = np.arange(start, min(start + _COPIED_ROWS, self.files.rows))
            if self._dead is not None:
                rows = rows[~self._are_dead(rows)]
            if len(rows):
                yield self.rows.take(rows, names)

    def without(self, directory: CacheDirectory, name: str, rows: Longs) -> Generation:
        """Return the generation with more dead rows, each given once. All dead rows are in the new file ``name``."""
        bits: Bits = np.zeros(-(-self.files.rows // 8), dtype=np.uint8) if self._dead is None else self._dead.copy()
        np.bitwise_or.at(bits, rows >> 3, np.left_shift(1, rows & 7).astype(np.uint8))
        with StoreFileWriter(directory.file(name)) as writer:
            writer.append(_DEAD, bits)
            seal = writer.finish({})
        files = replace(self.files, dead=SealedFile(name, seal), dead_rows=self.files.dead_rows + len(rows))
        return Generation(files, self.keyed, bits)

    def _are_dead(self, rows: Longs) -> npt.NDArray[np.bool_]:
        assert self._dead is not None
        dead: npt.NDArray[np.bool_] = (self._dead[rows >> 3] >> (rows & 7).astype(np.uint8) & 1).astype(bool)
        return dead


def write_segment(directory: CacheDirectory, name: str, layout: CacheLayout, rows: Iterable[pa.Table]) -> WrittenSegment:
    """Write a segment. `index_segments` makes a generation of segments."""
    with SegmentWriter(directory.file(name), layout.fields, layout.keys) as writer:
        for table in rows:
            writer.write(table)
            directory.check_space()
        return WrittenSegment(name, writer.rows, writer.finish())


def index_segments(
    directory: CacheDirectory, name: str, layout: CacheLayout, segments: Sequence[WrittenSegment], threads: int = 1
) -> Generation:
    """Make a generation of segments: write its indexes, whose names begin with ``name``, and open it."""
    opened = [Segment.open(directory.file(segment.name)) for segment in segments]
    rows = SegmentRows(layout.fields, opened)
    whole = {segment.name: segment.stamp for segment in segments}
    indexes = []
    for key in range(len(layout.keys)):
        index = f"{name}.{key}.index"
        with ExitStack() as stack:
            paths = [hashes_path(directory.file(segment.name), key) for segment in segments]
            sources = [stack.enter_context(StoreFile(path)) for path in paths]
            writer = stack.enter_context(StoreFileWriter(directory.file(index)))
            facts = write_index(writer, list(zip(sources, rows.first_rows, strict=True)), threads)
            indexes.append(SealedFile(index, writer.finish(facts)))
            whole[index] = writer.stamp
        directory.check_space()
        for path in paths:
            directory.discard(path.name)
    sealed = tuple(SealedFile(each.name, segment.file.seal) for each, segment in zip(segments, opened, strict=True))
    files = GenerationFiles(sealed, tuple(indexes), None, rows=len(rows), dead_rows=0)
    return Generation.open(directory, layout, files, whole)


def _opened(directory: CacheDirectory, file: SealedFile, whole: Mapping[str, Stamp]) -> StoreFile:
    opened = StoreFile(directory.file(file.name), whole=whole.get(file.name))
    if opened.seal != file.seal:
        raise opened.damaged("it is not the file that the cache's state names")
    return opened
