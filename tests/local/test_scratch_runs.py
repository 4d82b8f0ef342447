"""Runs in scratch files are read as they were written; the files have no names, and a full disk is reported."""

from __future__ import annotations

import errno
import gc
import io
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm.errors import StorageError
from lakelsm.local import scratch_runs
from lakelsm.local.scratch_runs import ScratchSpace

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.string())])


def rows(*keys: int) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64()), "v": [f"v{key}" for key in keys]}, schema=SCHEMA)


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_the_tables_of_each_bucket_are_read_back(directory: Path) -> None:
    with ScratchSpace(SCHEMA, 1 << 30) as scratch:
        run = scratch.write(iter([(0, rows(1, 2)), (0, rows(3)), (5, rows(4))]))
        assert list(directory.iterdir()) == []
        assert run.codes == (0, 5)
        assert [table["k"].to_pylist() for table in run.tables(0)] == [[1, 2], [3]]
        assert next(run.tables(5)).equals(rows(4)) and list(run.tables(1)) == []
        assert list(run.tables(0))[1].equals(rows(3)), "a run may be read again, and by several at once"


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are listed in /proc")
def test_closing_the_space_closes_its_files(directory: Path) -> None:
    with ScratchSpace(SCHEMA, 1 << 30) as scratch:
        run = scratch.write(iter([(0, rows(1))]))
        assert open_files(directory)
        assert [table.num_rows for table in run.tables(0)] == [1]
    del run
    gc.collect()
    assert open_files(directory) == []


def open_files(directory: Path) -> list[str]:
    """Return files of the directory that this process has open. Garbage of other tests may close theirs."""
    found = []
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # The descriptor of the listing itself, and those of other threads.
            found.append(os.readlink(f"/proc/self/fd/{descriptor}"))
    return [name for name in found if name.startswith(f"{directory}/")]


def test_more_bytes_than_the_option_allows_are_refused() -> None:
    message = r"'write-buffer-spill.max-disk-size' \(2000 bytes\)"
    with ScratchSpace(SCHEMA, 2000) as scratch, pytest.raises(StorageError, match=message):
        for _ in range(5):
            scratch.write(iter([(0, rows(*range(20)))]))


class Full:
    """A file on a disk that is full after some bytes."""

    def __init__(self, room: int) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._room = room

    def write(self, data: Any) -> int:
        if self._file.tell() + len(data) > self._room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self._file.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> Full:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


@pytest.mark.parametrize("room", [0, 600, 900])
def test_a_full_disk_raises_an_error_with_the_directory_and_the_remedy(
    room: int, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scratch_runs, "_nameless_file", lambda: Full(room))
    message = rf"of TMPDIR: {directory}/lakelsm-rows cannot be written: No space left.*bytes are free there.*Free space"
    with ScratchSpace(SCHEMA, 1 << 30) as scratch, pytest.raises(StorageError, match=message):
        scratch.write(iter([(0, rows(*range(100))), (1, rows(1))]))


class NoRoom(io.FileIO):
    """A file on a full disk, which refuses a full buffer and again when it is closed."""

    def write(self, data: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_at_the_close_gives_the_same_error(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch_runs, "_nameless_file", lambda: io.BufferedRandom(NoRoom(directory / "run", "w+")))
    message = rf"of TMPDIR: {directory}/lakelsm-rows cannot be written: No space left"
    with pytest.raises(StorageError, match=message), ScratchSpace(SCHEMA, 1 << 30) as scratch:
        scratch.write(iter([(0, rows(*range(10_000)))]))


def test_a_missing_scratch_directory_raises_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/no/such/directory")
    message = r"/no/such/directory.*cannot be written"
    with ScratchSpace(SCHEMA, 1 << 30) as scratch, pytest.raises(StorageError, match=message):
        scratch.write(iter([(0, rows(1))]))
