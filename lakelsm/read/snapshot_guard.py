"""Tasks of a read whose snapshots may expire while they run: missing files are then not reported as damage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

import pyarrow as pa

from lakelsm.format.snapshot import Snapshot
from lakelsm.snapshots.table_store import TableStore

Unit = TypeVar("Unit")


@dataclass(frozen=True)
class SnapshotGuard(Generic[Unit]):
    """Runs ``task``, which reads files of snapshots. If one of them was removed, raises as `TableStore.while_read`."""

    store: TableStore
    snapshots: tuple[Snapshot | None, ...]
    task: Callable[[Unit], Iterator[pa.RecordBatch]]
    changes: bool = False

    @property
    def __name__(self) -> str:
        """The name of the task in Spark's plans."""
        return type(self.task).__name__

    def __call__(self, unit: Unit) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the task."""
        with self.store.while_read(*self.snapshots, changes=self.changes):
            yield from self.task(unit)
