"""Positions of rows that a merge hides, found from the deciding columns alone: a deletion vector for one read.

For `deduplicate` the rows of a read are rows of files: of each key the winning one, unless it is a retraction. So
every file can be scanned by Spark itself, with its projections and predicates, if only the losing rows are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import starmap

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.merge.kernel import VALUE_KIND, MergeSpec, is_retract, latest_rows
from lakelsm.merge.key_order import OrderKeys
from lakelsm.merge.run_reader import FILE_COLUMN, POSITION_COLUMN, MergeUnit, RunReader
from lakelsm.merge.streaming import key_ranges

#: Spark schema of what a task yields: a file's name and its hidden rows as a bitmap of 64-bit words, lowest bit first.
STALE_SCHEMA = "stale_file string, stale_words array<bigint>"


@dataclass(frozen=True)
class StaleRows:
    """The task that finds the hidden rows of some units."""

    reader: RunReader
    spec: MergeSpec

    def __call__(self, units: Sequence[MergeUnit]) -> Iterator[pa.RecordBatch]:
        """Yield one row of `STALE_SCHEMA` for each file of a unit that has hidden rows in it."""
        for unit in units:
            yield from self._of_unit(unit)

    def _of_unit(self, unit: MergeUnit) -> Iterator[pa.RecordBatch]:
        files: list[npt.NDArray[np.int32]] = []
        positions: list[npt.NDArray[np.int64]] = []
        ranges = key_ranges(self.reader.open_runs(unit, positions=True), self.spec.key_columns)
        for numbers, places in starmap(self._hidden, ranges):
            if len(numbers):
                files.append(numbers)
                positions.append(places)
        if not files:
            return
        numbers, places = np.concatenate(files), np.concatenate(positions)
        for number in np.unique(numbers).tolist():
            file = unit.files[number]
            yield _stale_row(file.path.rsplit("/", 1)[-1], bitmap_words(places[numbers == number], file.row_count))

    def _hidden(self, rows: pa.Table, keys: OrderKeys | None) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """The file numbers and positions of the rows of one key range that no read may show."""
        retract = is_retract(rows.column(VALUE_KIND))
        if keys is None:
            hidden = retract
        else:
            hidden = np.ones(len(rows), dtype=bool)
            winners = latest_rows(rows, keys, self.spec)
            hidden[winners] = retract[winners]
        at = np.flatnonzero(hidden)
        return rows.column(FILE_COLUMN).to_numpy()[at], rows.column(POSITION_COLUMN).to_numpy()[at]


def join_bitmaps(group: pa.Table) -> pa.Table:
    """Join the rows of `STALE_SCHEMA` of one file (from units of several key ranges) to one."""
    words = group.column("stale_words").combine_chunks()
    matrix = words.flatten().to_numpy().reshape(len(group), -1)
    return pa.Table.from_batches([_stale_row(group.column("stale_file")[0].as_py(), np.bitwise_or.reduce(matrix))])


def _stale_row(name: str, words: npt.NDArray[np.int64]) -> pa.RecordBatch:
    lists = pa.ListArray.from_arrays(pa.array([0, len(words)], pa.int32()), pa.array(words))
    return pa.RecordBatch.from_arrays([pa.array([name]), lists], names=["stale_file", "stale_words"])


def bitmap_words(positions: npt.NDArray[np.int64], rows: int) -> npt.NDArray[np.int64]:
    """Return the bitmap of ``positions`` (below ``rows``) as 64-bit words, lowest bit first."""
    bits = np.zeros((rows + 63) // 64 * 64, dtype=bool)
    bits[positions] = True
    return np.packbits(bits, bitorder="little").view(np.int64)
