"""Directories of caches: private ones are removed with their process, shared ones have locks and no partial files."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from lakelsm.errors import InvalidInputError, OutOfMemoryError, StorageError, UnsupportedFeatureError
from lakelsm.lookup import cache_directory
from lakelsm.lookup.cache_directory import CacheDirectory


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path



def test_a_private_directory_is_removed_when_it_is_closed(temporary: Path) -> None:
    directory = CacheDirectory.private()
    directory.publish("a", lambda path: path.write_text("x"))
    assert directory.names() == ["a"] and directory.path.parent == temporary
    directory.close()
    directory.close()
    assert list(temporary.iterdir()) == []


def test_a_private_directory_is_removed_with_its_last_reference(temporary: Path) -> None:
    directory = CacheDirectory.private()
    assert len(list(temporary.iterdir())) == 1
    del directory
    assert list(temporary.iterdir()) == []


_HOLDER = """
import sys, tempfile, time
from lakelsm.lookup.cache_directory import CacheDirectory
tempfile.tempdir = sys.argv[1]
directory = CacheDirectory.private()
print("made", flush=True)
time.sleep(600)
"""


def test_directories_of_killed_processes_are_removed_and_those_of_running_ones_are_not(temporary: Path) -> None:
    mine = CacheDirectory.private()
    holder = subprocess.Popen([sys.executable, "-c", _HOLDER, str(temporary)], stdout=subprocess.PIPE)
    assert holder.stdout is not None and holder.stdout.readline() == b"made\n"
    theirs = set(temporary.iterdir()) - {mine.path}
    CacheDirectory.private().close()
    assert set(temporary.iterdir()) == {mine.path} | theirs
    holder.kill()
    holder.communicate()
    CacheDirectory.private().close()
    assert set(temporary.iterdir()) == {mine.path}


def test_the_end_of_a_process_removes_its_private_directory(temporary: Path) -> None:
    program = _HOLDER.replace("time.sleep(600)", "")
    subprocess.run([sys.executable, "-c", program, str(temporary)], check=True, stdout=subprocess.DEVNULL)
    assert list(temporary.iterdir()) == []


def test_a_fork_does_not_remove_the_directory_of_its_parent() -> None:
    directory = CacheDirectory.private()
    child = os.fork()
    if child == 0:
        directory.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert directory.path.exists()


def test_a_file_is_published_whole_or_not_at_all(tmp_path: Path) -> None:
    directory = CacheDirectory.shared(tmp_path / "a" / "b")
    assert directory.publish("f", lambda path: path.write_text("one")) == 3

    def broken(path: Path) -> None:
        path.write_text("tw")
        raise KeyError("stopped")

    with pytest.raises(KeyError):
        directory.publish("f", broken)
    assert directory.file("f").read_text() == "one"
    assert [name for name in os.listdir(directory.path) if name.endswith(".tmp")] == []
    directory.discard("f")
    directory.discard("f")
    assert directory.names() == []
    directory.close()
    assert directory.path.exists()


def test_a_directory_with_the_name_of_a_file_is_replaced_and_the_target_of_a_link_stays(tmp_path: Path) -> None:
    directory = CacheDirectory.shared(tmp_path / "c")
    (tmp_path / "elsewhere").mkdir()
    for name in ("f", "g"):
        directory.file(name).mkdir()
        (directory.file(name) / "in it").write_text("")
    directory.file("link").symlink_to(tmp_path / "elsewhere")
    directory.publish("f", lambda path: path.write_text("x"))
    assert directory.file("f").read_text() == "x"
    for name in ("f", "g", "link"):
        directory.discard(name)
    assert directory.names() == [] and (tmp_path / "elsewhere").is_dir()


def test_a_full_disk_is_reported_with_the_file_and_the_remedy(tmp_path: Path) -> None:
    directory = CacheDirectory.shared(tmp_path / "c")

    def full(path: Path) -> None:
        path.write_text("part")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(StorageError, match=r"c/f cannot be written: No space left.*table is not affected\. Free space"):
        directory.publish("f", full)
    assert [name for name in os.listdir(directory.path) if name.endswith(".tmp")] == []


def test_a_missing_directory_is_reported(tmp_path: Path) -> None:
    directory = CacheDirectory.shared(tmp_path / "c")
    for path in directory.path.iterdir():
        path.unlink()
    directory.path.rmdir()
    with pytest.raises(StorageError, match=r"c/\.writers cannot be written: No such file"):
        directory.publish("f", lambda path: path.write_text("x"))
    with pytest.raises(StorageError, match=r"c/\.lock cannot be"), directory.lock():
        pass


def test_files_and_dangling_links_are_not_shared_directories(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(InvalidInputError, match="link is not a directory"):
        CacheDirectory.shared(tmp_path / "link")
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "c"):
        with pytest.raises(InvalidInputError, match="file is not a directory"):
            CacheDirectory.shared(path)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(StorageError, match="Too many levels of symbolic links"):
        CacheDirectory.shared(tmp_path / "loop" / "c")


@pytest.mark.parametrize("owned", ["a", "a/b", "a/b/c", "link", "real"])
def test_directories_and_links_on_the_path_of_a_shared_directory_must_not_belong_to_another_user(
    owned: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path.resolve()
    for path in ("a/b/c", "real/b/c"):
        (root / path).mkdir(parents=True)
    (root / "link").symlink_to("real")
    paths = [root / "a/b/c", root / "a/../link/b/c"]
    for path in paths:
        assert CacheDirectory.shared(path).path == path.resolve()
    _give_away(monkeypatch, root / owned, 4711)
    refused = {path for path in paths if f"/{owned}/" in f"{path}/{path.resolve()}/"}
    assert refused
    for path in refused:
        with pytest.raises(InvalidInputError, match=rf"/{owned} belongs to another user \(uid 4711\).*change its owner"):
            CacheDirectory.shared(path)
    _give_away(monkeypatch, root / owned, 0)
    for path in paths:
        CacheDirectory.shared(path)


def _give_away(monkeypatch: pytest.MonkeyPatch, given: Path, user: int) -> None:
    """Only root can change owners, so the call of the system is replaced to return another owner."""
    real = os.lstat

    def shown(path: Path) -> os.stat_result:
        status = real(path)
        return os.stat_result((*status[:4], user, *status[5:10])) if Path(path) == given else status

    monkeypatch.setattr(os, "lstat", shown)


@pytest.mark.parametrize(("mode", "above", "last"), [(0o775, 0, 0), (0o757, 0, 0), (0o1777, 1, 0), (0o755, 1, 1)])
def test_other_users_can_write_to_no_directory_on_the_path_except_a_sticky_one(
    mode: int, above: bool, last: bool, tmp_path: Path
) -> None:
    for is_accepted, open_one, path in ((above, "a", "a/b/c"), (above, "a", "a/new"), (last, "d", "d")):
        (tmp_path / open_one).mkdir(exist_ok=True)
        (tmp_path / open_one).chmod(mode)
        if is_accepted:
            CacheDirectory.shared(tmp_path / path)
            continue
        with pytest.raises(InvalidInputError, match=rf"/{open_one} can be written.*'chmod go-w {tmp_path}/{open_one}'"):
            CacheDirectory.shared(tmp_path / path)
        (tmp_path / open_one).chmod(mode & 0o755)
        CacheDirectory.shared(tmp_path / path)


def test_directories_created_for_a_shared_one_are_private_to_the_user_with_any_umask(tmp_path: Path) -> None:
    before = os.umask(0o002)
    try:
        CacheDirectory.shared(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(before)
    assert [(tmp_path / path).stat().st_mode & 0o777 for path in ("a", "a/b", "a/b/c")] == [0o700] * 3
    CacheDirectory.shared(tmp_path / "a" / "b" / "c")


def _count(path: Path, times: int) -> None:
    directory = CacheDirectory.shared(path)
    for _ in range(times):
        with directory.lock():
            counter = directory.file("counter")
            before = int(counter.read_text()) if counter.exists() else 0
            directory.publish("counter", lambda path, now=before + 1: path.write_text(str(now)))


def test_the_lock_excludes_threads_and_processes(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    processes = [multiprocessing.get_context("fork").Process(target=_count, args=(shared, 50)) for _ in range(2)]
    for process in processes:
        process.start()
    threads = [threading.Thread(target=_count, args=(shared, 50)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for worker in (*threads, *processes):
        worker.join()
    assert (shared / "counter").read_text() == "250"


_WRITER = """
import os, sys, signal
from pathlib import Path
from lakelsm.lookup.cache_directory import CacheDirectory
directory = CacheDirectory.shared(Path(sys.argv[1]))
def write(path):
    path.write_text("part")
    print("writing", flush=True)
    sys.stdin.readline()
