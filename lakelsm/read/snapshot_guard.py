"""Tasks of a read whose snapshots may be removed while they run, with their files: nothing is damaged then."""

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
    """The same as ``task``, which reads files of snapshots. If one was removed, it raises as `TableStore.while_read`."""

    store: TableStore
    snapshots: tuple[Snapshot | None, ...]
    task: Callable[[Unit], Iterator[pa.RecordBatch]]
    changes: bool = False

    @property
    def __name__(self) -> str:
        """What plans of Spark call the task."""
        return type(self.task).__name__

    def __call__(self, unit: Unit) -> Iterator[pa.RecordBatch]:
        """Yield what the task yields."""
        with self.store.while_read(*self.snapshots, changes=self.changes):
            yield from self.task(unit)
