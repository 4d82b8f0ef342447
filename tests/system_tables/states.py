"""Tables of metadata alone, and what a system table shows of them."""

from __future__ import annotations

from typing import Any

from lakelsm.environment import Environment
from lakelsm.snapshots.table_store import TableStore
from lakelsm.system_tables.system_table import SystemTable, TableState
from tests.commit.commit_table import CommitTable

#: The local clock is that of UTC.
AT_UTC = Environment(local_offset=lambda seconds: 0)


def shown(table: CommitTable, system: SystemTable, snapshot_id: int | None = None) -> list[dict[str, Any]]:
    """The rows of a system table."""
    store = TableStore.open(str(table.root))
    snapshot = store.snapshots.latest() if snapshot_id is None else store.snapshots.get(snapshot_id)
    return shown_state(TableState(store, snapshot, AT_UTC), system)


def shown_state(state: TableState, system: SystemTable) -> list[dict[str, Any]]:
    """The rows of a system table of a state."""
    rows: list[dict[str, Any]] = system.rows(state).to_pylist()
    return rows
