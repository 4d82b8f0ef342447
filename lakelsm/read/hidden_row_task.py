"""Positions of rows that a merge hides, found from the deciding columns alone: a deletion vector for one read.

For `deduplicate` and `first-row` the rows of a read are rows of files: of each key the winning one, unless it is a
retraction. So every file can be scanned by Spark itself, with its projections and predicates, if only the losing rows
are left out. For the other engines so can the rows whose key no other row has; the rest is hidden, and `merged_rows`
merges it.
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

#: Rows of a file that share one bitmap: two to this power.
CHUNK_BITS = 16

#: Positions that a task holds before it yields them.
_HELD_POSITIONS = 1 << 20


@dataclass(frozen=True)
class HiddenRowTask:
    """The task that finds the hidden rows of some units.

    Only keys are decoded of a unit whose plan proves that they decide.
    """

    reader: RunReader
    spec: MergeSpec

    @staticmethod
    def of(store: TableStore, schemas: Mapping[int, TableSchema]) -> HiddenRowTask:
        """The task for units of a table, whose files have been written under ``schemas``."""
        spec = MergeSpec.of(store.schema, store.options)
        columns = tuple(dict.fromkeys((*spec.key_columns, *(spec.sequence_columns if spec.keeps_rows else ()))))
        reader = RunReader(store.file_io, store.schema, schemas=schemas, columns=columns, memory_bytes=TASK_MEMORY)
        return HiddenRowTask(reader, spec)

    def __call__(self, units: Sequence[MergeUnit]) -> Iterator[pa.RecordBatch]:
        """Yield the chunks of the units' files that have hidden rows, as `hidden_chunks` has them."""
        for unit in units:
            yield from self._of_unit(unit)

    def hidden(self, unit: MergeUnit, positions: bool) -> Iterator[tuple[pa.Table, Mask]]:
        """The rows of each key range of a unit, and its hidden rows; ``positions``: rows have their location."""
        keys_tell = self._keys_tell(unit)
        runs = self.reader.open_runs(unit, positions, system=not keys_tell)
        for rows, keys in key_ranges(runs, self.spec.key_columns):
            yield rows, self._hidden_by_keys(rows, keys) if keys_tell else self._hidden(rows, keys)

    def _keys_tell(self, unit: MergeUnit) -> bool:
        """Whether keys and the order of the runs are all that decides: no row can be a retraction, and the last one wins.

        Where rows are combined all of a contested key are hidden, whichever is the last.
        """
        last_wins = self.spec.engine is MergeEngine.DEDUPLICATE and not self.spec.sequence_columns
        return unit.adds_only and (not self.spec.keeps_rows or (last_wins and unit.newest_last))

    def _of_unit(self, unit: MergeUnit) -> Iterator[pa.RecordBatch]:
        held: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]] = []
        count = 0
        for rows, hidden in self.hidden(unit, positions=True):
            at = rows.select([FILE_NUMBER, POSITION]).filter(pa.array(hidden))
            held.append((at.column(FILE_NUMBER).to_numpy(), at.column(POSITION).to_numpy()))
            count += len(at)
            if count > _HELD_POSITIONS:
                yield hidden_chunks(unit.files, held)
                held, count = [], 0
        if count:
            yield hidden_chunks(unit.files, held)

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
    """The task that returns the rows that the deletion vectors of files mask."""

    file_io: FileIO

    def __call__(self, files: Sequence[RunFile]) -> Iterator[pa.RecordBatch]:
        """Yield the chunks of the files that have masked rows."""
        masking = [(file, file.vector) for file in files if file.vector is not None]
        vectors = read_vectors(self.file_io.filesystem(), [(place, file.row_count) for file, place in masking])
        for (file, _), masked in zip(masking, vectors):
            for start in range(0, file.row_count, _HELD_POSITIONS):
                positions = positions_within(masked, start, start + _HELD_POSITIONS)
                if len(positions):
                    yield hidden_chunks([file], [(np.zeros(len(positions), np.int32), positions)])


def hidden_chunks(
    files: Sequence[RunFile], held: Sequence[tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]]
) -> pa.RecordBatch:
    """Return hidden rows, given as (numbers into ``files``, positions), as one row a chunk of a file's rows.

    Columns: the file's name and size, the number of the chunk, and its hidden rows as a bitmap of 64-bit words, lowest
    bit first, without zero words at the end. A chunk may come more than once from a task.
    """
    numbers = np.concatenate([part[0] for part in held])
    positions = np.concatenate([part[1] for part in held])
    order = np.lexsort((positions, numbers))
    numbers, positions = numbers[order], positions[order]
    chunks = positions >> CHUNK_BITS
    starts = np.flatnonzero(np.append(True, (np.diff(numbers) != 0) | (np.diff(chunks) != 0)))
    words = [_bitmap(part & ((1 << CHUNK_BITS) - 1)) for part in np.split(positions, starts[1:])]
    offsets = np.cumsum([0, *(len(part) for part in words)])
    found = [files[number] for number in numbers[starts].tolist()]
    return pa.RecordBatch.from_arrays(
        [
            pa.array([file.name for file in found], pa.string()),
            pa.array([file.file_size for file in found], pa.int64()),
            pa.array(chunks[starts]),
            pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(np.concatenate(words))),
        ],
        names=[HIDDEN_FILE, HIDDEN_SIZE, HIDDEN_CHUNK, HIDDEN_WORDS],
    )


def _bitmap(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The bitmap of ascending row numbers as 64-bit words, lowest bit first."""
    bits = np.zeros((int(rows[-1]) // 64 + 1) * 64, dtype=bool)
    bits[rows] = True
    return np.packbits(bits, bitorder="little").view(np.int64)
