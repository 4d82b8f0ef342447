"""Tasks of a read whose snapshot may go while they run: its files go with it, and nothing is damaged then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import pyarrow as pa

from lakelsm.format.snapshot import Snapshot
from lakelsm.snapshots.table_store import TableStore

Unit = TypeVar("Unit")


@dataclass(frozen=True)
class OfSnapshot(Generic[Unit]):
    """The same as ``task``, which reads files of a snapshot: that it went is told as `TableStore.while_read` does."""

    store: TableStore
    snapshot: Snapshot | None
    task: Callable[[Unit], Iterator[pa.RecordBatch]]
    changes: bool = False

    @property
    def __name__(self) -> str:
        """What plans of Spark call the task."""
        return type(self.task).__name__

    def __call__(self, unit: Unit) -> Iterator[pa.RecordBatch]:
        """Yield what the task yields."""
        with self.store.while_read(self.snapshot, self.changes):
            yield from self.task(unit)
