"""Store files are written whole or not at all; their blocks are checked before use, and after each change."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from lakelsm.errors import CorruptStoreError, StorageError
from lakelsm.lookup.store import store_file
from lakelsm.lookup.store.store_file import StoreFile, StoreFileWriter, new_file, opened

_BLOCK = 64  # Bytes: the first section has one block of 'before' and four of 'numbers'.


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_file, "_BLOCK_BITS", 6)
    monkeypatch.setattr(store_file, "_BLOCK_BYTES", _BLOCK)


def _written(path: Path) -> Path:
    with StoreFileWriter(path) as writer:
        writer.append("before", b"x" * 11)
        writer.append("none", b"")
        assert writer.reserve("numbers", 128) == 0
        writer.append("numbers", np.arange(16, 32))
        writer.write_at("numbers", 64, np.arange(8, 16))
        writer.write_at("numbers", 0, np.arange(8))
        assert np.frombuffer(writer.read_at("numbers", 56, 16), np.int64).tolist() == [7, 8]
        writer.finish({"name": "é"})
    return path


def _flip(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


def test_a_file_has_its_facts_and_sections(tmp_path: Path) -> None:
    with StoreFile(_written(tmp_path / "file")) as file:
        assert file.facts == {"name": "é"} and file.size == (tmp_path / "file").stat().st_size
        numbers = file.section("numbers")
        assert np.frombuffer(numbers.bytes(128, 192), np.int64).tolist() == list(range(16, 24))
        assert numbers.array(np.int64).tolist() == list(range(32))
        for name in ("none", "unknown"):
            section = file.section(name)
            assert (section.size, section.is_checked, len(section.array(np.int64))) == (0, True, 0)
            section.check(0, 0)


def test_only_the_blocks_that_are_used_are_checked(tmp_path: Path) -> None:
    path = _written(tmp_path / "file")
    _flip(path, 2 * _BLOCK + 3)  # The second of four blocks.
    with StoreFile(path) as file:
        section = file.section("numbers")
        section.check_values(np.array([0, 24, 8, 16]), np.array([8, 32, 8, 16]), 8)
        section.check(128, 192)
        assert not section.is_checked
        for first, stop in [(8, 9), (15, 16), (0, 32), (7, 9)]:
            with pytest.raises(CorruptStoreError, match="the checksum of bytes 128 to 192 differs"):
                section.check(8 * first, 8 * stop)
            with pytest.raises(CorruptStoreError, match="the checksum of bytes 128 to 192 differs"):
                section.check_values(np.array([0, first]), np.array([1, stop]), 8)


def test_blocks_are_checked_again_once_the_file_changed(tmp_path: Path) -> None:
    path = _written(tmp_path / "file")
    with StoreFile(path) as file:
        section = file.section("numbers")
        section.check_values(np.array([0]), np.array([32]), 8)
        assert section.is_checked
        _flip(path, _BLOCK + 5)
        os.utime(path, ns=(7, 7))
        file.check()
        assert not section.is_checked
        with pytest.raises(CorruptStoreError, match=str(path)):
            section.check(0, 1)
        section.check(64, 72)


@pytest.mark.parametrize("size", [0, 10, 300])
def test_a_file_that_is_too_short_or_too_long_is_refused(tmp_path: Path, size: int) -> None:
    path = _written(tmp_path / "file")
    with StoreFile(path) as file:
        whole = path.read_bytes()
        for content in (whole[:size], whole + b"x"):
            path.write_bytes(content)
            for look in (file.check, lambda: StoreFile(path)):
                with pytest.raises(CorruptStoreError, match="is damaged"):
                    look()


def test_every_flipped_bit_after_the_sections_is_reported(tmp_path: Path) -> None:
    path = _written(tmp_path / "file")
    for at in range(5 * _BLOCK, path.stat().st_size):
        _flip(path, at)
        with pytest.raises(CorruptStoreError, match="is damaged"):
            StoreFile(path)
        _flip(path, at)
    StoreFile(path).close()


def test_a_file_of_this_process_needs_no_check_until_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with StoreFileWriter(path) as writer:
        writer.append("numbers", np.arange(8))
        writer.finish({})
        with StoreFile(path, whole=writer.stamp) as file:
            assert file.section("numbers").is_checked
            os.pwrite(writer._descriptor, b"x", 5)  # Immediately: the system's clock may have the same tick.
            file.check()
            with pytest.raises(CorruptStoreError, match="checksum of bytes"):
                file.section("numbers").check(0, 1)
        with StoreFile(path, whole=writer.stamp) as file, pytest.raises(CorruptStoreError, match="checksum of bytes"):
            file.section("numbers").check(0, 1)


@pytest.mark.parametrize("make", [StoreFileWriter, new_file])
@pytest.mark.parametrize("raised", [KeyError("rows"), KeyboardInterrupt(), StorageError("scratch")])
def test_a_file_that_is_not_finished_is_deleted(make: object, raised: BaseException, tmp_path: Path) -> None:
    with pytest.raises(type(raised)) as caught, make(tmp_path / "file"):  # type: ignore[operator]
        raise raised
    assert caught.value is raised
    assert os.listdir(tmp_path) == []


def test_a_new_file_has_the_bytes_that_are_written(tmp_path: Path) -> None:
    with new_file(tmp_path / "file") as file:
        file.write(b"abc")
    assert (tmp_path / "file").read_bytes() == b"abc"


def test_a_full_disk_is_an_error_with_the_file_and_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    said = rf"{tmp_path}/file cannot be written.*: No space left .*The table is not affected\. Free space on that file"
    with pytest.raises(StorageError, match=said), new_file(tmp_path / "file"):
        full()
    with pytest.raises(StorageError, match=said), StoreFileWriter(tmp_path / "file") as writer:
        monkeypatch.setattr(os, "pwritev", full)
        writer.append("numbers", b"1234")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("make", [StoreFileWriter, lambda path: new_file(path).__enter__()])
def test_a_file_that_cannot_be_created_is_an_error_and_an_existing_one_stays(make: object, tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(b"first")
    for name in ("no/file", "there"):
        with pytest.raises(StorageError, match="cannot be written"):
            make(tmp_path / name)  # type: ignore[operator]
    assert (tmp_path / "there").read_bytes() == b"first"


def test_a_path_that_is_not_a_regular_file_is_a_damaged_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    descriptor = opened(tmp_path / "file")
    assert os.pread(descriptor, 9, 0) == b"abc"
    os.close(descriptor)
    os.mkfifo(tmp_path / "fifo")
    for name in ("missing", "gone/s", "file/s", "fifo", "."):
        with pytest.raises(CorruptStoreError, match=str(tmp_path)):
            opened(tmp_path / name)

    def refused(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(StorageError, match=r"file cannot be read: Too many open files\. Fix that, and look up again\."):
        opened(tmp_path / "file")
