"""The stored consumers of a table."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import CorruptTableError
from lakelsm.format.paths import TablePaths
from lakelsm.snapshots.consumer_store import ConsumerStore, consumer_text
from lakelsm.storage import LocalFileIO
from lakelsm.storage.file_io import FileIO


class OnceBroken(LocalFileIO):
    """Returns half of a file to the first read, as if the file is being overwritten in place."""

    def __init__(self) -> None:
        self.reads = 0

    def read(self, path: str, limit: int | None = None) -> bytes:
        self.reads += 1
        return super().read(path, limit)[: 5 if self.reads == 1 else None]


def _store(root: Path, file_io: FileIO | None = None) -> ConsumerStore:
    return ConsumerStore(file_io or LocalFileIO(), TablePaths(str(root)), lambda _: None)


def _put(root: Path, name: str, data: bytes) -> None:
    (root / "consumer").mkdir(exist_ok=True)
    (root / "consumer" / f"consumer-{name}").write_bytes(data)


def test_consumers_are_next_snapshots_by_name(tmp_path: Path) -> None:
    assert _store(tmp_path).all() == {} and _store(tmp_path).try_get("a") is None
    _put(tmp_path, "b", b'{"nextSnapshot": 3}')
    _put(tmp_path, "a", b'{"nextSnapshot" : 12, "added": "by a newer engine"}')
    (tmp_path / "consumer" / "README").write_bytes(b"no consumer")
    assert _store(tmp_path).all() == {"a": 12, "b": 3}
    assert list(_store(tmp_path).names()) == ["a", "b"]


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"nextSnapshot": "3"}', b'{"nextSnapshot": true}'])
def test_an_unreadable_consumer_is_not_a_missing_one(tmp_path: Path, data: bytes) -> None:
    _put(tmp_path, "a", data)
    with pytest.raises(CorruptTableError, match="consumer-a"):
        _store(tmp_path).all()


def test_a_file_that_is_being_overwritten_is_read_again(tmp_path: Path) -> None:
    _put(tmp_path, "a", consumer_text(7))
    assert _store(tmp_path, OnceBroken()).all() == {"a": 7}


@given(st.integers(0, 2**63 - 1))
def test_a_written_consumer_reads_back(tmp_path_factory: pytest.TempPathFactory, snapshot_id: int) -> None:
    root = tmp_path_factory.mktemp("t")
    _put(root, "a", consumer_text(snapshot_id))
    assert _store(root).try_get("a") == snapshot_id
