"""Objects of a bucket as lakelsm's files: S3, Google Cloud Storage and Azure, through obstore.

Paths are whole URIs ('s3://bucket/warehouse/db.db/t/schema/schema-0'). Directories are what keys have in common: none is
made, and an empty one does not exist. What is written is durable once the store has answered.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from pyarrow import fs as arrow_fs

from lakelsm.cancellation import end_if_cancelled
from lakelsm.errors import (
    CorruptTableError,
    InvalidInputError,
    LakelsmError,
    StorageUnavailableError,
    UnsupportedFeatureError,
)
from lakelsm.operation_log import log_step
from lakelsm.storage.file_io import FileEntry
from lakelsm.storage.kept_objects import KeptObjects
from lakelsm.storage.local import temporary_name
from lakelsm.storage.object_filesystem import object_filesystem
from lakelsm.storage.object_place import ObjectPlace, ObjectStoreKind
from lakelsm.storage.storage_options import StoreOptions
from lakelsm.storage.store_failures import RETRIES, OpenOutcomeError, is_certain, told, waits
from lakelsm.surroundings import SYSTEM

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore

_LOG = logging.getLogger("lakelsm.storage")

Answer = TypeVar("Answer")

#: Within the class below, `list` is its method.
_Keys: TypeAlias = list[str]
_Failures: TypeAlias = list[OSError]

#: What the library itself sends again. Of most requests nothing: `ObjectFileIO.ask` does, also where an answer is cut.
_ASKED_ONCE = {"max_retries": 0, "retry_timeout": timedelta(seconds=60)}
#: Parts of long files and creations, which cannot be sent again from here. The library's waits are random.
_ASKED_AGAIN = {
    "max_retries": RETRIES,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {"init_backoff": timedelta(milliseconds=500), "max_backoff": timedelta(seconds=8), "base": 2},
}
_TIMEOUTS = {"connect_timeout": timedelta(seconds=5), "timeout": timedelta(minutes=2)}
#: How long an answer may stop; long contents take that long to be sent.
_SILENCE = {"read_timeout": timedelta(seconds=30)}
#: Larger contents are sent in parts.
_ONE_REQUEST = 8 << 20
#: Keys that S3 deletes by one request.
_DELETED_AT_ONCE = 1000
#: What stores say that do not know the condition.
_NOT_BUILT = ("status code: 501", "NotImplemented")


@dataclass(frozen=True)
class ObjectFileIO:
    """FileIO on the objects of one bucket. In a task it opens the store again from its options."""

    place: ObjectPlace
    options: StoreOptions = field(repr=False)
    root: str | None = None
    #: Whether what never changes may come from this process's memory.
    keeps: bool = True

    def fresh(self) -> ObjectFileIO:
        """Return the same storage, of which nothing is kept in memory."""
        return replace(self, keeps=False)

    def within(self, root: str) -> ObjectFileIO:
        """Return the same storage, kept to the keys below ``root``."""
        return replace(self, root=root)

    def read(self, path: str, limit: int | None = None) -> bytes:
        """Return the content of an object of at most ``limit`` bytes. Raises FileNotFoundError when there is none.

        Manifests and index files of a table come from memory where this process has had them: no name of theirs is used
        twice.
        """
        key = self.key(path)
        kept = KEPT.get(self._named(path)) if self.keeps else None
        if kept is not None and (limit is None or len(kept) <= limit):
            return kept

        def content() -> bytes:
            answer = self.store.get(key)
            size = answer.meta["size"]
            if limit is not None and size > limit:
                raise CorruptTableError(
                    f"{path} has {size} bytes, and a file of its kind has {limit} at most: restore the file."
                )
            return bytes(answer.bytes())

        data = self.ask(path, content)
        self._keep(path, data)
        return data

    def check_file(self, path: str) -> None:
        """Raise CorruptTableError where the path leads out of the root; an object is always a regular file."""
        self.key(path)

    def check_directory(self, path: str) -> None:
        """Raise CorruptTableError where files in the directory would leave the root."""
        self.key(path)

    def size(self, path: str) -> int:
        """Return the size of an object in bytes. Raises FileNotFoundError when it does not exist."""
        key = self.key(path)
        size: int = self.ask(path, lambda: self.store.head(key))["size"]
        return size

    def exists(self, path: str) -> bool:
        """Tell whether an object exists at the path: there are no directories."""
        try:
            self.size(path)
        except FileNotFoundError:
            return False
        return True

    def list(self, path: str) -> list[str]:
        """Return the names of what lies directly below a path, unsorted."""
        return [entry.name for entry in self.entries(path)]

    def entries(self, path: str) -> Sequence[FileEntry]:
        """Return what lies directly below a path, unsorted; what keys have in common there counts as a directory."""
        key = self.key(path)
        found = self.ask(path, lambda: self.store.list_with_delimiter(key or None))
        directories = [FileEntry(_name(prefix), is_directory=True) for prefix in found["common_prefixes"]]
        files = [
            FileEntry(_name(each["path"]), False, each["size"], int(each["last_modified"].timestamp() * 1000))
            for each in found["objects"]
        ]
        return directories + [file for file in files if file.name]

    def directories(self, path: str) -> Sequence[str]:
        """Return what keys have in common directly below a path, unsorted."""
        return [entry.name for entry in self.entries(path) if entry.is_directory]

    def write(self, path: str, data: bytes, durable: bool = True) -> None:
        """Create or replace an object: a reader sees the old content or the new."""
        key = self.key(path)
        self.forget(path)
        if len(data) > _ONE_REQUEST:
            self.ask(path, lambda: self.patient_store.put(key, data, use_multipart=True), again=False)
        else:
            self.ask(path, lambda: self.store.put(key, data, use_multipart=False))
        self._keep(path, data)

    def make_durable(self, directory: str, names: Sequence[str]) -> None:
        """Do nothing: what the store has answered for is durable."""

    def create_if_absent(self, path: str, data: bytes) -> bool:
        """Create an object if the key is free (`If-None-Match: *`). Returns False when it is taken.

        The library sends a request again whose answer is lost: False can mean an earlier one of this very call, so
        callers compare. Raises UnsupportedFeatureError on a store that ignores or does not know the condition; an
        endpoint of the user's own proves on a spare object, once a process, that it keeps it. Raises StorageError where
        it is certain that nothing was created, and another OSError where it is not.
        """
        _prove_conditions(self, path)
        return self._create(path, data)

    def delete(self, path: str) -> None:
        """Delete an object; it is no error when it does not exist."""
        self.delete_files([path])

    def delete_files(self, paths: Sequence[str]) -> None:
        """Delete objects, many by one request where the store can. Each is tried; then the first failure is raised."""
        failures: list[OSError] = []
        for path in paths:
            self.forget(path)
        if len(paths) == 1:
            self._delete(self.key(paths[0]), paths[0], failures)
        else:
            for keys in _portions(map(self.key, paths)):
                self._delete(keys, f"{self.place.root}/{keys[0]}", failures)
        if failures:
            raise failures[0]

    def delete_dir(self, path: str, last: str | None = None) -> None:
        """Delete everything below a path, ``last`` at the end."""
        key = self.key(path)
        for first in (True, False) if last is not None else (False,):
            kept = f"{key}/{last}/" if first else None
            below = (each for each in self._keys_below(path, key) if kept is None or not each.startswith(kept))
            for keys in _portions(below):
                self.delete_files([f"{self.place.root}/{each}" for each in keys])

    def delete_empty_dir(self, path: str) -> bool:
        """Do nothing: there are no directories."""
        return False

    def rename_dir(self, path: str, target: str) -> bool:
        """Raise UnsupportedFeatureError: only a copy of every object could do it, which is not one step."""
        raise UnsupportedFeatureError(
            f"{path} is on an object store, which cannot rename a directory in one step: readers and writers would meet "
            "half of it. Copy the rows into a new table, then drop this one."
        )

    def mkdirs(self, path: str, durable: bool = True) -> None:
        """Do nothing: there are no directories."""

    def filesystem(self) -> arrow_fs.FileSystem:
        """Return an Arrow file system that takes the same URIs."""
        return object_filesystem(self)

    @property
    def store(self) -> ObjectStore:
        """The library's store, the same for all that ask for this place with these options in this process.

        It sends a request once. Raises as `patient_store`.
        """
        return self._opened(patient=False)

    @property
    def patient_store(self) -> ObjectStore:
        """The library's store that sends requests again by itself: for what `ask` cannot repeat.

        Raises UnsupportedFeatureError in a process that was forked from one that has asked a store: requests of the
        library are carried out by threads, which such a process has not, nor can begin, and would wait for ever.
        """
        return self._opened(patient=True)

    def key(self, path: str) -> str:
        """The key of a path. Raises CorruptTableError where it leaves the root."""
        is_inside = self.root is None or path == self.root or path.startswith(f"{self.root}/")
        if not is_inside or "/../" in f"{path}/":
            raise CorruptTableError(
                f"{path} lies outside of the table's directory {self.root}. lakelsm opens nothing there: restore the "
                "file that names it."
            )
        return self.place.key(path)

    def ask(self, path: str, request: Callable[[], Answer], *, again: bool = True) -> Answer:
        """Do what asks the store; what fails on the way or by the store's own fault is done again after waits.

        Errors are told in lakelsm's words: the library's own may hold credentials. ``again`` is False for what must not
        or cannot be repeated: a request that another answer can follow on.
        """
        waiting = waits(SYSTEM) if again else iter(())
        while True:
            try:
                return request()
            except LakelsmError:
                raise
            except _library_errors() as error:
                failure = told(path, self.place.bucket, error)
            wait = next(waiting, None) if isinstance(failure, StorageUnavailableError) else None
            if wait is None:
                raise failure
            log_step(_LOG, "%s: asked again in %.2f s: %s", path, wait, failure)
            SYSTEM.sleep(wait)
            end_if_cancelled()

    def _opened(self, *, patient: bool) -> ObjectStore:
        if _first_process() != os.getpid():
            raise UnsupportedFeatureError(
                f"{self.place.root}: this process ({os.getpid()}) was forked from one ({_first_process()}) that had used "
                "object stores, whose threads it lacks. Start processes by 'spawn' or 'forkserver' "
                "(multiprocessing.get_context), or fork before a table on an object store is opened."
            )
        try:
            return _opened_store(self.place, self.options, patient)
        except _library_errors():
            names = ", ".join(name for name, _ in self.options.settings) or "none"
        # Without what the library says: it may show what it was given.
        raise InvalidInputError(
            f"{self.place.root}: a store cannot be opened with these settings ({names}), whether they come from "
            "storage_options, the environment or Spark: one of them has no right form (docs/object-stores.md)."
        )

    def _create(self, path: str, data: bytes) -> bool:
        from obstore.exceptions import AlreadyExistsError

        key = self.key(path)
        try:
            self.patient_store.put(key, data, mode="create", use_multipart=False)
            return True
        except LakelsmError:
            raise
        except AlreadyExistsError:
            return False
        except _library_errors() as error:
            failure: Exception = told(path, self.place.bucket, error)
            if any(words in str(error) for words in _NOT_BUILT):
                failure = _no_conditions(self.place)
            elif not is_certain(error):
                failure = OpenOutcomeError(str(failure))
        raise failure

    def keep_end(self, path: str, size: int, end: bytes) -> None:
        """Keep the end of a data file of ``size`` bytes, which readers open several times."""
        KEPT.keep(self._named(f"{path}?"), size.to_bytes(8, "big") + end)

    def kept_end(self, path: str) -> tuple[int, bytes] | None:
        """The size and the end of a data file that this process has had."""
        kept = KEPT.get(self._named(f"{path}?")) if self.keeps else None
        return None if kept is None else (int.from_bytes(kept[:8], "big"), kept[8:])

    def forget(self, path: str) -> None:
        """Keep nothing of an object that is replaced or deleted."""
        KEPT.forget(self._named(path))
        KEPT.forget(self._named(f"{path}?"))

    def _keep(self, path: str, data: bytes) -> None:
        if self.root is not None and path.startswith((f"{self.root}/manifest/", f"{self.root}/index/")):
            KEPT.keep(self._named(path), data)

    def _named(self, path: str) -> Hashable:
        return self.place, self.options, path

    def _delete(self, keys: str | _Keys, path: str, failures: _Failures) -> None:
        try:
            self.ask(path, lambda: self.store.delete(keys))
        except FileNotFoundError:
            if not isinstance(keys, str):  # One that is gone says nothing of the others.
                for key in keys:
                    self._delete(key, f"{self.place.root}/{key}", failures)
        except OSError as error:
            failures.append(error)

    def _keys_below(self, path: str, key: str) -> Iterator[str]:
        last: str | None = None

        def part() -> Sequence[ObjectMeta]:
            """What is listed after the last key: a listing that broke off is not gone on with."""
            stream = self.store.list(f"{key}/" if key else None, offset=last, chunk_size=_DELETED_AT_ONCE)
            return next(iter(stream), ())

        while found := self.ask(path, part):
            yield from (each["path"] for each in found)
            if len(found) < _DELETED_AT_ONCE:
                return
            last = found[-1]["path"]


def _name(key: str) -> str:
    return key.rstrip("/").rpartition("/")[2]


def _portions(keys: Iterable[str]) -> Iterator[list[str]]:
    remaining = iter(keys)
    while portion := list(islice(remaining, _DELETED_AT_ONCE)):
        yield portion


@lru_cache(maxsize=1)
def _first_process() -> int:
    """The id of the process that first asked a store: also where this one was forked from it later."""
    return os.getpid()


@lru_cache(maxsize=64)
def _opened_store(place: ObjectPlace, options: StoreOptions, patient: bool) -> ObjectStore:
    """A store, with its connections. Opening asks nothing of it."""
    from obstore.store import AzureStore, GCSStore, S3Store

    settings: Any = dict(options.settings)
    common: dict[str, Any] = {
        "client_options": {**_TIMEOUTS, **({} if patient else _SILENCE), "allow_http": options.allows_http},
        "retry_config": _ASKED_AGAIN if patient else _ASKED_ONCE,
    }
    if place.kind is ObjectStoreKind.GCS:
        return GCSStore(place.bucket, config=settings, **common)
    if place.kind is ObjectStoreKind.AZURE:
        return AzureStore(place.bucket, config=settings | {"account_name": place.account}, **common)
    if options.credentials is not None:
        identity, secret, token = options.credentials
        known = {"access_key_id": identity, "secret_access_key": secret, "token": token, "expires_at": None}
        # As settings they would be mixed with a token that the environment has for others.
        common["credential_provider"] = lambda: known
    return S3Store(place.bucket, config=settings, **common)


@lru_cache(maxsize=1)
def _library_errors() -> tuple[type[Exception], ...]:
    """What the library raises; it raises Python's own errors too."""
    from obstore.exceptions import BaseError

    return (BaseError, OSError, ValueError, NotImplementedError)


