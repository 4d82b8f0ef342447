"""The system tables that show rows: `audit_log`, `binlog` and `ro`."""

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
    """The merged rows of a snapshot with their row kinds, and the retractions that no compaction has dropped yet.

    With 'table-read.sequence-number.enabled' the sequence number follows the kind. ``as_lists``: each value is a list of
    one value, as in Paimon's binlog.
    """

    name: str
    as_lists: bool
    can_time_travel: bool = True

    def frame(self, spark: SparkSession, state: TableState) -> DataFrame:
        """Return the rows as a DataFrame."""
        from lakelsm.frames.system_frames import state_frame

        store, plan = state.store, plan_state(state.store, state.snapshot)
        return state_frame(spark, store, plan, _leading_columns(store), self.as_lists)

    def rows(self, state: TableState) -> pa.Table:
        """Read the rows in this process."""
        from lakelsm.local.arrow_changes import changes_reader

        store, plan = state.store, plan_state(state.store, state.snapshot)
        leading = _leading_columns(store)
        reader = changes_reader(
            local_engine().runner,
            store,
            plan,
            kind_column=ROW_KIND,
            positions=len(leading) > 1,
            timestamps=state.timestamps,
        )
        rows = reader.read_all().select([*leading, *store.schema.field_names])
        return _with_lists(rows, len(leading)) if self.as_lists else rows


@dataclass(frozen=True)
class ReadOptimized:
    """The rows of the highest level, which need no merge: the state after the last full compaction."""

    name: str
    can_time_travel: bool = True

    def frame(self, spark: SparkSession, state: TableState) -> DataFrame:
        """Return the rows as a DataFrame."""
        from lakelsm.frames.scan_frame import read_frame

        return read_frame(spark, state.store, self._plan(state), None, None)

    def rows(self, state: TableState) -> pa.Table:
        """Read the rows in this process."""
        from lakelsm.local.arrow_scan import ArrowScan

        names = state.store.schema.field_names
        scan = ArrowScan(state.store, self._plan(state), names, timestamps=state.timestamps)
        return scan.reader(local_engine().runner).read_all()

    def _plan(self, state: TableState) -> ReadPlan:
        return plan_read(state.store, state.snapshot, None, level=state.store.options.num_levels - 1)


AUDIT_LOG = AuditLog("audit_log", as_lists=False)
BINLOG = AuditLog("binlog", as_lists=True)
READ_OPTIMIZED = ReadOptimized("ro")


def _leading_columns(store: TableStore) -> tuple[str, ...]:
    """Return the columns before the table's own. Raises InvalidInputError if the table has a column of the same name."""
    if not store.options.table_read_sequence_number_enabled:
        return (ROW_KIND,)
    check_added_columns(store.schema, ROW_KIND, positions=True)
    return ROW_KIND, SEQUENCE_NUMBER


def _with_lists(rows: pa.Table, leading: int) -> pa.Table:
    """Return the rows with each value as a list of one value, except in the ``leading`` columns."""
    for index, (field, column) in enumerate(zip(rows.schema, rows.columns)):
        if index >= leading:
            kind = pa.list_(field.type)
            lists = pa.chunked_array(map(_list_of_each, column.chunks), kind)
            rows = rows.set_column(index, pa.field(field.name, kind, field.nullable), lists)
    return rows


def _list_of_each(values: pa.Array) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(np.arange(len(values) + 1, dtype=np.int32)), values)
