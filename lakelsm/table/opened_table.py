"""The base class of `Table`, `TableView` and the namespaces: the current store of the table, and the engine of a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from lakelsm.arguments import checked_choice, checked_point, wrong_argument
from lakelsm.engine import ENGINES, Engine, checked_session, chosen_engine
from lakelsm.plan.time_travel import Point
from lakelsm.snapshots.table_store import TableStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Result = TypeVar("Result")


class OpenedTable:
    """A table that was opened, and its Spark session (None: the active one)."""

    def __init__(self, store: TableStore, spark: SparkSession | None = None) -> None:
        if not isinstance(store, TableStore):
            raise wrong_argument("store", store, "a TableStore", "Call Catalog.table(name) or Table.for_path(location).")
        self._opened = store
        self._spark = checked_session(spark)

    @property
    def _log_name(self) -> str:
        return self._opened.name

    def _store(self) -> TableStore:
        """Return the table with its newest schema."""
        return self._opened.refreshed()

    def _on_newest(self, work: Callable[[], Result]) -> Result:
        """Run ``work``, which reads the newest snapshot; run it again if that snapshot expires or is rolled back."""
        return self._opened.run_on_newest(work)

    def _point(self, store: TableStore, argument: str, value: object, *, min_value: int = 1) -> Point | None:
        """Check a snapshot argument: a snapshot id, a time, or the name of a tag."""

        def is_tag(text: str) -> bool:
            """Return whether a tag has this name. The slash of a zone such as Asia/Tokyo is in no name of a tag."""
            return "/" not in text and store.tags.try_get(text) is not None

        return checked_point(argument, value, min_value=min_value, is_tag=is_tag)

    def _engine(self, name: str | None) -> Engine:
        """Return the engine with a name, or the default engine for None."""
        return chosen_engine(checked_choice("engine", name, ENGINES), self._spark)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._opened.name!r} at {self._opened.paths.root!r})"
