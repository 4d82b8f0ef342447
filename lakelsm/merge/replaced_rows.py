"""The rows of files below the output of a compaction that its rows replace: which deletion vectors then mask."""

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

#: The keys that are looked up at once have this share of the memory.
_HELD_SHARE = 4


class ReplacedRows:
    """Collects replaced rows: by their row index, or by their key, which is then found in ``files``.

    ``keys`` reads the key columns alone; about a quarter of its memory is held in keys that are not looked up yet.
    """

    def __init__(self, keys: RunReader, files: Sequence[RunFile]) -> None:
        self._keys = keys
        self._lookup = KeyLookup(keys)
        self._files = files
        self._held: list[pa.Table] = []
        self._held_bytes = 0
        self._found: dict[str, array[int]] = defaultdict(lambda: array("I"))

    def add_keys(self, rows: pa.Table) -> None:
        """Rows of these keys are replaced: sorted, unique, and above the keys that came before."""
        if not self._files or not len(rows):
            return
        self._held.append(rows.select(self._keys.columns))
        self._held_bytes += self._held[-1].nbytes
        if self._held_bytes > self._keys.memory_bytes // _HELD_SHARE:
            self._look_up()

    def add_positions(self, names: Sequence[str], rows: pa.Table) -> None:
        """Add replaced rows, which have `FILE_NUMBER` (an index in ``names``) and `POSITION`."""
        numbers, positions = rows.column(FILE_NUMBER).to_numpy(), rows.column(POSITION).to_numpy()
        for number in np.unique(numbers).tolist():
            self._add(names[number], positions[numbers == number])

    def positions(self) -> dict[str, BitMap]:
        """The positions of all replaced rows, by the names of the files that have some."""
        self._look_up()
        return {name: BitMap(positions) for name, positions in self._found.items()}

    def _look_up(self) -> None:
        if not self._held:
            return
        keys = pa.concat_tables(self._held).combine_chunks()
        self._held, self._held_bytes = [], 0
        for file in self._files:
            for positions in self._lookup.positions(file, keys):
                self._add(file.name, positions)

    def _add(self, name: str, positions: npt.NDArray[np.int64]) -> None:
        self._found[name].frombytes(positions.astype(np.uint32).tobytes())
