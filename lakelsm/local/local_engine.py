"""A table's work in this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.format.snapshot import Snapshot
from lakelsm.local.arrow_input import ArrowInput
from lakelsm.local.arrow_rows import prepare_arrow
from lakelsm.local.arrow_writer import ArrowWriter
from lakelsm.predicate.parser import parse_where
from lakelsm.predicate.predicate import Predicate
from lakelsm.runner.local_runner import LocalRunner
from lakelsm.snapshots.table_store import TableStore


class LocalEngine:
    """Works in this process; its prepared rows are Arrow."""

    @property
    def runner(self) -> LocalRunner:
        """What runs planned units."""
        return LocalRunner()

    def writer(self, store: TableStore) -> ArrowWriter:
        """See `Engine.writer`."""
        return ArrowWriter(self.runner, store)

    def prepared(
        self, store: TableStore, data: Any, row_kind: str | None = None, fixed: Mapping[str, object] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """See `Engine.prepared`."""
        return prepare_arrow(ArrowInput.of(data), store.schema, store.options, row_kind, fixed=fixed)

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
