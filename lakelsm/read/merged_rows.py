"""Rows of a read that tasks hand to Spark, for engines that combine rows (`partial-update`, `aggregation`).

The merged rows of contested keys are what no scan can show, because no file has them. To merge them, all columns of all
files of a section are decoded: every page holds a contested row. So the other rows come from the tasks too, unless few
columns are read: then scans of the larger files show them (see hidden_row_task for what these leave out).
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

#: A size that makes every file a small one.
EVERY_FILE = 1 << 62

#: Rows of a batch: the consumer holds whole batches.
_HANDED_ROWS = 1 << 16


def is_read_by_task(file: RunFile, small_file: int) -> bool:
    """Whether the rows of a file of a merged section come from the tasks alone; ``small_file`` is bytes."""
    return file.file_size < small_file


@dataclass(frozen=True)
class MergedRows:
    """The task that merges the contested keys of some units; ``schema`` is that of the rows that it yields.

    Files of less than ``small_file`` bytes are handed over whole. ``retractions``: these stay, as changes have them.
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
        """The rows of one key range that are handed over; None for none."""
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
