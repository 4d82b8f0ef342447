"""A table's work in this process."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.format.snapshot import Snapshot
from lakelsm.predicate.parser import parse_where
from lakelsm.predicate.predicate import Predicate
from lakelsm.runner.local_runner import LocalRunner
from lakelsm.snapshots.table_store import TableStore
from lakelsm.write.row_writer import RowWriter


class LocalEngine:
    """Works in this process; its prepared rows are Arrow."""

    @property
    def runner(self) -> LocalRunner:
        """What runs planned units."""
        return LocalRunner()

    def writer(self, store: TableStore) -> RowWriter[Any]:
        """See `Engine.writer`."""
        raise UnsupportedFeatureError("Writes without Spark are not built yet: write a Spark DataFrame.")

    def prepared(
        self, store: TableStore, data: Any, row_kind: str | None = None, fixed: Mapping[str, object] | None = None
    ) -> Any:
        """See `Engine.prepared`."""
        raise UnsupportedFeatureError("Writes without Spark are not built yet: write a Spark DataFrame.")

    def retractions(self, store: TableStore, where: str, snapshot: Snapshot | None) -> Any:
        """See `Engine.retractions`."""
        raise UnsupportedFeatureError("Deletes without Spark are not built yet: pass engine='spark'.")

    def predicate(self, store: TableStore, where: str) -> Predicate:
        """See `Engine.predicate`."""
        return parse_where(where, store.schema.fields)

    def millis_of(self, timestamp: str | datetime) -> int:
        """See `Engine.millis_of`."""
        try:
            time = timestamp if isinstance(timestamp, datetime) else datetime.fromisoformat(timestamp)
        except ValueError:
            raise InvalidInputError(f"timestamp {timestamp!r} is no time: write 'YYYY-MM-DD HH:MM:SS'.") from None
        return int(time.timestamp() * 1000)
