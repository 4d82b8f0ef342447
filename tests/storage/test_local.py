"""LocalFileIO and open_storage."""

from __future__ import annotations

import errno
import multiprocessing
import os
import pickle
from pathlib import Path

import pytest
from pyarrow import fs as arrow_fs

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.storage import FileIO, LocalFileIO, open_storage


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("/a/b", "/a/b"),
        ("/a/b/", "/a/b"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("file://localhost/a/b", "/a/b"),
        ("FILE:///a/b", "/a/b"),
        ("file:///a%20b/c d", "/a%20b/c d"),
        ("/a//b/../c", "/a/c"),
        ("/a:b/c#d?e", "/a:b/c#d?e"),
        ("file:///a#d?e", "/a#d?e"),
        ("//a", "/a"),
        ("/", "/"),
    ],
)
def test_a_local_uri_opens_as_its_absolute_path(uri: str, path: str) -> None:
    file_io, root = open_storage(uri)
    assert root == path
    assert isinstance(file_io, LocalFileIO)
    assert isinstance(file_io, FileIO)


@pytest.mark.parametrize(
    "uri", ["s3://bucket/x", "hdfs://h:9000/x", "oss://b/x", "gs://b/x", "abfss://c@a/x"]
)
def test_another_scheme_is_refused_by_name(uri: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=uri.split(":")[0]):
        open_storage(uri)


@pytest.mark.parametrize("uri", ["", "  ", "relative/x", "file:x", "file://host/x"])
def test_a_relative_or_remote_location_is_refused(uri: str) -> None:
    with pytest.raises(InvalidInputError):
        open_storage(uri)


def test_write_makes_directories_replaces_content_and_leaves_no_temporary(tmp_path: Path) -> None:
    file_io = LocalFileIO()
    path = str(tmp_path / "a" / "b" / "f")
    file_io.write(path, b"one")
    file_io.write(path, b"two", durable=False)
    assert file_io.read(path) == b"two"
    assert file_io.size(path) == 3
    assert file_io.list(str(tmp_path / "a" / "b")) == ["f"]


def test_create_if_absent_never_overwrites(tmp_path: Path) -> None:
    file_io = LocalFileIO()
    path = str(tmp_path / "snapshot" / "snapshot-1")
    assert file_io.create_if_absent(path, b"mine") is True
    assert file_io.create_if_absent(path, b"theirs") is False
    assert file_io.read(path) == b"mine"
    assert os.listdir(tmp_path / "snapshot") == ["snapshot-1"]
    assert os.stat(path).st_nlink == 1


def test_a_dangling_symlink_counts_as_taken(tmp_path: Path) -> None:
    path = tmp_path / "snapshot-1"
    path.symlink_to(tmp_path / "nowhere")
    assert LocalFileIO().create_if_absent(str(path), b"x") is False


def test_temporary_names_start_with_a_dot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    real = os.link

    def spy(source: str, target: str) -> None:
        seen.append(os.path.basename(source))
        assert Path(source).read_bytes() == b"full content"
        real(source, target)

    monkeypatch.setattr(os, "link", spy)
    LocalFileIO().create_if_absent(str(tmp_path / "snapshot-7"), b"full content")
    assert seen[0].startswith(".snapshot-7.") and seen[0].endswith(".tmp")


def test_a_file_system_without_hard_links_is_refused_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: str, target: str) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(UnsupportedFeatureError, match="hard links"):
        LocalFileIO().create_if_absent(str(tmp_path / "snapshot-1"), b"x")
    assert os.listdir(tmp_path) == []


def test_a_repeated_link_request_that_finds_its_own_link_is_a_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.link

    def link_twice(source: str, target: str) -> None:
        real(source, target)
        raise FileExistsError(errno.EEXIST, "File exists")

    monkeypatch.setattr(os, "link", link_twice)
    assert LocalFileIO().create_if_absent(str(tmp_path / "snapshot-1"), b"x") is True


def test_missing_files_and_directories(tmp_path: Path) -> None:
    file_io = LocalFileIO()
    missing = str(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        file_io.read(missing)
    with pytest.raises(FileNotFoundError):
        file_io.size(missing)
    assert not file_io.exists(missing)
    assert file_io.list(missing) == []
    file_io.delete(missing)
    file_io.delete_dir(missing)
    file_io.mkdirs(missing)
    file_io.mkdirs(missing)
    assert file_io.exists(missing)
    file_io.write(str(tmp_path / "none" / "f"), b"")
    file_io.delete_dir(missing)
    assert not file_io.exists(missing)


def test_it_travels_to_tasks_and_names_the_arrow_file_system() -> None:
    copy = pickle.loads(pickle.dumps(LocalFileIO()))
    assert isinstance(copy.filesystem(), arrow_fs.LocalFileSystem)


def _race(folder: str, who: int, rounds: int, wins: multiprocessing.Queue[list[tuple[int, int]]]) -> None:
    file_io = LocalFileIO()
    mine = [(i, who) for i in range(rounds) if file_io.create_if_absent(f"{folder}/f-{i}", b"%d" % who)]
    wins.put(mine)


def test_of_racing_processes_exactly_one_creates_each_file(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    wins: multiprocessing.Queue[list[tuple[int, int]]] = context.Queue()
    workers = [context.Process(target=_race, args=(str(tmp_path), who, 40, wins)) for who in range(3)]
    for worker in workers:
        worker.start()
    results = [pair for _ in workers for pair in wins.get(timeout=60)]
    for worker in workers:
        worker.join(60)
    assert sorted(i for i, _ in results) == list(range(40))
    for i, who in results:
        assert (tmp_path / f"f-{i}").read_bytes() == b"%d" % who
