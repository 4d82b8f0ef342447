"""A disk that is full while a store is written: the error names the file and a remedy, and no file is left."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lakelsm.errors import StorageError
from lakelsm.lookup.store import hash_keys
from tests.lookup.store.damaged_store import layout_of, rows_of
from tests.lookup.store.store_kinds import KINDS, format_of


@contextmanager
def room(size: int) -> Iterator[None]:
    """Allow no file of this process to be larger than a size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [0, 50, 1_000, 5_000])
def test_a_store_on_a_full_disk_leaves_no_file(kind: str, size: int, tmp_path: Path) -> None:
    form, layout = format_of(kind), layout_of("a")
    with pytest.raises(StorageError) as raised, room(size):
        form.write(tmp_path / "store", layout, (rows_of("a", first) for first in range(0, 2_000, 400)))
    assert str(raised.value).startswith(f"{tmp_path}/store")
    assert "Raise the limit of a file's size (ulimit -f), and run it again." in str(raised.value)
    assert "of this commit" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []
    form.write(tmp_path / "store", layout, [rows_of("a")])
    assert [path.name for path in tmp_path.iterdir()] == ["store"], "with room again it is written"


def test_so_does_a_hash_store_without_room_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hash_keys.KeyRuns.__init__, "__defaults__", (4_000,))
    rows = (rows_of("a", first) for first in range(0, 2_000, 400))
    with pytest.raises(StorageError) as raised, room(4_000):
        format_of("hash").write(tmp_path / "store", layout_of("a"), rows)
    assert f"{tmp_path}/store cannot be written" in str(raised.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_fail_leave_no_file(kind: str, tmp_path: Path) -> None:
    def failing() -> Iterator[object]:
        yield rows_of("a")
        raise KeyError("row")

    with pytest.raises(KeyError):
        format_of(kind).write(tmp_path / "store", layout_of("a"), failing())  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
