"""Files of the local disk: LocalFileIO."""

from __future__ import annotations

import errno
import multiprocessing
import os
import pickle
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from pyarrow import fs as arrow_fs

from lakelsm.errors import CorruptTableError, InvalidInputError, StorageError, UnsupportedFeatureError
from lakelsm.storage import LocalFileIO
from tests.processes import CONTEXT, PATIENCE, ended, started


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


def test_a_file_instead_of_a_directory_is_refused_by_name(tmp_path: Path) -> None:
    taken = tmp_path / "schema"
    taken.write_bytes(b"")
    with pytest.raises(CorruptTableError, match=f"{taken} is not a directory"):
        LocalFileIO().mkdirs(str(taken))


def test_it_can_be_pickled_and_returns_the_arrow_file_system() -> None:
    copy = pickle.loads(pickle.dumps(LocalFileIO()))
    assert isinstance(copy.filesystem(), arrow_fs.LocalFileSystem)


def _race(folder: str, who: int, rounds: int, wins: multiprocessing.Queue[list[tuple[int, int]]]) -> None:
    file_io = LocalFileIO()
    mine = [(i, who) for i in range(rounds) if file_io.create_if_absent(f"{folder}/f-{i}", b"%d" % who)]
    wins.put(mine)


def test_of_racing_processes_exactly_one_creates_each_file(tmp_path: Path) -> None:
    wins: multiprocessing.Queue[list[tuple[int, int]]] = CONTEXT.Queue()
    workers = [started(_race, str(tmp_path), who, 40, wins) for who in range(3)]
    results = [pair for _ in workers for pair in wins.get(timeout=PATIENCE)]
    assert [ended(worker) for worker in workers] == [0] * 3
    assert sorted(i for i, _ in results) == list(range(40))
    for i, who in results:
        assert (tmp_path / f"f-{i}").read_bytes() == b"%d" % who


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


NO_FILES: dict[str, Callable[[Path], object]] = {
    "a directory": Path.mkdir,
    "a FIFO": lambda path: os.mkfifo(path),
    "a socket": _socket,
    "a device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("kind", NO_FILES)
def test_other_than_regular_files_are_refused_without_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)  # The path of a socket is short.
    NO_FILES[kind](Path("f"))
    for check in (LocalFileIO().read, LocalFileIO().check_file):
        with pytest.raises(CorruptTableError, match=f"/f is {kind} instead of a regular file"):
            check(str(tmp_path / "f"))


def test_a_file_above_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(CorruptTableError, match="has 1099511627776 bytes; a file of its kind has at most 10"):
        LocalFileIO().read(str(path), 10)
    path.write_bytes(b"0123456789")
    assert LocalFileIO().read(str(path), 10) == b"0123456789"


@pytest.mark.parametrize("name", ["loop", "file/below", "x" * 300])
def test_a_path_that_cannot_be_reached_is_a_typed_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").touch()
    with pytest.raises(CorruptTableError, match="cannot be reached"):
        LocalFileIO().read(str(tmp_path / name))


def test_a_file_instead_of_a_directory_is_not_listed_as_empty(tmp_path: Path) -> None:
    (tmp_path / "snapshot").touch()
    with pytest.raises(CorruptTableError, match="snapshot is not a directory"):
        LocalFileIO().list(str(tmp_path / "snapshot"))


class Linked:
    """A directory ``root`` with links: ``out`` and ``f-out`` lead out of it, ``in`` and ``f-in`` do not."""

    def __init__(self, folder: Path) -> None:
        self.outside = folder / "outside"
        self.root = folder / "root"
        for directory in (self.outside, self.root / "real"):
            directory.mkdir(parents=True)
            (directory / "f").write_bytes(b"content")
        for name, target in (("out", self.outside), ("in", self.root / "real")):
            (self.root / name).symlink_to(target)
            (self.root / f"f-{name}").symlink_to(target / "f")
        self.file_io = LocalFileIO().within(str(self.root))

    def path(self, name: str) -> str:
        return str(self.root / name)


