"""Rows of a read that tasks return to Spark, for engines that combine rows (`partial-update`, `aggregation`).

No scan can return the merged rows of contested keys, because no file contains them. To merge them, all columns of all
files of a section are decoded, since every page has a contested row. Tasks therefore return the other rows too, unless
few columns are read: then scans return those of the larger files (hidden_row_task lists the rows that these leave out).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

import numpy as np
import pyarrow as pa

from lakelsm.format.data_file.key_value_file import conform
from lakelsm.merge.grouped_rows import Mask
from lakelsm.merge.kernel import contested, merge_rows
from lakelsm.merge.key_levels import merge_candidates
from lakelsm.merge.key_order import OrderKeys
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.merge.merge_unit import MergeUnit, RunFile
from lakelsm.merge.run_reader import RunReader
from lakelsm.merge.streaming import key_ranges, without_retractions
from lakelsm.schema.system_columns import FILE_NUMBER

#: A file size that makes every file a small one.
EVERY_FILE = 1 << 62

#: Rows of a batch. The consumer keeps whole batches in memory.
_HANDED_ROWS = 1 << 16


def is_read_by_task(file: RunFile, small_file: int) -> bool:
    """Return whether only tasks return the rows of a file of a merged section; ``small_file`` is in bytes."""
    return file.file_size < small_file


@dataclass(frozen=True)
class MergedRows:
    """The task that merges the contested keys of some units; ``schema`` is the schema of the rows that it yields.

    It also yields all rows of files of less than ``small_file`` bytes. ``retractions``: keep retractions, for changes.
    Columns in ``sources`` have the values of the column named there.
    """

    reader: RunReader
    spec: MergeSpec
    schema: pa.Schema
    small_file: int = 0
    _: KW_ONLY
    retractions: bool = False
    sources: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, units: Sequence[MergeUnit]) -> Iterator[pa.RecordBatch]:
        """Yield the merged rows and those of the small files."""
        for unit in units:
            small = np.array([is_read_by_task(file, self.small_file) for file in unit.files])
            runs = self.reader.open_runs(unit, positions=True)
            for rows, keys in key_ranges(runs, self.spec.key_columns):
                merged = self._merged(unit, rows, keys, small)
                if merged is not None:
                    yield from conform(merged, self.schema, self.sources).combine_chunks().to_batches(_HANDED_ROWS)

    def _merged(self, unit: MergeUnit, rows: pa.Table, keys: OrderKeys | None, small: Mask) -> pa.Table | None:
        """Return the rows of one key range that the task yields; None if there are none."""
        wanted = small[rows.column(FILE_NUMBER).to_numpy()]
        if keys is not None and not wanted.all():
            wanted |= contested(keys)
        if not wanted.any():
            return None
        if not wanted.all():
            rows = rows.filter(pa.array(wanted))
        if keys is not None:
            keys = keys[wanted]
            if self.spec.lookup:
                rows, keys = merge_candidates(rows, keys, unit.levels[rows.column(FILE_NUMBER).to_numpy()])
            rows = merge_rows(rows.combine_chunks(), keys, self.spec)
        return rows if self.retractions else without_retractions(rows)
