"""The lookup files of a cache: stores made of data files when these are first touched, kept within bounds.

Whatever happens to one, it is made again from its data file. Where the table has 'sort' stores, one that Paimon made
beside the data file is copied instead, unless something was wrong with it. A file can be removed while its store is
searched, as the system keeps what is open: a store that is dropped closes with the last reference to it.
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

#: The most that reading one data file may hold, in bytes.
_BUILD_MEMORY = 64 << 20
#: Files that are used at a time for each core, so that a lookup of many keeps to the disk space.
_WAVE = 4


@dataclass
class _OpenFile:
    """An open store: its ``name`` in the directory, the ``path`` of its data file, and when it was ``used`` last."""

    store: LookupStore
    name: str
    path: str
    used: float


class LookupFiles:
    """The stores of a lookup's data files, by their names in a directory. Several threads may use it.

    ``environment`` measure how long a file was not used.
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
        #: What the names of all lookup files of the table begin with.
        self._table_digest = blake2b(spec.store.paths.branch_root.encode(), digest_size=8).hexdigest() + "-"
        self._lock = threading.Lock()
        self._open: OrderedDict[str, _OpenFile] = OrderedDict()  # Those not used for longest come first.
        self._names: dict[str, str] = {}
        self._grown = threading.Event()
        self._closed = False

    @property
    def disk_bytes(self) -> int:
        """What the files take that are in use."""
        with self._lock:
            return self._size()

    def name_of(self, file: RunFile) -> str:
        """The name of a data file's store in the directory. It begins with a fingerprint of the table."""
        known = self._names.get(file.path)
        if known is None:
            copied = self._remote(file) is not None
            kind = "lookup" if copied else self.spec.store.options.lookup_local_file_type.value
            known = self._names[file.path] = f"{self._table_digest}{self.stored.layout(file).digest.hex()}.{kind}"
        return known

    def find(self, requests: Sequence[tuple[RunFile, pa.Table]]) -> list[FoundRows]:
        """Return what each data file has of some keys.

        A store that is missing is made, one that is damaged is made again, with a warning. Raises CorruptStoreError where
        that one is damaged too, CorruptTableError for a damaged data file, StorageError where the disk is full.
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
        """The row of one key in a data file, as `LookupStore.find_plain` returns it; None if `find` must be called.

        `find` builds stores that are missing or damaged.
        """
        one = self._used(self.name_of(file))
        try:
            return None if one is None else one.store.find_plain(key)
        except CorruptStoreError:
            return None

    def keep_only(self, live: Collection[RunFile]) -> None:
        """Drop the files of all other data files, and those that have not been used for long."""
        paths = {file.path for file in live}
        with self._lock:
            unused = [one for one in self._open.values() if one.path not in paths]
            for path in {*self._names} - paths:
                del self._names[path]
        self._drop(unused)
        self._drop_beyond_limits()
        self._remove_unused()

    def close(self) -> None:
        """Close all files, each when no search uses it. They stay in the directory, where others may use them."""
        with self._lock:
            self._closed = True
            self._open.clear()

    def _opened(self, files: Sequence[RunFile], runner: LocalRunner, *, copies: bool = True) -> list[_OpenFile]:
        """The open stores of some data files; ``copies``: made of files beside these, too."""
        names = [self.name_of(file) for file in files]
        opened = [self._used(name) for name in names]
        missing = {name: file for name, file, one in zip(names, files, opened) if one is None}
        if missing:
            self._build(missing, runner, copies=copies)
        return [one or self._open_store(name, file, runner) for name, file, one in zip(names, files, opened)]

    def _used(self, name: str) -> _OpenFile | None:
        """An open store, which is used now."""
        with self._lock:
            one = self._open.get(name)
            if one is not None:
                self._open.move_to_end(name)
                one.used = self._environment.monotonic()
            return one

    def _remote(self, file: RunFile) -> RemoteLookupFile | None:
        """The lookup file beside a data file that may stand for its store."""
        remote = RemoteLookupFile.among(file.name, file.extra_files)
        if remote is None or file.expected is None or self._format.copied_blocks is None:
            return None
        store = self.spec.store
        written = store.schemas_of([file.schema_id])[file.schema_id]
        return remote if remote.serves(self.stored.layout(file), written, store.schema) else None

    def _build(self, wanted: dict[str, RunFile], runner: LocalRunner, *, copies: bool) -> None:
        """Make the stores that the directory lacks, several at a time, while other processes wait for them."""
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
                raise AssertionError("a build yields nothing")

    def _open_store(self, name: str, file: RunFile, runner: LocalRunner) -> _OpenFile:
        """Open a file of the directory that was there a moment ago; made again where it cannot be opened."""
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
        """Open what the directory has for a data file: a copy of the lookup file beside it, or what was made of it."""
        path, layout = self._directory.file(name), self.stored.layout(file)
        remote, blocks = self._remote(file), self._format.copied_blocks
        if remote is not None and file.expected is not None and blocks is not None:
            reader = SortFileReader(path, blocks)
            if not reader.has_digest:
                return remote.store(reader, layout, self.spec.store.schema, file.expected)
            reader.close()
        return self._format.open(path, layout)

    def _size(self) -> int:
        """What the open files take; the lock is held."""
        return sum(one.store.disk_bytes for one in self._open.values())

    def _drop_beyond_limits(self) -> None:
        """Drop files that have not been used for long, and as many more as the limit of disk space requires."""
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
        """Remove files, and forget their stores."""
        with self._lock:
            dropped = [one for one in files if self._open.get(one.name) is one]
            for one in dropped:
                del self._open[one.name]
        for one in dropped:
            self._directory.discard(one.name)
