"""The lookup files of a cache: stores that are built when their data files are first needed, within size limits.

A store can always be built again from its data file. For 'sort' stores, a lookup file that Paimon wrote beside the
data file is copied instead, unless it is damaged. A store's file can be removed while it is searched, because the
system keeps open files: a dropped store is closed with the last reference to it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import pyarrow as pa

from lakelsm.environment import SYSTEM, Environment
from lakelsm.errors import CorruptStoreError
from lakelsm.lookup.cache import FoundRows, LookupSpec
from lakelsm.lookup.cache_directory import CacheDirectory
from lakelsm.lookup.partial.remote_lookup_file import RemoteLookupFile
from lakelsm.lookup.partial.store_build import StoreBuild, StoredColumns, warn_of_rebuild
from lakelsm.lookup.store.lookup_store import LookupStore, StoreFormat
from lakelsm.lookup.store.sort_reader import SortFileReader
from lakelsm.merge.merge_unit import RunFile
from lakelsm.runner.local_runner import LocalRunner

#: Maximum memory for reading one data file, in bytes.
_BUILD_MEMORY = 64 << 20
#: Files that are used at a time for each core, so that a lookup of many files stays within the disk space.
_WAVE = 4


@dataclass
class _OpenFile:
    """An open store: its ``name`` in the directory, the ``path`` of its data file, and the time of its last use."""

    store: LookupStore
    name: str
    path: str
    used: float


class LookupFiles:
    """The stores of a lookup's data files, by their names in a directory. Several threads may use it.

    ``environment`` measures how long a file was not used.
    """

    def __init__(
        self,
        spec: LookupSpec,
        stored: StoredColumns,
        *,
        format: StoreFormat,
        directory: CacheDirectory,
        environment: Environment = SYSTEM,
    ) -> None:
        self.spec = spec
        self.stored = stored
        self._format = format
        self._directory = directory
        self._environment = environment
        #: The prefix of the names of all lookup files of the table.
        self._table_digest = blake2b(spec.store.paths.branch_root.encode(), digest_size=8).hexdigest() + "-"
        self._lock = threading.Lock()
        self._open: OrderedDict[str, _OpenFile] = OrderedDict()  # Least recently used first.
        self._names: dict[str, str] = {}
        self._grown = threading.Event()
        self._closed = False

    @property
    def disk_bytes(self) -> int:
        """The size of the open stores, in bytes."""
        with self._lock:
            return self._size()

    def name_of(self, file: RunFile) -> str:
        """Return the name of a data file's store in the directory. It begins with a digest of the table's location."""
        known = self._names.get(file.path)
        if known is None:
            copied = self._remote(file) is not None
            kind = "lookup" if copied else self.spec.store.options.lookup_local_file_type.value
            known = self._names[file.path] = f"{self._table_digest}{self.stored.layout(file).digest.hex()}.{kind}"
        return known

    def find(self, requests: Sequence[tuple[RunFile, pa.Table]]) -> list[FoundRows]:
        """Return the rows that each data file has of some keys.

        Missing stores are built; damaged ones are built again, with a warning. Raises CorruptStoreError if a new store is
        damaged too, CorruptTableError for a damaged data file, StorageError if the disk is full.
        """
        found: list[FoundRows] = []
        runner = LocalRunner(memory=self.spec.store.options.lookup_cache_max_memory_size)
        wave = _WAVE * runner.cores
        for first in range(0, len(requests), wave):
            some = requests[first : first + wave]
            for (file, keys), one in zip(some, self._opened([file for file, _ in some], runner)):
                try:
                    found.append(one.store.find(keys))
                except CorruptStoreError as error:
                    warn_of_rebuild(self.spec, file, error)
                    self._drop([one])
                    (again,) = self._opened([file], runner, copies=False)
                    found.append(again.store.find(keys))
            if self._grown.is_set():
                self._grown.clear()
                self._drop_beyond_limits()
        return found

    def find_plain(self, file: RunFile, key: tuple[Any, ...]) -> list[tuple[Any, ...]] | None:
        """Return the row of one key in a data file, as `LookupStore.find_plain` does; None if `find` must be called.

        `find` builds stores that are missing or damaged.
        """
        one = self._used(self.name_of(file))
        try:
            return None if one is None else one.store.find_plain(key)
        except CorruptStoreError:
            return None

    def keep_only(self, live: Collection[RunFile]) -> None:
        """Drop the stores of all other data files, and those that have not been used for the retention time."""
        paths = {file.path for file in live}
        with self._lock:
            unused = [one for one in self._open.values() if one.path not in paths]
            for path in {*self._names} - paths:
                del self._names[path]
        self._drop(unused)
        self._drop_beyond_limits()
        self._remove_unused()

    def close(self) -> None:
        """Close all stores, each when no search uses it. The files remain, because others may use them."""
        with self._lock:
            self._closed = True
            self._open.clear()

    def _opened(self, files: Sequence[RunFile], runner: LocalRunner, *, copies: bool = True) -> list[_OpenFile]:
        """Return the open stores of some data files; ``copies``: copies of files beside these are allowed."""
        names = [self.name_of(file) for file in files]
        opened = [self._used(name) for name in names]
        missing = {name: file for name, file, one in zip(names, files, opened) if one is None}
        if missing:
            self._build(missing, runner, copies=copies)
        return [one or self._open_store(name, file, runner) for name, file, one in zip(names, files, opened)]

    def _used(self, name: str) -> _OpenFile | None:
        """Return an open store, and note that it is used now."""
        with self._lock:
            one = self._open.get(name)
            if one is not None:
                self._open.move_to_end(name)
                one.used = self._environment.monotonic()
            return one

    def _remote(self, file: RunFile) -> RemoteLookupFile | None:
        """Return the lookup file beside a data file that can replace its store, or None."""
        remote = RemoteLookupFile.among(file.name, file.extra_files)
        if remote is None or file.expected is None or self._format.copied_blocks is None:
            return None
        store = self.spec.store
        written = store.schemas_of([file.schema_id])[file.schema_id]
        return remote if remote.serves(self.stored.layout(file), written, store.schema) else None

    def _build(self, wanted: dict[str, RunFile], runner: LocalRunner, *, copies: bool) -> None:
        """Build the stores that the directory lacks, in parallel. Other processes wait for them."""
        with self._directory.lock():
            missing = {file: name for name, file in wanted.items() if not self._directory.file(name).exists()}
            if not missing:
                return
            store = self.spec.store
            build = StoreBuild(
                self.spec,
                self.stored,
                format=self._format,
                directory=self._directory,
                names=missing,
                schemas=store.schemas_of(file.schema_id for file in missing),
                memory_bytes=min(_BUILD_MEMORY, store.options.lookup_cache_max_memory_size),
                remote={file: found for file in missing if copies and (found := self._remote(file)) is not None},
            )
            for _ in runner.batches([*missing], build, pa.schema([]), store.paths):
                raise AssertionError("the build of a store yielded a batch")

    def _open_store(self, name: str, file: RunFile, runner: LocalRunner) -> _OpenFile:
        """Open a store of the directory; build it again if it cannot be opened."""
        try:
            store = self._store(name, file)
        except CorruptStoreError as error:
            warn_of_rebuild(self.spec, file, error)
            self._directory.discard(name)
            self._build({name: file}, runner, copies=False)
            store = self._store(name, file)
        one = _OpenFile(store, name, file.path, self._environment.monotonic())
        self._grown.set()
        with self._lock:
            return one if self._closed else self._open.setdefault(name, one)

    def _store(self, name: str, file: RunFile) -> LookupStore:
        """Open the file of a data file's store: a copy of the lookup file beside it, or a store built from it."""
        path, layout = self._directory.file(name), self.stored.layout(file)
        remote, blocks = self._remote(file), self._format.copied_blocks
        if remote is not None and file.expected is not None and blocks is not None:
            reader = SortFileReader(path, blocks)
            if not reader.has_digest:
                return remote.store(reader, layout, self.spec.store.schema, file.expected)
            reader.close()
        return self._format.open(path, layout)

    def _size(self) -> int:
        """Return the size of the open stores, in bytes; the caller has the lock."""
        return sum(one.store.disk_bytes for one in self._open.values())

    def _drop_beyond_limits(self) -> None:
        """Drop stores past the retention time, and the least recently used ones while they exceed the disk space."""
        options = self.spec.store.options
        oldest = self._environment.monotonic() - options.lookup_cache_file_retention / 1000
        with self._lock:
            size = self._size()
            unused = []
            for one in self._open.values():
                if size <= options.lookup_cache_max_disk_size and one.used >= oldest:
                    break
                unused.append(one)
                size -= one.store.disk_bytes
        self._drop(unused)

    def _remove_unused(self) -> None:
        """Remove old files of the table that are not open here: those of ended processes, in a shared directory.

        A process that has one open can still read it; one that opens it later builds it again.
        """
        oldest = self._environment.clock() / 1000 - self.spec.store.options.lookup_cache_file_retention / 1000
        with self._lock:
            known = {*self._open}
        for name in self._directory.names():
            if name.startswith(self._table_digest) and name not in known:
                with suppress(FileNotFoundError):
                    if self._directory.file(name).stat().st_mtime < oldest:
                        self._directory.discard(name)

    def _drop(self, files: Sequence[_OpenFile]) -> None:
        """Remove stores and their files."""
        with self._lock:
            dropped = [one for one in files if self._open.get(one.name) is one]
            for one in dropped:
                del self._open[one.name]
        for one in dropped:
            self._directory.discard(one.name)
