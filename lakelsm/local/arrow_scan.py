"""A planned read as record batches, in this process: the merged rows that match."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import pyarrow as pa

from lakelsm.format.snapshot import Snapshot
from lakelsm.local.key_chains import in_key_order, key_chains
from lakelsm.local.output_rows import output_rows, output_schema
from lakelsm.local.scan_task import ScanTask
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.merge.merge_unit import MergeUnit, RunFile
from lakelsm.merge.run_reader import RunReader
from lakelsm.plan.read_plan import ReadPlan, plan_read
from lakelsm.predicate.predicate import Constant, Predicate, columns
from lakelsm.read.hidden_row_task import HiddenRowTask
from lakelsm.read.stored_rows import TASK_MEMORY
from lakelsm.runner.runner import Runner
from lakelsm.runner.task_failures import known_failure
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import arrow_field

#: Minimum bytes for each of the streams that are merged in key order.
_MIN_MEMORY = 2 << 20


def stored_schema(store: TableStore, names: Iterable[str]) -> pa.Schema:
    """Return the Arrow schema of columns of a table in stored form."""
    return pa.schema([arrow_field(store.schema.field(name)) for name in names])


@dataclass(frozen=True)
class ArrowScan:
    """The rows of a plan with the columns ``names``, restricted to those for which the ``predicate`` is TRUE.

    ``ordered``: in the order of the primary key. ``timestamps``: the form of TIMESTAMP(7..9) (`TIMESTAMP_FORMS`).
    """

    store: TableStore
    plan: ReadPlan
    names: tuple[str, ...]
    _: KW_ONLY
    predicate: Predicate | None = None
    ordered: bool = False
    timestamps: str = "ns"

    @staticmethod
    def of(
        store: TableStore,
        snapshot: Snapshot | None,
        names: Sequence[str] | None,
        predicate: Predicate | None,
        *,
        ordered: bool = False,
        fresh: bool = False,
        timestamps: str = "ns",
    ) -> ArrowScan:
        """Plan the read of a snapshot (None: an empty table); ``names`` in any case (None: all columns)."""
        found = [store.schema.column_name(name) for name in names or store.schema.field_names]
        with store.while_read(snapshot):
            plan = plan_read(store, snapshot, predicate, fresh)
        return ArrowScan(store, plan, tuple(found), predicate=predicate, ordered=ordered, timestamps=timestamps)

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of the rows for users."""
        return output_schema([self.store.schema.field(name) for name in self.names], timestamps=self.timestamps)

    def batches(self, runner: Runner) -> Iterator[pa.RecordBatch]:
        """Yield the rows in the form for users."""
        with self.store.while_read(self.plan.snapshot):
            yield from self._batches(runner)

    def _batches(self, runner: Runner) -> Iterator[pa.RecordBatch]:
        if not self.ordered:
            yield from self._run(runner, self.schema)
            return
        try:
            yield from self._in_key_order()
        except (OSError, MemoryError, pa.ArrowException) as error:
            raise known_failure(error, self.store.name) from error

    def _in_key_order(self) -> Iterator[pa.RecordBatch]:
        keys = self.store.schema.primary_keys
        stored = stored_schema(self.store, dict.fromkeys((*keys, *self.names)))
        chains = key_chains(self.store, self.units)
        task = self._task(stored, max(TASK_MEMORY // max(len(chains), 1), _MIN_MEMORY))
        for rows in in_key_order([self._tables(task, chain) for chain in chains], keys):
            yield from output_rows(rows, self.schema).to_batches()

    def stored_batches(self, runner: Runner) -> Iterator[pa.RecordBatch]:
        """Yield the rows in stored form (`stored_schema`), to be written again."""
        yield from self._run(runner, stored_schema(self.store, self.names))

    def stored_task(self) -> ScanTask:
        """Return the task that yields the rows of one of the `units` in stored form."""
        return self._task(stored_schema(self.store, self.names))

    def task(self, schema: pa.Schema) -> ScanTask:
        """Return the task that yields the rows of one of the `units` in the types of ``schema``, by column name."""
        return self._task(schema)

    def reader(
        self, runner: Runner, limit: int | None = None, names: Sequence[str] | None = None
    ) -> pa.RecordBatchReader:
        """Return at most ``limit`` rows, with the columns renamed to ``names`` (None: not renamed)."""
        return chained_reader([self], runner, limit, names)

    @property
    def units(self) -> list[RunFile | MergeUnit]:
        """The units of the scan's task: each file or merge unit is independent."""
        return [*self.plan.raw_files, *self.plan.units]

    def _run(self, runner: Runner, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        if self.units:
            yield from runner.batches(self.units, self._task(schema), schema, self.store.paths)

    def _task(self, schema: pa.Schema, memory: int = TASK_MEMORY) -> ScanTask:
        store, wanted = self.store, dict.fromkeys((*schema.names, *sorted(columns(self.predicate or Constant(True)))))
        spec = MergeSpec.of(store.schema, store.options).of_columns(wanted)
        needed = () if spec.keeps_rows and not self.ordered else spec.read_columns
        files = [*self.plan.raw_files, *self.plan.merged_files]
        schemas = store.schemas_of((file.schema_id for file in files), self.plan.snapshot)
        reader = RunReader(
            store.file_io,
            store.schema,
            schemas=schemas,
            columns=tuple(dict.fromkeys((*wanted, *needed))),
            memory_bytes=memory,
        )
        hidden = HiddenRowTask.of(store, schemas)
        return ScanTask(
            reader, hidden_rows=hidden, spec=spec, schema=schema, predicate=self.predicate, ordered=self.ordered
        )

    def _tables(self, task: ScanTask, units: Sequence[RunFile | MergeUnit]) -> Iterator[pa.Table]:
        for unit in units:
            for batch in task(unit):
                yield pa.Table.from_batches([batch])


def chained_reader(
    scans: Sequence[ArrowScan], runner: Runner, limit: int | None = None, names: Sequence[str] | None = None
) -> pa.RecordBatchReader:
    """Return the rows of several scans with the same columns, one after the other; see `ArrowScan.reader`."""
    found = scans[0].schema
    schema = found if names is None else pa.schema([f.with_name(name) for f, name in zip(found, names)])
    batches = _limited(itertools.chain.from_iterable(scan.batches(runner) for scan in scans), limit)
    named = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in batches)
    return pa.RecordBatchReader.from_batches(schema, named)


def _limited(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """Yield the first rows of some batches, at most ``limit`` (None: all)."""
    left = limit
    for batch in batches:
        if left is not None:
            if left <= 0:
                return
            batch = batch.slice(0, left)
            left -= len(batch)
        yield batch


def matching_rows(
    runner: Runner, store: TableStore, snapshot: Snapshot | None, predicate: Predicate | None, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Return the rows of a snapshot that match, for deletes and updates: the merged rows of all levels.

    They have the columns ``names`` in stored form (`stored_schema`).
    """
    plan = plan_read(store, snapshot, predicate, fresh=True)
    return ArrowScan(store, plan, tuple(names), predicate=predicate).stored_batches(runner)
