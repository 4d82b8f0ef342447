"""TableView: a read-only table at one snapshot."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from lakelsm.moment import Moment
from lakelsm.plan.fallback_branch import ReadState
from lakelsm.plan.time_travel import Point, state_at
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.table_store import TableStore
from lakelsm.table.opened_table import Result
from lakelsm.table.readable_table import ReadableTable
from lakelsm.table.table_changes import ChangesReader, ChangesRequest
from lakelsm.table.table_inspection import SnapshotInspection

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class TableView(ReadableTable, ChangesReader):
    """A read-only table at one snapshot, which `Table.at` opens. ``inspect`` shows the metadata of the snapshot."""

    def __init__(
        self, store: TableStore, spark: SparkSession | None, point: Point, *, newest_schema: bool = False
    ) -> None:
        """``newest_schema``: columns are those of the table now, instead of those at the snapshot."""
        super().__init__(store, spark)
        self._at, self._snapshot = state_at(store, point)
        if newest_schema:
            self._at = store.refreshed()
        self._until = store.millis_of(point) if isinstance(point, Moment) else self._snapshot.time_millis
        self._end = point if isinstance(point, str) else self._snapshot.id
        self.inspect = SnapshotInspection(self._at, spark, self._snapshot)

    @property
    def snapshot_id(self) -> int:
        """The id of the snapshot."""
        return self._snapshot.id

    @property
    def schema(self) -> TableSchema:
        """The schema of the rows: the one that the snapshot was written with."""
        return self._at.schema

    def changelog(
        self,
        start: int | str | datetime | None = None,
        where: str | None = None,
        *,
        mode: str = "auto",
        kind_column: str = "rowkind",
        positions: bool = False,
    ) -> DataFrame:
        """Return the changes after ``start`` up to the snapshot of the view; arguments are those of `Table.changelog`."""
        return self._change_frame(ChangesRequest(start, self._end, where, mode, kind_column, positions))

    def changelog_reader(
        self,
        start: int | str | datetime | None = None,
        where: str | None = None,
        *,
        mode: str = "auto",
        kind_column: str = "rowkind",
        positions: bool = False,
        timestamps: str = "ns",
    ) -> pa.RecordBatchReader:
        """Return the changes of `changelog` as a stream of Arrow record batches, like `Table.changelog_reader`."""
        request = ChangesRequest(start, self._end, where, mode, kind_column, positions)
        return self._change_reader(request, timestamps)

    def __repr__(self) -> str:
        return f"TableView({self.name!r} at snapshot {self.snapshot_id})"

    def _store(self) -> TableStore:
        return self._at

    def _read_state(self) -> tuple[TableStore, ReadState, int | None]:
        return self._opened.refreshed(), ReadState(self._at, self._snapshot), self._until

    def _on_newest(self, work: Callable[[], Result]) -> Result:
        return work()  # No newer snapshot replaces that of the view.


def newest_view(table: ReadableTable) -> ReadableTable:
    """Return a view of the newest snapshot with the newest schema; the table itself if it has no snapshot."""
    store = table._store()
    newest = store.snapshots.latest()
    return table if newest is None else TableView(store, table._spark, newest.id, newest_schema=True)


def is_same_table(one: ReadableTable, other: ReadableTable) -> bool:
    """Return whether two tables are the same branch of one table."""
    first, second = one._store().paths, other._store().paths
    return (first.root, first.branch) == (second.root, second.branch)
