"""The system tables of rows: those that a snapshot has as changes, and those that need no merge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lakelsm.engine import local_engine
from lakelsm.maintain.system_tables.system_table import TableState
from lakelsm.plan.changelog_plan import plan_state
from lakelsm.plan.read_plan import ReadPlan, plan_read
from lakelsm.schema.system_columns import ROW_KIND

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class AuditLog:
    """The merged rows of a snapshot behind their row kinds, with the retractions that no compaction has dropped yet.

    ``lists``: each value is a list of one, as in Paimon's binlog.
    """

    name: str
    lists: bool
    travels: bool = True

    def frame(self, spark: SparkSession, state: TableState) -> DataFrame:
        """The rows on Spark."""
        from lakelsm.frames.system_frames import state_frame

        return state_frame(spark, state.store, plan_state(state.store, state.snapshot), self.lists)

    def rows(self, state: TableState) -> pa.Table:
        """The rows, read in this process."""
        from lakelsm.local.arrow_changes import changes_reader

        plan, runner = plan_state(state.store, state.snapshot), local_engine().runner
        reader = changes_reader(runner, state.store, plan, kind_column=ROW_KIND, positions=False)
        batches = map(_listed, reader) if self.lists else reader
        return pa.Table.from_batches(batches, _lists(reader.schema) if self.lists else reader.schema)


@dataclass(frozen=True)
class ReadOptimized:
    """The rows of the top level, which are merged and need no merge: what the last full compaction left."""

    name: str
    travels: bool = True

    def frame(self, spark: SparkSession, state: TableState) -> DataFrame:
        """The rows on Spark."""
        from lakelsm.frames.scan_frame import read_frame

        return read_frame(spark, state.store, self._plan(state), None, None)

    def rows(self, state: TableState) -> pa.Table:
        """The rows, read in this process."""
        from lakelsm.local.arrow_scan import ArrowScan

        scan = ArrowScan(state.store, self._plan(state), state.store.schema.field_names)
        return scan.reader(local_engine().runner).read_all()

    def _plan(self, state: TableState) -> ReadPlan:
        return plan_read(state.store, state.snapshot, None, level=state.store.options.num_levels - 1)


AUDIT_LOG = AuditLog("audit_log", lists=False)
BINLOG = AuditLog("binlog", lists=True)
READ_OPTIMIZED = ReadOptimized("ro")


def _lists(schema: pa.Schema) -> pa.Schema:
    """The columns of an audit log as those of a binlog."""
    kind, *columns = schema
    return pa.schema([kind, *(pa.field(column.name, pa.list_(column.type), column.nullable) for column in columns)])


def _listed(batch: pa.RecordBatch) -> pa.RecordBatch:
    kind, *columns = batch.columns
    offsets = pa.array(np.arange(len(batch) + 1, dtype=np.int32))
    schema = _lists(batch.schema)
    lists = [pa.ListArray.from_arrays(offsets, each, type=field.type) for each, field in zip(columns, list(schema)[1:])]
    return pa.RecordBatch.from_arrays([kind, *lists], schema=schema)