#: What this process keeps of objects that never change: manifests, index files and the ends of data files.
KEPT = KeptObjects(64 << 20)

#: Places whose own endpoint has proven that it keeps conditions.
_PROVEN: set[tuple[ObjectPlace, StoreOptions]] = set()


def _prove_conditions(file_io: ObjectFileIO, path: str) -> None:
    """Raise UnsupportedFeatureError where a store of the user's own creates one spare object twice."""
    asked = (file_io.place, file_io.options)
    if not file_io.options.is_own_endpoint or asked in _PROVEN:
        return
    folder, _, name = path.rpartition("/")
    spare = f"{folder}/{temporary_name(name, SYSTEM.new_uuid())}"
    try:
        file_io._create(spare, b"")
        keeps = not file_io._create(spare, b"")
    except OpenOutcomeError as error:
        raise StorageUnavailableError(str(error)) from None  # Of what is to be created nothing was sent.
    finally:
        with suppress(OSError):  # What stays is taken by the removal of orphans.
            file_io.delete(spare)
    if not keeps:
        raise _no_conditions(file_io.place)
    _PROVEN.add(asked)


def _no_conditions(place: ObjectPlace) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"{place.root}: this store does not create an object only if it is absent (If-None-Match), so lakelsm cannot "
        "commit on it without the risk of overwriting another writer; nothing was written. Use a store with conditional "
        "writes (docs/object-stores.md)."
    )
