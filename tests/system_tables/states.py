"""Tables with metadata only, and the rows of their system tables."""

from __future__ import annotations

from typing import Any

from lakelsm.environment import Environment
from lakelsm.snapshots.table_store import TableStore
from lakelsm.system_tables.system_table import SystemTable, TableState
from tests.commit.commit_table import CommitTable

#: An environment with UTC as local time.
AT_UTC = Environment(local_offset=lambda seconds: 0)


def shown(table: CommitTable, system: SystemTable, snapshot_id: int | None = None) -> list[dict[str, Any]]:
    """Return the rows of a system table of a snapshot."""
    store = TableStore.open(str(table.root))
    snapshot = store.snapshots.latest() if snapshot_id is None else store.snapshots.get(snapshot_id)
    return shown_state(TableState(store, snapshot, AT_UTC), system)


def shown_state(state: TableState, system: SystemTable) -> list[dict[str, Any]]:
    """Return the rows of a system table of a state."""
    rows: list[dict[str, Any]] = system.rows(state).to_pylist()
    return rows
