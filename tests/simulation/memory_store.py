"""The files of a simulated store, and the FileIO of one actor.

Each operation takes effect in one step, which the scheduler chooses. The store reports each change to its ``watch``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from pyarrow import fs as arrow_fs

from lakelsm.storage.file_io import FileEntry


class Watch(Protocol):
    """Receives each change right after it took effect."""

    def created(self, path: str, data: bytes, before: bytes | None) -> None:
        """A file got new content. ``before`` is its old content."""

    def deleted(self, path: str, data: bytes) -> None:
        """A file with this content was deleted."""


class MemoryStore:
    """Paths with contents and times. ``keeps_directories``: empty directories stay, as on POSIX."""

    def __init__(self, clock: Callable[[], int], keeps_directories: bool) -> None:
        self.files: dict[str, bytes] = {}
        self.modified: dict[str, int] = {}
        self.children: dict[str, dict[str, None]] = {}
        self.watch: Watch | None = None
        self._clock = clock
        self._keeps_directories = keeps_directories

    def put(self, path: str, data: bytes) -> None:
        """Create or replace a file."""
        before = self.files.get(path)
        self.files[path] = data
        self.modified[path] = self._clock()
        if before is None:
            self.make_directory_of(path)
        if self.watch is not None:
            self.watch.created(path, data, before)

    def remove(self, path: str) -> None:
        """Delete a file if it exists."""
        data = self.files.pop(path, None)
        if data is None:
            return
        del self.modified[path]
        folder, _, name = path.rpartition("/")
        del self.children[folder][name]
        if not self._keeps_directories:
            self._drop_empty(folder)
        if self.watch is not None:
            self.watch.deleted(path, data)

    def make_directory_of(self, path: str) -> None:
        """Add a path to its directory, and create the directories above it."""
        folder, _, name = path.rpartition("/")
        while True:
            names = self.children.get(folder)
            if names is not None:
                names[name] = None
                return
            self.children[folder] = {name: None}
            if not folder:
                return
            folder, _, name = folder.rpartition("/")

    def remove_empty(self, folder: str) -> None:
        """Delete a directory if it is empty."""
        if folder in self.children and not self.children[folder]:
            del self.children[folder]
            above, _, name = folder.rpartition("/")
            self.children[above].pop(name, None)

    def _drop_empty(self, folder: str) -> None:
        while folder and not self.children.get(folder, {"": None}):
            self.remove_empty(folder)
            folder = folder.rpartition("/")[0]


class Gate(Protocol):
    """Decides when an operation takes effect, and whether it does."""

    def passes(self, kind: str, path: str, land: Callable[[], object]) -> None:
        """Return when the operation is to take effect. Raise if it does not, or if its answer is lost after the effect.

        ``land`` runs the operation, for operations without an answer.
        """

    def chance(self) -> float:
        """Return a number in [0, 1) of the schedule."""


class ActorFiles:
    """FileIO of one actor."""

    def __init__(self, store: MemoryStore, gate: Gate) -> None:
        self._store = store
        self._gate = gate

    def within(self, root: str) -> ActorFiles:
        return self

    def uncached(self) -> ActorFiles:
        return self

    def read(self, path: str, limit: int | None = None) -> bytes:
        self._gate.passes("read", path, _nothing)
        try:
            return self._store.files[path]
        except KeyError:
            raise FileNotFoundError(path) from None

    def check_file(self, path: str) -> None:
        return

    def check_directory(self, path: str) -> None:
        return

    def size(self, path: str) -> int:
        return len(self.read(path))

    def exists(self, path: str) -> bool:
        self._gate.passes("read", path, _nothing)
        return path in self._store.files or path in self._store.children

    def list(self, path: str) -> list[str]:
        """List a directory. It takes a while: concurrently created or deleted files may be in the list or not."""
        self._gate.passes("list", path, _nothing)
        first = list(self._store.children.get(path, ()))
        self._gate.passes("list", path, _nothing)
        now = self._store.children.get(path, {})
        found = [name for name in first if name in now or self._gate.chance() < 0.5]
        if len(now) != len(first) or len(found) != len(first):
            known = set(first)
            found += [name for name in now if name not in known and self._gate.chance() < 0.5]
        return found

    def entries(self, path: str) -> Sequence[FileEntry]:
        store, found = self._store, []
        for name in self.list(path):
            child = f"{path}/{name}"
            if child in store.files:
                found.append(FileEntry(name, False, len(store.files[child]), store.modified[child]))
            elif child in store.children:
                found.append(FileEntry(name, True))
        return found

    def write(self, path: str, data: bytes, durable: bool = True) -> None:
        def land() -> None:
            self._store.put(path, data)

        self._gate.passes("write", path, land)
        land()

    def make_durable(self, directory: str, names: Sequence[str]) -> None:
        return

    def create_if_absent(self, path: str, data: bytes) -> bool:
        def land() -> None:
            if path not in self._store.files:
                self._store.put(path, data)

        self._gate.passes("create", path, land)
        free = path not in self._store.files
        land()
        return free

    def delete(self, path: str) -> None:
        def land() -> None:
            self._store.remove(path)

        self._gate.passes("delete", path, land)
        land()

    def delete_files(self, paths: Sequence[str]) -> None:
        """Delete files in any order, like concurrent requests."""
        failure: Exception | None = None
        for path in sorted(paths, key=lambda path: self._gate.chance()):
            try:
                self.delete(path)
            except OSError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def delete_dir(self, path: str, last: str | None = None) -> None:
        """Delete a directory file by file, in any order."""
        for child in sorted(self._store.children.get(path, ()), key=lambda child: self._gate.chance()):
            if f"{path}/{child}" in self._store.children:
                self.delete_dir(f"{path}/{child}")
            else:
                self.delete(f"{path}/{child}")
        self.delete_empty_dir(path)

    def delete_empty_dir(self, path: str) -> bool:
        def land() -> None:
            self._store.remove_empty(path)

        self._gate.passes("delete", path, land)
        is_there = path in self._store.children
        land()
        return is_there and path not in self._store.children

    def mkdirs(self, path: str) -> None:
        self._gate.passes("write", path, _nothing)
        self._store.make_directory_of(f"{path}/.")
        self._store.children[path].pop(".", None)

    def filesystem(self) -> arrow_fs.FileSystem:
        raise NotImplementedError("simulated rows are not in Parquet files")


def _nothing() -> None:
    """A read of the store, which changes nothing."""


class OpenGate:
    """Lets every operation take effect immediately. The checks use it."""

    def passes(self, kind: str, path: str, land: Callable[[], object]) -> None:
        return

    def chance(self) -> float:
        return 0.0