OPERATIONS: dict[str, Callable[[Linked], object]] = {
    "read": lambda it: it.file_io.read(it.path("f-out")),
    "read below": lambda it: it.file_io.read(it.path("out/f")),
    "size": lambda it: it.file_io.size(it.path("out/f")),
    "list": lambda it: it.file_io.list(it.path("out")),
    "check a file": lambda it: it.file_io.check_file(it.path("f-out")),
    "check a directory": lambda it: it.file_io.check_directory(it.path("out/bucket-0")),
    "write": lambda it: it.file_io.write(it.path("out/g"), b"x"),
    "create": lambda it: it.file_io.create_if_absent(it.path("out/g"), b"x"),
    "make directories": lambda it: it.file_io.mkdirs(it.path("out/g/h")),
    "delete": lambda it: it.file_io.delete(it.path("out/f")),
    "delete a directory": lambda it: it.file_io.delete_dir(it.path("out")),
    "climb": lambda it: it.file_io.read(it.path("../outside/f")),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_no_operation_follows_a_link_out_of_the_root(tmp_path: Path, operation: str) -> None:
    linked = Linked(tmp_path)
    with pytest.raises(CorruptTableError, match="outside the table's directory"):
        OPERATIONS[operation](linked)
    assert {path.name: path.read_bytes() for path in linked.outside.iterdir()} == {"f": b"content"}


def test_links_inside_the_root_and_above_it_are_followed(tmp_path: Path) -> None:
    linked = Linked(tmp_path)
    (tmp_path / "warehouse").symlink_to(linked.root)
    for root in (linked.root, tmp_path / "warehouse"):
        file_io = LocalFileIO().within(str(root))
        for name in ("f-in", "in/f", "real/f"):
            file_io.check_file(f"{root}/{name}")
            assert file_io.read(f"{root}/{name}") == b"content"
        file_io.write(f"{root}/in/g", b"new")
        assert file_io.list(f"{root}/in") == os.listdir(linked.root / "real")


def test_replacing_and_deleting_a_link_leaves_its_target(tmp_path: Path) -> None:
    linked = Linked(tmp_path)
    linked.file_io.write(linked.path("f-out"), b"new")
    linked.file_io.delete(linked.path("out"))
    assert (linked.outside / "f").read_bytes() == b"content"
    assert Path(linked.path("f-out")).read_bytes() == b"new"


def test_deleting_a_directory_deletes_links_in_it_and_refuses_a_link_itself(tmp_path: Path) -> None:
    linked = Linked(tmp_path)
    (tmp_path / "link").symlink_to(linked.root)
    with pytest.raises(InvalidInputError, match="is a symbolic link to"):
        LocalFileIO().delete_dir(str(tmp_path / "link"))
    LocalFileIO().delete_dir(str(linked.root))
    assert not linked.root.exists()
    assert (linked.outside / "f").read_bytes() == b"content"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EMFILE, errno.EIO])
@pytest.mark.parametrize("call", ["open", "fsync", "replace"])
def test_a_write_that_the_system_refuses_raises_an_error_and_leaves_nothing(
    code: int, call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file_io, path = LocalFileIO(), str(tmp_path / "manifest-1")

    def refused(*arguments: object, **more: object) -> int:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, refused)
        with pytest.raises(StorageError) as raised:
            file_io.write(path, b"twelve bytes")
    message = str(raised.value)
    assert message.startswith(f"{path} cannot be written (12 bytes): {os.strerror(code)}")
    assert ("bytes are free there" in message) is (code in (errno.ENOSPC, errno.EDQUOT))
    assert message.endswith(", and run it again.")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_to_delete_a_temporary_file_does_not_hide_the_reason_of_the_failed_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    def broken(path: str) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setattr(os, "unlink", broken)
    with pytest.raises(StorageError, match="No space left"):
        LocalFileIO().create_if_absent(str(tmp_path / "snapshot-1"), b"{}")


def test_a_directory_is_deleted_only_if_it_is_empty_and_not_a_link(tmp_path: Path) -> None:
    empty, full, link = tmp_path / "empty", tmp_path / "full", tmp_path / "link"
    empty.mkdir()
    full.mkdir()
    (full / "file").touch()
    link.symlink_to(empty)
    file_io = LocalFileIO()
    deleted = {path.name: file_io.delete_empty_dir(str(path)) for path in (full, link, empty, tmp_path / "missing")}
    assert deleted == {"full": False, "link": False, "empty": True, "missing": False}
    assert {path.name for path in tmp_path.iterdir()} == {"full", "link"}


def test_the_last_directory_exists_until_all_others_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "schema", "z"):
        (tmp_path / "t" / name).mkdir(parents=True)
    seen: list[set[str]] = []
    real = shutil.rmtree

    def rmtree(path: str) -> None:
        seen.append({each.name for each in (tmp_path / "t").iterdir()})
        real(path)

    monkeypatch.setattr(shutil, "rmtree", rmtree)
    LocalFileIO().delete_dir(str(tmp_path / "t"), last="schema")
    assert len(seen) == 3 and seen[-1] == {"schema"} and not (tmp_path / "t").exists()


@pytest.mark.parametrize("call", ["unlink", "rmtree", "rmdir"])
def test_a_refused_deletion_raises_an_error_with_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "there"
    if call == "unlink":
        path.touch()
    else:
        path.mkdir()

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, "as the system says it", str(path))

    monkeypatch.setattr(shutil if call == "rmtree" else os, call, refuse)
    method = {"unlink": "delete", "rmtree": "delete_dir", "rmdir": "delete_empty_dir"}[call]
    with pytest.raises(StorageError, match=rf"{path} cannot be deleted: Read-only.*Mount the file system"):
        getattr(LocalFileIO(), method)(str(path))


def test_a_directory_instead_of_a_file_is_not_deleted(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()
    with pytest.raises(CorruptTableError, match=r"file is a directory instead of a regular file\. Delete it yourself"):
        LocalFileIO().delete_files([str(tmp_path / "file")])
    assert (tmp_path / "file").is_dir()
