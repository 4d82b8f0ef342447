"""The face of what is in a table: its state, and the tables that show its metadata."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from lakelsm.arguments import (
    checked_choice,
    checked_condition,
    checked_number,
    checked_seconds,
    checked_snapshot_id,
    checked_tag,
    checked_timestamps,
)
from lakelsm.errors import CorruptTableError
from lakelsm.maintain.check.audit_plan import CheckedData
from lakelsm.maintain.check.table_check import check_table, checked_check_scope
from lakelsm.maintain.opened_table import OpenedTable
from lakelsm.maintain.upkeep_status import upkeep_status
from lakelsm.plan.table_status import table_status
from lakelsm.plan.time_travel import chosen_state
from lakelsm.results import CheckResult, TableStatus
from lakelsm.surroundings import SYSTEM
from lakelsm.system_tables.file_tables import LAYOUT
from lakelsm.system_tables.metadata_tables import HISTORY
from lakelsm.system_tables.named_tables import AnySystemTable, check_travel, checked_system_table
from lakelsm.system_tables.system_table import TableState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class TableInspection(OpenedTable):
    """Status, checks and system tables of a table."""

    def status(self, *, most_buckets: int = 10) -> TableStatus:
        """What waits in level 0, how many sorted runs there are, what a compaction and an expiry would take now.

        Told by metadata alone, without a session; ``most_buckets`` of those that need a compaction most are told of one
        by one. Nothing is looked for by listing data files: of orphans the last removal tells.
        """
        most = checked_number("most_buckets", most_buckets, least=0)
        store, now = self._store().to_change(), SYSTEM.clock()
        wall = SYSTEM.local_wall_clock(now)
        files = table_status(store, store.snapshots.latest(), wall, now, most_buckets=most)
        return replace(files, upkeep=upkeep_status(store))

    def system(self, name: str, *, snapshot_id: int | None = None, tag: str | None = None) -> DataFrame:
        """One of Paimon's system tables of this branch, with Paimon's columns, as a DataFrame: 'files' is ``t$files``.

        ``snapshot_id`` or ``tag`` chooses the snapshot where the table shows one: audit_log, binlog, buckets,
        file_key_ranges, files, manifests, partitions, ro, statistics, table_indexes. Times without a zone are this
        machine's local ones. Raises InvalidInputError for a name that is none, with those that there are.
        """
        table, state = self._system(name, snapshot_id, tag)
        return table.frame(self.spark, state)

    def system_arrow(
        self, name: str, *, snapshot_id: int | None = None, tag: str | None = None, timestamps: str = "ns"
    ) -> pa.Table:
        """The rows of `system` as an Arrow table: no session is needed.

        ``timestamps`` is the type of TIMESTAMP(7..9) in audit_log, binlog and ro, as in `to_reader`.
        """
        form = checked_timestamps("timestamps", timestamps)
        table, state = self._system(name, snapshot_id, tag)
        return table.rows(replace(state, timestamps=form))

    def _system(self, name: str, snapshot_id: int | None, tag: str | None) -> tuple[AnySystemTable, TableState]:
        table = checked_system_table(name)
        snapshot_id, tag = checked_snapshot_id("snapshot_id", snapshot_id), checked_tag("tag", tag)
        check_travel(table, snapshot_id is not None or tag is not None)
        store, snapshot = chosen_state(self._store(), snapshot_id, None, tag)
        return table, TableState(store, snapshot)

    def check(
        self,
        *,
        data: str = "sample",
        where: str | None = None,
        engine: str | None = None,
        deadline: float | str | None = None,
    ) -> CheckResult:
        """Whether the table is sound: every reference resolves, and every rule of the format holds (docs/check.md).

        Reads, and changes nothing; what is wrong is a finding and no error. All that any snapshot, tag, branch or
        long-lived changelog names is looked for; live data files are judged by the newest snapshot, of the partitions
        that ``where`` chooses. Of these ``data`` opens nothing ('none'), the 'footers', all rows of some files too
        ('sample'), or of all ('full'). After ``deadline`` seconds (or '30 min') it ends, and says so. ``engine`` is
        'spark' or 'local', this process; by default Spark where a session is given, active or that of spark-submit.
        """
        opened = CheckedData(checked_choice("data", data, [each.value for each in CheckedData]) or CheckedData.SAMPLE)
        checked_condition(where)
        deadline = checked_seconds("deadline", deadline)
        chosen = self._engine(engine)
        try:
            store = self._store()
        except CorruptTableError:
            store = self._opened  # Of the schema that the table was opened with; the check finds what is wrong.
        store = replace(store, file_io=store.file_io.fresh())
        scope = checked_check_scope(store, opened, None if where is None else chosen.predicate(store, where), deadline)
        return check_table(store, scope, chosen.runner)

    def snapshots(self) -> DataFrame:
        """The retained snapshots, oldest first.

        ``operation`` is what was done: WRITE, DELETE, UPDATE, OVERWRITE, COMPACT, or what another engine says (NULL:
        nothing). ``delta_record_count`` is the rows of the files that it added less those of the files that it deleted,
        ``changelog_record_count`` the changes that it recorded. A file that moved up a level is added and deleted.
        """
        return HISTORY.frame(self.spark, TableState(self._store(), None))

    def files(self, snapshot_id: int | None = None) -> DataFrame:
        """The live data files of a snapshot (the newest by default). ``partition`` is like 'dt=2025-12-31/hh=12'."""
        state = TableState(*self._at(snapshot_id))
        return LAYOUT.frame(self.spark, state)

    def buckets(self, snapshot_id: int | None = None) -> DataFrame:
        """Files, rows and bytes by partition, bucket and level."""
        from lakelsm.frames.system_frames import buckets_frame

        return buckets_frame(self.files(snapshot_id))
