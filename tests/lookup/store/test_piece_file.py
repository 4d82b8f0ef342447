"""Pieces of files are checked before they are used, once, and again when the file changed."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from lakelsm.errors import CorruptStoreError, StorageError
from lakelsm.lookup.store.piece_file import PieceFile, PieceWriter


def _written(path: Path, pieces: int = 4) -> Path:
    with PieceWriter(path) as writer:
        for number in range(pieces):
            writer.append("numbers", np.arange(8 * number, 8 * number + 8))
        writer.finish({"name": "é"})
    return path


def _flip(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


def test_a_file_has_its_facts_and_pieces(tmp_path: Path) -> None:
    with PieceFile(_written(tmp_path / "file")) as file:
        assert file.facts == {"name": "é"} and file.size == (tmp_path / "file").stat().st_size
        assert np.frombuffer(file.section("numbers").piece(2), np.int64).tolist() == list(range(16, 24))
        assert file.section("numbers").whole(np.int64).tolist() == list(range(32))
        assert file.section("others").pieces == () and file.section("others").is_checked


def test_only_the_pieces_that_are_used_are_checked(tmp_path: Path) -> None:
    path = _written(tmp_path / "file")
    _flip(path, 64 + 3)  # The second of four.
    with PieceFile(path) as file:
        section = file.section("numbers")
        section.check_values(np.array([0, 24]), np.array([7, 31]), 8)
        section.check_value(16, 23, 8)
        assert not section.is_checked
        for first, last in [(8, 8), (15, 15), (0, 31), (7, 8)]:
            with pytest.raises(CorruptStoreError, match="the bytes from 64 to 128 have another checksum"):
                section.check_value(first, last, 8)


def test_pieces_are_checked_again_once_the_file_changed(tmp_path: Path) -> None:
    path = _written(tmp_path / "file")
    with PieceFile(path) as file:
        section = file.section("numbers")
        section.check_values(np.array([0]), np.array([31]), 8)
        assert section.is_checked
        _flip(path, 5)
        os.utime(path, ns=(7, 7))
        file.check()
        assert not section.is_checked
        with pytest.raises(CorruptStoreError, match=str(path)):
            section.check_value(0, 0, 8)
        section.check_value(8, 8, 8)


@pytest.mark.parametrize("size", [0, 10, 300])
def test_a_file_that_is_cut_or_longer_is_told(tmp_path: Path, size: int) -> None:
    path = _written(tmp_path / "file")
    with PieceFile(path) as file:
        whole = path.read_bytes()
        for content in (whole[:size], whole + b"x"):
            path.write_bytes(content)
            with pytest.raises(CorruptStoreError, match="is damaged"):
                file.check()
            with pytest.raises(CorruptStoreError, match="is damaged"):
                PieceFile(path)


def test_every_flipped_bit_of_the_document_is_told(tmp_path: Path) -> None:
    path = _written(tmp_path / "file")
    for at in range(4 * 64, path.stat().st_size):
        _flip(path, at)
        with pytest.raises(CorruptStoreError, match="is damaged"):
            PieceFile(path)
        _flip(path, at)
    PieceFile(path).close()


def test_a_writer_that_does_not_finish_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(KeyError), PieceWriter(tmp_path / "file") as writer:
        writer.append("numbers", b"1234")
        raise KeyError
    assert os.listdir(tmp_path) == []


def test_a_full_disk_is_told_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    told = r"file cannot be written .*The table is unharmed\. Free space"
    with pytest.raises(StorageError, match=told), PieceWriter(tmp_path / "file") as writer:
        monkeypatch.setattr(os, "pwrite", full)
        writer.append("numbers", b"1234")
    assert os.listdir(tmp_path) == []


def test_a_place_that_cannot_be_written_or_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be written"):
        PieceWriter(tmp_path / "no" / "file")
    with pytest.raises(CorruptStoreError, match="is no regular file"):
        PieceFile(tmp_path)
    with pytest.raises(CorruptStoreError, match="is missing"):
        PieceFile(tmp_path / "file")


def test_what_this_process_has_written_is_whole_until_its_file_changes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with PieceWriter(path) as writer:
        writer.append("numbers", np.arange(8))
        writer.finish({})
        with PieceFile(path, whole=writer.stamp) as file:
            assert file.section("numbers").is_checked
            os.pwrite(writer._descriptor, b"x", 5)  # At once: the system's clock may not have gone on.
            file.check()
            with pytest.raises(CorruptStoreError, match="another checksum"):
                file.section("numbers").check(0)
        with PieceFile(path, whole=writer.stamp) as file, pytest.raises(CorruptStoreError, match="another checksum"):
            file.section("numbers").check(0)
