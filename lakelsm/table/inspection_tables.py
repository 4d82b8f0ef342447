"""Tables of `Table.inspect` besides the system tables: totals of buckets and partitions, and the history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lakelsm.engine import Engine
from lakelsm.maintain.history import maintenance_runs
from lakelsm.plan.partition_files import chosen_partitions
from lakelsm.snapshots.table_store import TableStore
from lakelsm.system_tables.file_tables import LAYOUT
from lakelsm.system_tables.system_table import SystemTable, TableState, columns_of


def _bucket_totals(state: TableState) -> Sequence[pa.ChunkedArray]:
    keys = ["partition", "bucket", "level"]
    totals = [("file_path", "count"), ("record_count", "sum"), ("file_size_in_bytes", "sum")]
    found = LAYOUT.rows(state).group_by(keys).aggregate(totals).sort_by([(key, "ascending") for key in keys])
    columns: list[pa.ChunkedArray] = found.select([*keys, *(f"{column}_{what}" for column, what in totals)]).columns
    return columns


#: The table of `Inspection.buckets`.
BUCKET_TOTALS = SystemTable(
    "buckets",
    "partition STRING, bucket INT, level INT, files BIGINT, records BIGINT, bytes BIGINT",
    _bucket_totals,
    can_time_travel=True,
)


def partition_totals(engine: Engine, where: str | None) -> SystemTable:
    """Return the table of `Inspection.partitions`: the partitions that match a condition, by name."""

    def rows(state: TableState) -> Sequence[Sequence[Any]]:
        predicate = None if where is None else engine.predicate(state.store, where)
        found = chosen_partitions(state.store, state.snapshot, predicate)
        return columns_of(((it.label, it.rows, it.files, it.bytes, it.updated) for it in found), 5)

    ddl = "partition STRING, rows BIGINT, files BIGINT, bytes BIGINT, updated_at TIMESTAMP(3)"
    return SystemTable("partitions", ddl, rows, can_time_travel=True)


def history_table(limit: int) -> SystemTable:
    """Return the table of `TableInspection.history`: the newest commits and maintenance runs, newest first."""
    ddl = (
        "started TIMESTAMP_LTZ(3), operation STRING, `user` STRING, host STRING, snapshot_ids ARRAY<BIGINT>, "
        "rows BIGINT, files BIGINT, bytes BIGINT, seconds DOUBLE, outcome STRING"
    )
    return SystemTable("history", ddl, lambda state: columns_of(_history(state.store, limit), 10))


def _history(store: TableStore, limit: int) -> list[tuple[Any, ...]]:
    runs = maintenance_runs(store, limit)
    run_snapshots = {each for run in runs for each in run.snapshot_ids}
    found: list[tuple[Any, ...]] = [
        (
            run.started,
            run.operation,
            run.user,
            run.host,
            list(run.snapshot_ids),
            None,
            run.files,
            run.bytes,
            run.seconds,
            run.outcome,
        )
        for run in runs
    ]
    for snapshot in map(store.snapshots.try_get, store.snapshots.ids()[-limit:]):
        if snapshot is not None and snapshot.id not in run_snapshots:
            operation = snapshot.operation or snapshot.commit_kind.value
            ids, rows, user = [snapshot.id], snapshot.delta_record_count, snapshot.commit_user
            found.append((snapshot.time_millis, operation, user, None, ids, rows, None, None, None, "done"))
    return sorted(found, key=lambda row: row[0], reverse=True)[:limit]
