"""Sorts rows by bucket (a code for partition and bucket) and key, in bounded memory; rows of a key keep their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.local.bucket_codes import RowCodes
from lakelsm.local.scratch_runs import ScratchRun, ScratchSpace
from lakelsm.merge.key_order import order_keys, stable_order
from lakelsm.merge.streaming import key_ranges
from lakelsm.schema.system_columns import SEQUENCE_NUMBER

Rows = npt.NDArray[np.int64]

#: Bytes of rows that are copied at a time.
_PIECE_BYTES = 4 << 20
#: Bytes of a batch in a scratch file: a merge holds one batch of each run.
_SCRATCH_BYTES = 512 << 10
#: The number of runs that are merged at a time.
_FAN_IN = 64
#: Offsets of texts have 31 bits.
_MAX_MEMORY = 1 << 30


@dataclass(frozen=True)
class SortedRows:
    """The rows of one bucket. ``tables`` returns them in order, in any thread."""

    code: int
    size: int
    tables: Callable[[], Iterator[pa.Table]]


class RowSorter:
    """Sorts rows of a stream. ``memory`` limits the bytes of rows in memory; the others are written to ``scratch``."""

    def __init__(self, key_columns: Sequence[str], memory: int, scratch: ScratchSpace) -> None:
        self._keys = tuple(key_columns)
        # A sort needs a copy of the rows.
        self._max_bytes = min(memory, _MAX_MEMORY) // 2
        self._scratch = scratch
        self._batches: list[pa.RecordBatch] = []
        self._codes: list[RowCodes] = []
        self._size = 0
        self._runs: list[ScratchRun] = []
        self._sizes: dict[int, int] = {}

    def add(self, rows: pa.RecordBatch, codes: RowCodes) -> None:
        """Add the next rows, with the code of the bucket of each."""
        size = rows.nbytes
        if self._batches and self._size + size > self._max_bytes:
            self._spill()
        self._batches.append(rows)
        self._codes.append(codes)
        self._size += size

    def sorted(self) -> list[SortedRows]:
        """Return the rows of each bucket. No more rows can be added."""
        if not self._runs:
            return list(self._rows_in_memory())
        if self._batches:
            self._spill()
        while len(self._runs) > _FAN_IN:
            oldest = self._merged(self._runs[:_FAN_IN], _SCRATCH_BYTES)
            merged = self._scratch.write((rows.code, table) for rows in oldest for table in rows.tables())
            self._runs = [merged, *self._runs[_FAN_IN:]]
        return self._merged(self._runs, _PIECE_BYTES)

    def _rows_in_memory(self, piece_bytes: int = _PIECE_BYTES) -> Iterator[SortedRows]:
        """Yield the rows in memory, by bucket."""
        if not self._batches:
            return
        (rows,) = pa.Table.from_batches(self._batches).combine_chunks().to_batches()
        self._batches.clear()
        codes = np.concatenate(self._codes)
        self._codes.clear()
        width = self._size / len(rows)
        step = max(1, int(piece_bytes / max(width, 1)))
        self._size = 0
        for code, members in _members(codes):
            held = _MemoryRows(rows, members, self._keys, step)
            yield SortedRows(code, int(width * len(members)), held.tables)

    def _spill(self) -> None:
        """Write the rows in memory as a run."""
        held = map(self._count_size, self._rows_in_memory(_SCRATCH_BYTES))
        self._runs.append(self._scratch.write((rows.code, table) for rows in held for table in rows.tables()))

    def _count_size(self, rows: SortedRows) -> SortedRows:
        self._sizes[rows.code] = self._sizes.get(rows.code, 0) + rows.size
        return rows

    def _merged(self, runs: Sequence[ScratchRun], piece_bytes: int) -> list[SortedRows]:
        """Return the rows of runs, by bucket."""
        codes = sorted({code for run in runs for code in run.codes})
        return [
            SortedRows(code, self._sizes[code], _MergedRows(runs, code, self._keys, piece_bytes).tables)
            for code in codes
        ]


@dataclass(frozen=True)
class _MemoryRows:
    """Some rows of a batch in memory, sorted when they are read."""

    rows: pa.RecordBatch
    members: Rows
    keys: tuple[str, ...]
    step: int

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows in order, copied in pieces."""
        wanted = pa.array(self.members)
        keys = order_keys([self.rows.column(name).take(wanted) for name in self.keys])
        order = self.members[stable_order(keys)]
        for start in range(0, len(order), self.step):
            yield pa.Table.from_batches([self.rows.take(pa.array(order[start : start + self.step]))])


@dataclass(frozen=True)
class _MergedRows:
    """The rows of a bucket from several runs."""

    runs: Sequence[ScratchRun]
    code: int
    keys: tuple[str, ...]
    piece_bytes: int

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows in order, one key range at a time. With their sequence numbers, all keys are distinct."""
        opened = [run.tables(self.code) for run in self.runs]
        for rows, keys in key_ranges(opened, [*self.keys, SEQUENCE_NUMBER]):
            yield rows if keys is None else rows.combine_chunks().take(pa.array(stable_order(keys)))


def _members(codes: RowCodes) -> Iterator[tuple[int, Rows]]:
    """Yield the code of each bucket with its row indexes, ascending."""
    order = np.argsort(codes.astype(np.uint16) if int(codes.max()) < 1 << 16 else codes, kind="stable")
    counts = np.bincount(codes)
    stops = np.cumsum(counts)
    for code in np.flatnonzero(counts).tolist():
        yield code, order[stops[code] - counts[code] : stops[code]]
