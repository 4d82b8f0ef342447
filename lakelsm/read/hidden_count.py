"""Counts the rows of a read as the rows of its files less the hidden ones.

This works if each row of a read is a row of a file (`deduplicate`, `first-row`): the answer is the number of rows of
the files, less those that vectors mask and merges hide. Only files that overlap others are opened, and only their
columns that decide are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.merge.merge_unit import MergeUnit
from lakelsm.plan.count_plan import prunes_exactly
from lakelsm.plan.merge_units import pack_for_tasks
from lakelsm.plan.read_plan import ReadPlan
from lakelsm.predicate.predicate import Predicate
from lakelsm.read.hidden_row_task import HiddenRowTask
from lakelsm.results import CountResult
from lakelsm.runner.runner import Runner
from lakelsm.snapshots.table_store import TableStore

#: Schema of the batches that the tasks yield: one row each.
HIDDEN_COUNT_SCHEMA = pa.schema([pa.field("hidden", pa.int64())])


@dataclass(frozen=True)
class HiddenCount:
    """The task that counts the rows that the merges of some units hide."""

    task: HiddenRowTask

    @property
    def memory_bytes(self) -> int:
        """The maximum memory of a unit, in bytes."""
        return self.task.reader.memory_bytes

    def __call__(self, units: Sequence[MergeUnit]) -> Iterator[pa.RecordBatch]:
        """Yield the number of hidden rows, in `HIDDEN_COUNT_SCHEMA`."""
        parts = (self.task.hidden(unit, positions=False) for unit in units)
        hidden = sum(int(np.count_nonzero(mask)) for part in parts for _, mask in part)
        yield pa.record_batch([pa.array([hidden], pa.int64())], schema=HIDDEN_COUNT_SCHEMA)


def count_rows(
    runner: Runner, store: TableStore, plan: ReadPlan, predicate: Predicate | None, read: Callable[[], int]
) -> CountResult:
    """Count the rows of a plan: those of its files less the hidden ones if possible, else those that ``read`` counts."""
    exact = prunes_exactly(store, predicate)
    rows, files = visible_row_count(runner, store, plan) if exact else None, len(plan.merged_files)
    if rows is None:
        rows, files = read(), plan.files_scanned
    method = "files" if files else "metadata"
    return CountResult(snapshot_id=plan.snapshot_id, rows=rows, how=method, files_opened=files)


def visible_row_count(runner: Runner, store: TableStore, plan: ReadPlan) -> int | None:
    """Return the rows of a plan's files less those that vectors mask and merges hide; None if this is not the answer.

    Raises the errors of a read of the files that overlap others.
    """
    files = [*plan.raw_files, *plan.merged_files]
    masked = [0 if file.vector is None else file.vector.recorded_cardinality(file.row_count) for file in files]
    if None in masked or not MergeSpec.of(store.schema, store.options).keeps_rows:
        return None
    rows = sum(file.row_count for file in files) - sum(filter(None, masked))
    if not plan.units:
        return rows
    schemas = store.schemas_of((file.schema_id for file in plan.merged_files), plan.snapshot)
    task = HiddenCount(HiddenRowTask.of(store, schemas))
    units = pack_for_tasks(store.options, plan.units, lambda unit: unit.files)
    batches = runner.batches(units, task, HIDDEN_COUNT_SCHEMA, store.paths)
    hidden: list[int] = [number for batch in batches for number in batch.column(0).to_pylist()]
    return rows - sum(hidden)
