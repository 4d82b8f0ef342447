"""What the faces of a table share: the store as it is now, and the engine that a call means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lakelsm.arguments import checked_choice, checked_snapshot_id, wrong_argument
from lakelsm.engine import ENGINES, Engine, checked_session, chosen_engine
from lakelsm.format.snapshot import Snapshot
from lakelsm.snapshots.table_store import TableStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class OpenedTable:
    """A table that was opened, and the session to work in. `lakelsm.table.Table` is the one that users meet."""

    def __init__(self, store: TableStore, spark: SparkSession | None = None) -> None:
        if not isinstance(store, TableStore):
            raise wrong_argument("store", store, "made by Catalog.table(name) or Table.for_path(location): call these")
        self._opened = store
        self._spark = checked_session(spark)

    @property
    def name(self) -> str:
        """The name that messages use."""
        return self._opened.name

    @property
    def spark(self) -> SparkSession:
        """The session that the table works in."""
        from lakelsm.frames.spark_engine import SparkEngine

        return SparkEngine(self._spark).session

    def _store(self, overrides: Mapping[str, str] | None = None) -> TableStore:
        return self._opened.refreshed().with_options(overrides)

    def _at(self, snapshot_id: int | None) -> tuple[TableStore, Snapshot | None]:
        snapshot_id = checked_snapshot_id("snapshot_id", snapshot_id)
        store = self._store()
        return store, store.snapshots.latest() if snapshot_id is None else store.snapshots.get(snapshot_id)

    def _engine(self, name: str | None) -> Engine:
        """The engine that a call names, or the one that it means without a name."""
        return chosen_engine(checked_choice("engine", name, ENGINES), self._spark)
