"""Finds the positions of rows that a merge hides, from the deciding columns alone: a deletion vector for one read.

With `deduplicate` and `first-row` the rows of a read are rows of files: the winning row of each key, unless it is a
retraction. Spark can therefore scan every file itself, with its projections and predicates, if the losing rows are left
out. With the other engines this holds for rows whose key has no other row; all others are hidden, and `merged_rows`
merges them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.format.data_file.vector_location import positions_within, read_vectors
from lakelsm.format.row_kinds import is_retract
from lakelsm.merge.grouped_rows import Mask
from lakelsm.merge.kernel import contested, surviving_rows
from lakelsm.merge.key_order import OrderKeys, group_starts
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.merge.merge_unit import MergeUnit, RunFile
from lakelsm.merge.run_reader import RunReader
from lakelsm.merge.streaming import key_ranges
from lakelsm.options import MergeEngine
from lakelsm.read.stored_rows import TASK_MEMORY
from lakelsm.schema.system_columns import (
    FILE_NUMBER,
    HIDDEN_CHUNK,
    HIDDEN_FILE,
    HIDDEN_SIZE,
    HIDDEN_WORDS,
    POSITION,
    VALUE_KIND,
)
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage import FileIO

#: log2 of the number of rows of a file that share one bitmap.
CHUNK_BITS = 16

#: The maximum number of positions that a task collects before it yields them.
_MAX_POSITIONS = 1 << 20


@dataclass(frozen=True)
class HiddenRowTask:
    """The task that finds the hidden rows of some units.

    If the plan of a unit proves that its keys alone decide, only keys are decoded.
    """

    reader: RunReader
    spec: MergeSpec

    @staticmethod
    def of(store: TableStore, schemas: Mapping[int, TableSchema]) -> HiddenRowTask:
        """Return the task for units of a table whose files were written under ``schemas``."""
        spec = MergeSpec.of(store.schema, store.options)
        columns = tuple(dict.fromkeys((*spec.key_columns, *(spec.sequence_columns if spec.keeps_rows else ()))))
        reader = RunReader(store.file_io, store.schema, schemas=schemas, columns=columns, memory_bytes=TASK_MEMORY)
        return HiddenRowTask(reader, spec)

    def __call__(self, units: Sequence[MergeUnit]) -> Iterator[pa.RecordBatch]:
        """Yield the chunks of the units' files that have hidden rows, in the form of `hidden_chunks`."""
        for unit in units:
            yield from self._of_unit(unit)

    def hidden(self, unit: MergeUnit, positions: bool) -> Iterator[tuple[pa.Table, Mask]]:
        """Yield the rows of each key range of a unit and which are hidden; ``positions`` adds their row indexes."""
        keys_decide = self._keys_decide(unit)
        runs = self.reader.open_runs(unit, positions, system=not keys_decide)
        for rows, keys in key_ranges(runs, self.spec.key_columns):
            yield rows, self._hidden_by_keys(rows, keys) if keys_decide else self._hidden(rows, keys)

    def _keys_decide(self, unit: MergeUnit) -> bool:
        """Return whether keys and the order of the runs alone decide: no row is a retraction, and the last one wins.

        If rows are combined, all rows of a contested key are hidden, and their order does not matter.
        """
        last_wins = self.spec.engine is MergeEngine.DEDUPLICATE and not self.spec.sequence_columns
        return unit.has_only_adds and (not self.spec.keeps_rows or (last_wins and unit.is_newest_last))

    def _of_unit(self, unit: MergeUnit) -> Iterator[pa.RecordBatch]:
        pending: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]] = []
        count = 0
        for rows, hidden in self.hidden(unit, positions=True):
            positions = rows.select([FILE_NUMBER, POSITION]).filter(pa.array(hidden))
            pending.append((positions.column(FILE_NUMBER).to_numpy(), positions.column(POSITION).to_numpy()))
            count += len(positions)
            if count > _MAX_POSITIONS:
                yield hidden_chunks(unit.files, pending)
                pending, count = [], 0
        if count:
            yield hidden_chunks(unit.files, pending)

    def _hidden_by_keys(self, rows: pa.Table, keys: OrderKeys | None) -> Mask:
        if keys is None:
            return np.zeros(len(rows), dtype=bool)
        hidden = contested(keys)
        shared = np.flatnonzero(hidden)
        if len(shared) and self.spec.keeps_rows:
            shared = shared[np.argsort(keys[shared], kind="stable")]
            hidden[shared[np.append(group_starts(keys[shared])[1:], True)]] = False
        return hidden

    def _hidden(self, rows: pa.Table, keys: OrderKeys | None) -> Mask:
        hidden = retract = is_retract(rows.column(VALUE_KIND))
        if keys is not None:
            shared = np.flatnonzero(contested(keys))
            hidden = retract.copy()
            hidden[shared] = True
            if len(shared) and self.spec.keeps_rows:
                decisive = rows.select(self.spec.decisive_columns).take(pa.array(shared))
                winners = shared[surviving_rows(decisive, keys[shared], self.spec)]
                hidden[winners] = retract[winners]
        return hidden


@dataclass(frozen=True)
class MaskedRowTask:
    """The task that yields the rows that the deletion vectors of files mask."""

    file_io: FileIO

    def __call__(self, files: Sequence[RunFile]) -> Iterator[pa.RecordBatch]:
        """Yield the chunks of the files that have masked rows."""
        masked_files = [(file, file.vector) for file in files if file.vector is not None]
        vectors = read_vectors(self.file_io.filesystem(), [(vector, file.row_count) for file, vector in masked_files])
        for (file, _), bitmap in zip(masked_files, vectors):
            for start in range(0, file.row_count, _MAX_POSITIONS):
                positions = positions_within(bitmap, start, start + _MAX_POSITIONS)
                if len(positions):
                    yield hidden_chunks([file], [(np.zeros(len(positions), np.int32), positions)])


def hidden_chunks(
    files: Sequence[RunFile], positions_by_file: Sequence[tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]]
) -> pa.RecordBatch:
    """Return hidden rows, given as (index into ``files``, row index in the file), as one row for each chunk of a file.

    Columns: the file's name and size, the number of the chunk, and its hidden rows as a bitmap of 64-bit words, lowest
    bit first, without trailing zero words. A task may yield a chunk more than once.
    """
    numbers = np.concatenate([part[0] for part in positions_by_file])
    positions = np.concatenate([part[1] for part in positions_by_file])
    order = np.lexsort((positions, numbers))
    numbers, positions = numbers[order], positions[order]
    chunks = positions >> CHUNK_BITS
    starts = np.flatnonzero(np.append(True, (np.diff(numbers) != 0) | (np.diff(chunks) != 0)))
    words = [_bitmap(part & ((1 << CHUNK_BITS) - 1)) for part in np.split(positions, starts[1:])]
    offsets = np.cumsum([0, *(len(part) for part in words)])
    chunk_files = [files[number] for number in numbers[starts].tolist()]
    return pa.RecordBatch.from_arrays(
        [
            pa.array([file.name for file in chunk_files], pa.string()),
            pa.array([file.file_size for file in chunk_files], pa.int64()),
            pa.array(chunks[starts]),
            pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(np.concatenate(words))),
        ],
        names=[HIDDEN_FILE, HIDDEN_SIZE, HIDDEN_CHUNK, HIDDEN_WORDS],
    )


def _bitmap(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the bitmap of ascending row numbers as 64-bit words, lowest bit first."""
    bits = np.zeros((int(rows[-1]) // 64 + 1) * 64, dtype=bool)
    bits[rows] = True
    return np.packbits(bits, bitorder="little").view(np.int64)
