"""Tasks that compare keys of several files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from lakelsm.maintain.check.key_audit import HashAudit
from lakelsm.snapshots.hash_indexes import HashIndex
from lakelsm.storage import LocalFileIO


def index(folder: Path, name: str, *hashes: int, said: int | None = None) -> HashIndex:
    path = folder / name
    path.write_bytes(np.array(hashes, ">i4").tobytes())
    return HashIndex(str(path), name, 4 * len(hashes), len(hashes) if said is None else said)


def rules(*indexes: HashIndex) -> list[str | None]:
    return pa.Table.from_batches(HashAudit(LocalFileIO())(indexes)).column("rule").to_pylist()


def test_a_hash_occurs_once_in_a_partition(tmp_path: Path) -> None:
    first = index(tmp_path, "a", 1, 2)
    assert rules(first, index(tmp_path, "b", 3)) == []
    assert rules(first, index(tmp_path, "c", 2)) == ["hash-index-twice"]
    assert rules(index(tmp_path, "d", 5, 5)) == ["hash-index-twice"]


def test_an_unreadable_index_is_reported_and_no_other_is_compared_with_it(tmp_path: Path) -> None:
    assert rules(index(tmp_path, "a", 1, 1), index(tmp_path, "b", 3, said=2)) == ["hash-index-unreadable"]
