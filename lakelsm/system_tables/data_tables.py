"""The system tables of rows: those that a snapshot has as changes, and those that need no merge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from lakelsm.engine import local_engine
from lakelsm.plan.changelog_plan import plan_state
from lakelsm.plan.read_plan import ReadPlan, plan_read
from lakelsm.read.changelog_tasks import check_added_columns
from lakelsm.schema.system_columns import ROW_KIND, SEQUENCE_NUMBER
from lakelsm.snapshots.table_store import TableStore
from lakelsm.system_tables.system_table import TableState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class AuditLog:
    """The merged rows of a snapshot behind their row kinds, with the retractions that no compaction has dropped yet.

    With 'table-read.sequence-number.enabled' the sequence number follows the kind. ``lists``: each value is a list of
    one, as in Paimon's binlog.
    """

    name: str
    lists: bool
    can_time_travel: bool = True

    def frame(self, spark: SparkSession, state: TableState) -> DataFrame:
        """The rows on Spark."""
        from lakelsm.frames.system_frames import state_frame

        store, plan = state.store, plan_state(state.store, state.snapshot)
        return state_frame(spark, store, plan, _heads(store), self.lists)

    def rows(self, state: TableState) -> pa.Table:
        """The rows, read in this process."""
        from lakelsm.local.arrow_changes import changes_reader

        store, plan = state.store, plan_state(state.store, state.snapshot)
        heads = _heads(store)
        reader = changes_reader(
            local_engine().runner,
            store,
            plan,
            kind_column=ROW_KIND,
            positions=len(heads) > 1,
            timestamps=state.timestamps,
        )
        rows = reader.read_all().select([*heads, *store.schema.field_names])
        return _listed(rows, len(heads)) if self.lists else rows


@dataclass(frozen=True)
class ReadOptimized:
    """The rows of the top level, which are merged and need no merge: what the last full compaction left."""

    name: str
    can_time_travel: bool = True

    def frame(self, spark: SparkSession, state: TableState) -> DataFrame:
        """The rows on Spark."""
        from lakelsm.frames.scan_frame import read_frame

        return read_frame(spark, state.store, self._plan(state), None, None)

    def rows(self, state: TableState) -> pa.Table:
        """The rows, read in this process."""
        from lakelsm.local.arrow_scan import ArrowScan

        names = state.store.schema.field_names
        scan = ArrowScan(state.store, self._plan(state), names, timestamps=state.timestamps)
        return scan.reader(local_engine().runner).read_all()

    def _plan(self, state: TableState) -> ReadPlan:
        return plan_read(state.store, state.snapshot, None, level=state.store.options.num_levels - 1)


AUDIT_LOG = AuditLog("audit_log", lists=False)
BINLOG = AuditLog("binlog", lists=True)
READ_OPTIMIZED = ReadOptimized("ro")


def _heads(store: TableStore) -> tuple[str, ...]:
    """The columns before those of the table. Raises InvalidInputError where it has one that is read beside these."""
    if not store.options.table_read_sequence_number_enabled:
        return (ROW_KIND,)
    check_added_columns(store.schema, ROW_KIND, positions=True)
    return ROW_KIND, SEQUENCE_NUMBER


def _listed(rows: pa.Table, heads: int) -> pa.Table:
    """The rows with each value but for those of the first columns as a list of one."""
    for place, (field, column) in enumerate(zip(rows.schema, rows.columns)):
        if place >= heads:
            kind = pa.list_(field.type)
            lists = pa.chunked_array(map(_list_of_each, column.chunks), kind)
            rows = rows.set_column(place, pa.field(field.name, kind, field.nullable), lists)
    return rows


def _list_of_each(values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(np.arange(len(values) + 1, dtype=np.int32)), values)
