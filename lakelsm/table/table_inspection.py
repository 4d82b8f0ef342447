"""`Table.inspect`: what is in a table, from its metadata alone and without a Spark session."""

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
    """What can be seen of one snapshot. Each method returns a `ResultTable`."""

    def files(self) -> ResultTable:
        """The live data files. ``partition`` is like 'dt=2025-12-31/hh=12'."""
        return self._shown(LAYOUT)

    def buckets(self) -> ResultTable:
        """Files, rows and bytes by partition, bucket and level."""
        return self._shown(BUCKET_TOTALS)

    def partitions(self, where: str | None = None) -> ResultTable:
        """The partitions that have files, by name, with the totals of their files.

        ``where`` is a condition on partition columns. A table without partitions is one partition, named ''.
        ``updated_at`` is the wall clock of the writer of the newest file.
        """
        checked_condition(where)
        return self._shown(partition_totals(self._engine(None), where))

    def system(self, name: str) -> ResultTable:
        """One of Paimon's system tables of this branch, with Paimon's columns: 'files' is ``t$files``.

        Times without a zone are this machine's local ones. audit_log, binlog and ro have the table's rows, which are read
        when the result is converted. Raises InvalidInputError for an unknown name, with the names that exist, and in a
        `TableView` for a table that does not show one snapshot.
        """
        table = checked_system_table(name)
        self._check_system_table(table)
        return self._shown(table)

    def _check_system_table(self, table: AnySystemTable) -> None:
        """Raise InvalidInputError where a system table cannot be shown."""

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
        """What ``read`` makes of the snapshot that is shown; of the new newest one if that one is removed before."""

        def work() -> Result:
            state = self._state()
            with state.store.while_read(state.snapshot):
                return read(state)

        return self._on_newest(work)

    @abstractmethod
    def _state(self) -> TableState:
        """The table and the snapshot that is shown."""


class SnapshotInspection(Inspection):
    """What is in one snapshot of a table: `TableView.inspect`."""

    def __init__(self, store: TableStore, spark: SparkSession | None, snapshot: Snapshot) -> None:
        super().__init__(store, spark)
        self._snapshot = snapshot

    def _check_system_table(self, table: AnySystemTable) -> None:
        check_time_travel(table)

    def _state(self) -> TableState:
        return TableState(self._opened, self._snapshot)

    def _on_newest(self, work: Callable[[], Result]) -> Result:
        return work()  # The snapshot of the view is not replaced by another one.


class TableInspection(Inspection):
    """What is in a table now: `Table.inspect`."""

    def status(self, *, max_buckets: int = 10) -> TableStatus:
        """What waits in level 0, how many sorted runs there are, what a compaction and an expiry would take now.

        From metadata only, without a session. ``max_buckets`` is the number of listed buckets, those that need a
        compaction most first. Data files are not listed: orphan files are those of the last removal.
        """
        most = checked_number("max_buckets", max_buckets, min_value=0)

        def status(state: TableState) -> TableStatus:
            store, now = state.store.for_changes(), SYSTEM.clock()
            wall = SYSTEM.local_wall_clock(now)
            files = table_status(store, state.snapshot, wall, now, max_buckets=most)
            return replace(files, upkeep=upkeep_status(store))

        return self._of_state(status)

    def snapshots(self) -> ResultTable:
        """The retained snapshots, oldest first.

        ``operation`` is the operation: WRITE, DELETE, UPDATE, OVERWRITE, COMPACT, or the text of another engine (NULL:
        none). ``delta_record_count`` is the rows of the files that it added less those of the files that it deleted,
        ``changelog_record_count`` the changes that it recorded. A file that moved up a level is added and deleted.
        """
        return self._shown(COMMITS)

    def history(self, limit: int = 50) -> ResultTable:
        """The newest commits and runs of maintenance of this branch, newest first: user, operation, time and outcome.

        A commit counts here as long as its snapshot is retained. Of the runs of maintenance the newest hundred or so that
        published snapshots are kept, and a hundred of those that published none.
        """
        return self._shown(history_table(checked_number("limit", limit, min_value=1)))

    def schemas(self) -> ResultTable:
        """The schemas of the table, as Paimon's ``t$schemas``."""
        return self._shown(SCHEMAS)

    def options(self) -> ResultTable:
        """The options that the table sets, as Paimon's ``t$options``."""
        return self._shown(OPTIONS)

    def _state(self) -> TableState:
        store = self._store()
        return TableState(store, store.snapshots.latest())
