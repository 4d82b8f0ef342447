"""Files of stores are opened where they are files."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from lakelsm.errors import CorruptStoreError, StorageError
from lakelsm.lookup.store.open_file import opened


def test_a_file_is_opened(tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(b"abc")
    descriptor = opened(tmp_path / "s")
    assert os.pread(descriptor, 9, 0) == b"abc"
    os.close(descriptor)


def test_what_is_no_file_is_told_as_a_store_to_be_made_anew(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "fifo")
    for name in ("missing", "gone/s", "file/s", "fifo", "."):
        with pytest.raises(CorruptStoreError, match=str(tmp_path)):
            opened(tmp_path / name)


def test_what_the_system_refuses_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(StorageError, match=r"s cannot be read: Too many open files\. Mend that, and look up again\."):
        opened(tmp_path / "s")
