"""`Table.inspect`: the contents of a table, from its metadata and without a Spark session."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from lakelsm.arguments import checked_condition, checked_number
from lakelsm.environment import SYSTEM
from lakelsm.format.snapshot import Snapshot
from lakelsm.maintain.upkeep_status import upkeep_status
from lakelsm.plan.table_status import table_status
from lakelsm.results import TableStatus
from lakelsm.snapshots.table_store import TableStore
from lakelsm.system_tables.file_tables import LAYOUT
from lakelsm.system_tables.metadata_tables import COMMITS, OPTIONS, SCHEMAS
from lakelsm.system_tables.named_tables import AnySystemTable, check_time_travel, checked_system_table
from lakelsm.system_tables.system_table import SystemTable, TableState
from lakelsm.table.inspection_tables import BUCKET_TOTALS, history_table, partition_totals
from lakelsm.table.opened_table import OpenedTable, Result
from lakelsm.table.result_table import ResultTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Inspection(OpenedTable):
    """The metadata of one snapshot. Each method returns a `ResultTable`."""

    def files(self) -> ResultTable:
        """Return the live data files. ``partition`` is like 'dt=2025-12-31/hh=12'."""
        return self._shown(LAYOUT)

    def buckets(self) -> ResultTable:
        """Return the number of files, rows and bytes by partition, bucket and level."""
        return self._shown(BUCKET_TOTALS)

    def partitions(self, where: str | None = None) -> ResultTable:
        """Return the partitions that have files, by name, with the totals of their files.

        ``where`` is a condition on partition columns. A table without partitions is one partition with the name ''.
        ``updated_at`` is the wall clock of the writer of the newest file.
        """
        checked_condition(where)
        return self._shown(partition_totals(self._engine(None), where))

    def system(self, name: str) -> ResultTable:
        """Return one of Paimon's system tables of this branch, with Paimon's columns: 'files' is ``t$files``.

        Times without a zone are local times of this machine. audit_log, binlog and ro have the rows of the table, which
        are read when the result is converted. Raises InvalidInputError, with the existing names, for an unknown name,
        and in a `TableView` for a system table that does not belong to one snapshot.
        """
        table = checked_system_table(name)
        self._check_system_table(table)
        return self._shown(table)

    def _check_system_table(self, table: AnySystemTable) -> None:
        """Raise InvalidInputError if a system table cannot be shown."""

    def _shown(self, table: AnySystemTable) -> ResultTable:
        if not isinstance(table, SystemTable):
            return ResultTable(
                table.name,
                lambda timestamps: self._of_state(lambda state: table.rows(replace(state, timestamps=timestamps))),
                lambda spark: self._of_state(lambda state: table.frame(spark, state)),
                self._spark,
            )
        rows = self._of_state(table.rows)
        return ResultTable(table.name, rows, lambda spark: table.frame(spark, rows), self._spark)

    def _of_state(self, read: Callable[[TableState], Result]) -> Result:
        """Return the result of ``read`` for the shown snapshot; retry if it was the newest and was removed."""

        def work() -> Result:
            state = self._state()
            with state.store.while_read(state.snapshot):
                return read(state)

        return self._on_newest(work)

    @abstractmethod
    def _state(self) -> TableState:
        """Return the table and the shown snapshot."""


class SnapshotInspection(Inspection):
    """The metadata of one snapshot: `TableView.inspect`."""

    def __init__(self, store: TableStore, spark: SparkSession | None, snapshot: Snapshot) -> None:
        super().__init__(store, spark)
        self._snapshot = snapshot

    def _check_system_table(self, table: AnySystemTable) -> None:
        check_time_travel(table)

    def _state(self) -> TableState:
        return TableState(self._opened, self._snapshot)

    def _on_newest(self, work: Callable[[], Result]) -> Result:
        return work()  # No newer snapshot replaces that of the view.


class TableInspection(Inspection):
    """The metadata of a table and its newest snapshot: `Table.inspect`."""

    def status(self, *, max_buckets: int = 10) -> TableStatus:
        """Return the state of the table: files on level 0, sorted runs, the next compaction and expiry, consumers.

        From metadata only, without a session. ``max_buckets`` is the maximum number of listed buckets, those that most
        need a compaction first. No directory is listed: the number of orphan files is that of the last removal.
        """
        limit = checked_number("max_buckets", max_buckets, min_value=0)

        def status(state: TableState) -> TableStatus:
            store, now = state.store.for_changes(), SYSTEM.clock()
            wall = SYSTEM.local_wall_clock(now)
            files = table_status(store, state.snapshot, wall, now, max_buckets=limit)
            return replace(files, upkeep=upkeep_status(store))

        return self._of_state(status)

    def snapshots(self) -> ResultTable:
        """Return the retained snapshots, oldest first.

        ``operation`` is WRITE, DELETE, UPDATE, OVERWRITE, COMPACT, or the text of another engine (NULL: none).
        ``delta_record_count`` is the number of rows of added files less those of deleted files,
        ``changelog_record_count`` the number of recorded changes. A file that moves to another level is deleted and
        added.
        """
        return self._shown(COMMITS)

    def history(self, limit: int = 50) -> ResultTable:
        """Return the newest commits and maintenance runs of this branch, newest first: user, operation, time and outcome.

        Commits are listed while their snapshots are retained. About the newest hundred maintenance runs that published
        snapshots are kept, and a hundred of those that published none.
        """
        return self._shown(history_table(checked_number("limit", limit, min_value=1)))

    def schemas(self) -> ResultTable:
        """Return the schemas of the table, as Paimon's ``t$schemas``."""
        return self._shown(SCHEMAS)

    def options(self) -> ResultTable:
        """Return the options that the table sets, as Paimon's ``t$options``."""
        return self._shown(OPTIONS)

    def _state(self) -> TableState:
        store = self._store()
        return TableState(store, store.snapshots.latest())
