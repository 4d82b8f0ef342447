"""The merged rows of contested keys, for engines that combine rows (`partial-update`, `aggregation`).

They are what the scans of a read leave out (see stale_rows) and cannot show, because no file has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakelsm.format.key_value_file import conform
from lakelsm.merge.kernel import VALUE_KIND, MergeSpec, contested, is_retract, merge_rows
from lakelsm.merge.levels import merge_candidates
from lakelsm.merge.run_reader import FILE_COLUMN, MergeUnit, RunReader
from lakelsm.merge.streaming import key_ranges


@dataclass(frozen=True)
class MergedRows:
    """The task that merges the contested keys of some units; ``schema`` is that of the rows that it yields."""

    reader: RunReader
    spec: MergeSpec
    schema: pa.Schema

    def __call__(self, units: Sequence[MergeUnit]) -> Iterator[pa.RecordBatch]:
        """Yield the merged rows, retractions left out."""
        for unit in units:
            runs = self.reader.open_runs(unit, positions=self.spec.lookup)
            for rows, keys in key_ranges(runs, self.spec.key_columns):
                if keys is None:
                    continue
                shared = contested(keys)
                if not shared.any():
                    continue
                rows, keys = rows.filter(pa.array(shared)), keys[shared]
                if self.spec.lookup:
                    rows, keys = merge_candidates(rows, keys, unit.levels[rows.column(FILE_COLUMN).to_numpy()])
                merged = merge_rows(rows, keys, self.spec)
                retract = is_retract(merged.column(VALUE_KIND))
                live = merged.filter(pa.array(~retract)) if retract.any() else merged
                yield from conform(live, self.schema).combine_chunks().to_batches()
