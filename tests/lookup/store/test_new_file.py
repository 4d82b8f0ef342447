"""Files of stores are written whole, or leave nothing behind."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from lakelsm.errors import StorageError
from lakelsm.lookup.store.new_file import new_file


def test_a_file_that_is_written_is_there(tmp_path: Path) -> None:
    with new_file(tmp_path / "s") as file:
        file.write(b"abc")
    assert (tmp_path / "s").read_bytes() == b"abc"


@pytest.mark.parametrize("raised", [ValueError("rows"), KeyboardInterrupt(), StorageError("scratch")])
def test_whatever_fails_leaves_no_file(tmp_path: Path, raised: BaseException) -> None:
    with pytest.raises(type(raised)) as caught, new_file(tmp_path / "s") as file:
        file.write(b"abc")
        raise raised
    assert caught.value is raised
    assert list(tmp_path.iterdir()) == []


def test_what_the_system_refuses_names_the_file_and_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as caught, new_file(tmp_path / "s"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert str(caught.value).startswith(f"{tmp_path}/s cannot be written: No space left on device; ")
    assert str(caught.value).endswith("The table is unharmed. Free space on that file system, and run it again.")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_gone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="No such file or directory"), new_file(tmp_path / "gone" / "s"):
        raise AssertionError("not opened")


def test_a_file_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(b"first")
    with pytest.raises(StorageError, match="File exists"), new_file(tmp_path / "s"):
        raise AssertionError("not opened")
    assert (tmp_path / "s").read_bytes() == b"first"