with directory.lock():
    directory.publish("f", write)
"""


def test_a_killed_writer_leaves_no_lock_and_its_file_is_removed_when_no_process_writes(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    writer = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(shared)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert writer.stdout is not None and writer.stdout.readline() == b"writing\n"
    CacheDirectory.shared(shared)
    assert [name for name in os.listdir(shared) if name.endswith(".tmp")], "the file is being written"
    writer.send_signal(signal.SIGKILL)
    writer.communicate()
    directory = CacheDirectory.shared(shared)
    assert [name for name in os.listdir(shared) if name.endswith(".tmp")] == [] and directory.names() == []
    with directory.lock():
        pass


def test_a_directory_in_memory_has_a_maximum_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = CacheDirectory.in_memory(10)
    assert directory.path.parent == Path("/dev/shm")
    directory.publish("a", lambda path: path.write_text("x" * 10))
    directory.file("gone").symlink_to("gone since")
    directory.check_space()
    directory.publish("b", lambda path: path.write_text("x"))
    with pytest.raises(OutOfMemoryError, match=r"11 bytes in memory, and 'lookup\.cache-max-memory-size' allows 10"):
        directory.check_space()
    directory.close()
    assert not directory.path.exists()
    CacheDirectory.private().check_space()
    monkeypatch.setattr(cache_directory, "_MEMORY", tmp_path / "none")
    with pytest.raises(UnsupportedFeatureError, match="Set it to 'full'"):
        CacheDirectory.in_memory(10)
