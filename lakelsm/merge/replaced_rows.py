"""Rows of files below the output of a compaction that the output replaces; deletion vectors mask them."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from lakelsm.merge.key_lookup import KeyLookup
from lakelsm.merge.merge_unit import RunFile
from lakelsm.merge.run_reader import RunReader
from lakelsm.schema.system_columns import FILE_NUMBER, POSITION

#: Keys wait for a common look-up up to the memory divided by this number.
_PENDING_SHARE = 4


class ReplacedRows:
    """Collects replaced rows: by row index, or by key, which is then looked up in ``files``.

    ``keys`` reads the key columns and no others. Keys that are not looked up yet occupy at most about a quarter of
    its memory.
    """

    def __init__(self, keys: RunReader, files: Sequence[RunFile]) -> None:
        self._keys = keys
        self._lookup = KeyLookup(keys)
        self._files = files
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0
        self._found: dict[str, array[int]] = defaultdict(lambda: array("I"))

    def add_keys(self, rows: pa.Table) -> None:
        """Add replaced rows by key. The keys are sorted, unique, and greater than the keys of earlier calls."""
        if not self._files or not len(rows):
            return
        self._pending.append(rows.select(self._keys.columns))
        self._pending_bytes += self._pending[-1].nbytes
        if self._pending_bytes > self._keys.memory_bytes // _PENDING_SHARE:
            self._look_up()

    def add_positions(self, names: Sequence[str], rows: pa.Table) -> None:
        """Add replaced rows by row index (`POSITION`) and file (`FILE_NUMBER`, an index into ``names``)."""
        numbers, positions = rows.column(FILE_NUMBER).to_numpy(), rows.column(POSITION).to_numpy()
        for number in np.unique(numbers).tolist():
            self._add(names[number], positions[numbers == number])

    def positions(self) -> dict[str, BitMap]:
        """Return the row indexes of all replaced rows by file name, for files that have some."""
        self._look_up()
        return {name: BitMap(positions) for name, positions in self._found.items()}

    def _look_up(self) -> None:
        if not self._pending:
            return
        keys = pa.concat_tables(self._pending).combine_chunks()
        self._pending, self._pending_bytes = [], 0
        for file in self._files:
            for positions in self._lookup.positions(file, keys):
                self._add(file.name, positions)

    def _add(self, name: str, positions: npt.NDArray[np.int64]) -> None:
        self._found[name].frombytes(positions.astype(np.uint32).tobytes())
