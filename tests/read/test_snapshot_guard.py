"""A task reports a snapshot that expires during a read; a missing file of a retained snapshot is damage."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm.errors import CorruptTableError, SnapshotNotFoundError
from lakelsm.read.snapshot_guard import SnapshotGuard
from tests.maintain.versioned_table import rows, versioned_table


@dataclass(frozen=True)
class Missing:
    """A task that yields a batch, and then misses a file."""

    def __call__(self, unit: int) -> Iterator[pa.RecordBatch]:
        yield from rows((unit, "a")).to_batches()
        raise CorruptTableError("a file is missing")


def test_only_an_expired_snapshot_explains_a_missing_file(tmp_path: Path) -> None:
    table = versioned_table(tmp_path, 3)
    store = table._store()
    task = pickle.loads(pickle.dumps(SnapshotGuard(store, (store.snapshots.get(1),), Missing())))
    assert task.__name__ == "Missing", "as plans call it"
    found = task(7)
    assert next(found).num_rows == 1
    with pytest.raises(CorruptTableError, match="a file is missing"):
        next(found)
    table.maintenance.expire_snapshots(retain_last=1)
    with pytest.raises(SnapshotNotFoundError, match="snapshot 1 was deleted while it was read"):
        list(task(7))


def test_a_missing_file_without_a_snapshot_is_never_explained(tmp_path: Path) -> None:
    store = versioned_table(tmp_path, 1)._store()
    with pytest.raises(CorruptTableError):
        list(SnapshotGuard(store, (None,), Missing())(7))
