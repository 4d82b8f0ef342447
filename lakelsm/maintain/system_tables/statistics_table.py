"""The system table of what an analysis found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakelsm.errors import CorruptTableError
from lakelsm.format.snapshot import Snapshot
from lakelsm.format.statistics import TableStatistics
from lakelsm.maintain.system_tables.system_table import SystemTable, TableState, columns_of
from lakelsm.snapshots.table_store import TableStore

#: A size that no statistics file has.
_MAX_BYTES = 64 << 20


def statistics_of(store: TableStore, snapshot: Snapshot | None) -> TableStatistics | None:
    """The statistics that a snapshot names, if any. Raises CorruptTableError where their file is missing or damaged."""
    if snapshot is None or snapshot.statistics is None:
        return None
    path = store.paths.statistics(snapshot.statistics)
    try:
        return TableStatistics.from_json(store.file_io.read(path, _MAX_BYTES), path)
    except FileNotFoundError as error:
        raise CorruptTableError(
            f"{path} does not exist, but snapshot {snapshot.id} names it: restore it, or analyze the table anew."
        ) from error


def _statistics(state: TableState) -> Sequence[Sequence[Any]]:
    found = statistics_of(state.store, state.snapshot)
    if found is None:
        return columns_of([], 5)
    counts = found.merged_record_count, found.merged_record_size
    return columns_of([(found.snapshot_id, found.schema_id, *counts, found.columns_json())], 5)


STATISTICS = SystemTable(
    "statistics",
    "snapshot_id BIGINT NOT NULL, schema_id BIGINT NOT NULL, mergedRecordCount BIGINT, mergedRecordSize BIGINT, "
    "colstat STRING",
    _statistics,
    travels=True,
)
