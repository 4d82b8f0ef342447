"""Files are deleted in batches. A file that cannot be deleted is counted; a missing file is not a failure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.maintain.deletion.file_deletion import delete_empty_directories, delete_unneeded
from lakelsm.storage import LocalFileIO


class Watched(LocalFileIO):
    """Records the sizes of batches. A file with ``undeletable`` in its path cannot be deleted."""

    undeletable = "\0"
    error: type[Exception] = PermissionError

    def __init__(self) -> None:
        self.batches: list[int] = []

    def delete_files(self, paths: Sequence[str]) -> None:
        self.batches.append(len(paths))
        super().delete_files(paths)

    def delete(self, path: str) -> None:
        if self.undeletable in path:
            raise self.error("this file stays")
        super().delete(path)

    def delete_empty_dir(self, path: str) -> bool:
        if self.undeletable in path:
            raise self.error("this directory stays")
        return super().delete_empty_dir(path)


def files(folder: Path, count: int) -> list[str]:
    paths = [folder / f"file-{number}" for number in range(count)]
    for path in paths:
        path.touch()
    return [str(path) for path in paths]


@pytest.mark.parametrize("count, batches", [(0, []), (3, [3]), (1000, [1000]), (2300, [300, 1000, 1000])])
def test_files_are_deleted_in_batches(tmp_path: Path, count: int, batches: list[int]) -> None:
    file_io = Watched()
    done = delete_unneeded(file_io, iter(files(tmp_path, count)))
    assert (done.deleted, done.failures) == (count, ())
    assert list(tmp_path.iterdir()) == []
    assert sorted(file_io.batches) == batches


def test_a_missing_file_is_not_a_failure(tmp_path: Path) -> None:
    assert delete_unneeded(Watched(), [str(tmp_path / "gone")]).failures == ()


@pytest.mark.parametrize("error", [PermissionError, CorruptTableError])
@pytest.mark.parametrize("count", [5, 1500])
def test_a_file_that_cannot_be_deleted_is_counted_and_the_others_are_deleted(
    tmp_path: Path, error: type[Exception], count: int
) -> None:
    file_io = Watched()
    file_io.undeletable, file_io.error = "file-3", error
    paths = files(tmp_path, count)
    stay = sorted(path for path in paths if "file-3" in path)
    done = delete_unneeded(file_io, paths)
    assert done.deleted == count - len(stay)
    assert sorted(done.failures) == sorted(f"{path}: this file stays" for path in stay)
    assert sorted(map(str, tmp_path.iterdir())) == stay


def test_only_empty_directories_are_deleted(tmp_path: Path) -> None:
    inner, full, odd = tmp_path / "p=1" / "bucket-0", tmp_path / "p=2", tmp_path / "odd"
    for folder in (inner, full, odd):
        folder.mkdir(parents=True)
    (full / "data").touch()
    file_io = Watched()
    file_io.undeletable = "odd"
    wanted = [odd, full, tmp_path / "gone", inner, inner.parent]
    assert delete_empty_directories(file_io, map(str, wanted)) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["odd", "p=2"]
