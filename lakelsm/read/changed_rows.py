"""The changes of planned units, merged or compared in tasks: table columns with the system columns of key-value rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakelsm.format.data_file.key_value_file import conform
from lakelsm.merge.changelog import merge_difference
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.merge.merge_unit import MergeUnit
from lakelsm.merge.run_reader import RunReader
from lakelsm.merge.streaming import key_ranges, merge_runs
from lakelsm.plan.changelog_plan import DifferenceUnit
from lakelsm.schema.system_columns import FILE_NUMBER


@dataclass(frozen=True)
class MergedChanges:
    """The task that merges new data files and keeps retractions; ``schema`` is that of the rows that it yields."""

    reader: RunReader
    spec: MergeSpec
    schema: pa.Schema

    def __call__(self, units: Sequence[MergeUnit]) -> Iterator[pa.RecordBatch]:
        """Yield one row a key."""
        for unit in units:
            for rows in merge_runs(self.reader.open_runs(unit), self.spec, drop_deletes=False):
                yield from conform(rows, self.schema).combine_chunks().to_batches()


@dataclass(frozen=True)
class Differences:
    """The task that compares two states; ``schema`` is that of the rows that it yields."""

    reader: RunReader
    spec: MergeSpec
    schema: pa.Schema

    def __call__(self, units: Sequence[DifferenceUnit]) -> Iterator[pa.RecordBatch]:
        """Yield -D, -U, +U and +I rows of the keys whose rows differ."""
        for compared in units:
            before, after = np.array(compared.before), np.array(compared.after)
            unit, columns = compared.unit, self.reader.columns
            for rows, keys in key_ranges(self.reader.open_runs(unit, positions=True), self.spec.key_columns):
                files = rows.column(FILE_NUMBER).to_numpy()
                sides = before[files], after[files]
                changes = merge_difference(rows, keys, unit.levels[files], sides, self.spec, columns)
                yield from conform(changes, self.schema).combine_chunks().to_batches()
