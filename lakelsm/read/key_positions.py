"""The task that finds the keys of some rows in other files of their bucket."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakelsm.merge.merge_unit import KeySearch
from lakelsm.merge.replaced_rows import ReplacedRows
from lakelsm.merge.run_reader import RunReader
from lakelsm.runner.task_messages import TaskMessages

#: A file is decoded in batches of the memory divided by this number.
_BATCHES = 4


@dataclass(frozen=True)
class KeyPositions:
    """Finds the keys of rows in other files. ``keys`` reads the key columns and no others."""

    keys: RunReader

    @property
    def memory_bytes(self) -> int:
        """The maximum memory of a unit, in bytes."""
        return self.keys.memory_bytes

    def __call__(self, unit: KeySearch) -> Iterator[pa.RecordBatch]:
        """Look up the keys of one file; yield their row indexes in the targets as the positions of a message."""
        replaced = ReplacedRows(self.keys, unit.targets)
        row_indexes = np.frombuffer(unit.rows.to_array(), np.uint32).astype(np.int64)
        allowance = self.keys.memory_bytes // _BATCHES
        for start, rows in self.keys.open_file(unit.source, system=False).batches(lambda: allowance):
            first, stop = np.searchsorted(row_indexes, [start, start + len(rows)])
            replaced.add_keys(rows.take(pa.array(row_indexes[first:stop] - start)))
        positions = replaced.positions()
        yield TaskMessages(positions={unit.bucket: positions} if positions else {}).to_batch()
