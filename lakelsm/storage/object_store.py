"""Objects of a bucket as lakelsm's files: S3, Google Cloud Storage and Azure, through obstore.

Paths are whole URIs ('s3://bucket/warehouse/db.db/t/schema/schema-0'). A directory is a common prefix of keys: none is
created, and an empty one does not exist. A write is durable when the store has confirmed it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from pyarrow import fs as arrow_fs

from lakelsm.environment import SYSTEM
from lakelsm.errors import (
    StorageUnavailableError,
    UnsupportedFeatureError,
)
from lakelsm.storage.file_io import FileEntry, temporary_name
from lakelsm.storage.object_client import ObjectClient, no_conditional_create
from lakelsm.storage.object_filesystem import object_filesystem
from lakelsm.storage.object_location import ObjectLocation
from lakelsm.storage.storage_options import StoreOptions
from lakelsm.storage.store_failures import UnknownOutcomeError

if TYPE_CHECKING:
    from obstore import ObjectMeta

_LOG = logging.getLogger("lakelsm.storage")

Answer = TypeVar("Answer")

#: An alias, because `list` is a method within the class below.
_Failures: TypeAlias = list[OSError]

#: Maximum keys that S3 deletes in one request.
_KEYS_PER_DELETION = 1000
@dataclass(frozen=True)
class ObjectFileIO(ObjectClient):
    """FileIO on the objects of one bucket: `ObjectClient` with listings and requests for many objects."""

    def uncached(self) -> ObjectFileIO:
        """Return the same storage without its cache."""
        return replace(self, uses_cache=False)

    def within(self, root: str) -> ObjectFileIO:
        """Return the same storage, restricted to the keys below ``root``."""
        return replace(self, root=root)

    def check_file(self, path: str) -> None:
        """Raise CorruptTableError if the path leaves the root. An object is always a regular file."""
        self.key(path)

    def check_directory(self, path: str) -> None:
        """Raise CorruptTableError if files of the directory would be outside the root."""
        self.key(path)

    def exists(self, path: str) -> bool:
        """Return whether an object exists at the path; False for a directory."""
        try:
            self.size(path)
        except FileNotFoundError:
            return False
        return True

    def list(self, path: str) -> list[str]:
        """Return the names of the objects and directories directly below a path, unsorted."""
        return [entry.name for entry in self.entries(path)]

    def entries(self, path: str) -> Sequence[FileEntry]:
        """Return the objects and directories directly below a path, unsorted."""
        key = self.key(path)
        found = self.send(path, lambda: self.store.list_with_delimiter(key or None))
        directories = [FileEntry(_name(prefix), is_directory=True) for prefix in found["common_prefixes"]]
        files = [
            FileEntry(_name(each["path"]), False, each["size"], int(each["last_modified"].timestamp() * 1000))
            for each in found["objects"]
        ]
        return directories + [file for file in files if file.name]

    def directories(self, path: str) -> Sequence[str]:
        """Return the names of the directories directly below a path, unsorted."""
        return [entry.name for entry in self.entries(path) if entry.is_directory]

    def make_durable(self, directory: str, names: Sequence[str]) -> None:
        """Do nothing: a confirmed write is durable."""

    def create_if_absent(self, path: str, data: bytes) -> bool:
        """Create an object if the key is free (`If-None-Match: *`). Returns False if it is taken.

        The library repeats a request without an answer, so that False can mean an earlier request of this call: callers
        compare the content. Raises UnsupportedFeatureError on a store that ignores or does not know the condition; a
        custom endpoint must prove it on a temporary object, once a process. Raises StorageError if it is certain that
        nothing was created, and another OSError if it is not.
        """
        _prove_conditions(self, path)
        return self.create(path, data)

    def delete_files(self, paths: Sequence[str]) -> None:
        """Delete objects, many in one request if the store can. All are tried; then the first failure is raised."""
        failures: _Failures = []
        for path in paths:
            self.forget(path)
        for portion in _chunks(paths):
            failures += self._failed_deletions(portion)
        if failures:
            raise failures[0]

    def delete_dir(self, path: str, last: str | None = None) -> None:
        """Delete all objects below a path, those of ``last`` at the end."""
        key = self.key(path)
        for first in (True, False) if last is not None else (False,):
            kept = f"{key}/{last}/" if first else None
            below = (each for each in self._keys_below(path, key) if kept is None or not each.startswith(kept))
            for keys in _chunks(below):
                self.delete_files([f"{self.location.root}/{each}" for each in keys])

    def delete_empty_dir(self, path: str) -> bool:
        """Return False: an object store has no directories."""
        return False

    def rename_dir(self, path: str, target: str) -> bool:
        """Raise UnsupportedFeatureError: a copy of every object would be necessary, which is not one step."""
        raise UnsupportedFeatureError(
            f"{path} is on an object store, which cannot rename a directory in one step. Copy the rows into a new table, "
            "then drop this one."
        )

    def mkdirs(self, path: str, durable: bool = True) -> None:
        """Do nothing: an object store has no directories."""

    def filesystem(self) -> arrow_fs.FileSystem:
        """Return an Arrow file system for the same URIs."""
        return object_filesystem(self)

    def _failed_deletions(self, paths: Sequence[str]) -> _Failures:
        """Delete objects by one request, or one by one if one is missing: that error says nothing about the others."""
        keys = [self.key(path) for path in paths]
        if len(keys) > 1:
            try:
                self.send(paths[0], lambda: self.store.delete(keys))
                return []
            except FileNotFoundError:
                pass
            except OSError as error:
                return [error]
        failures: _Failures = []
        for path in paths:
            try:
                self.delete(path)
            except OSError as error:
                failures.append(error)
        return failures

    def _keys_below(self, path: str, key: str) -> Iterator[str]:
        last: str | None = None

        def part() -> Sequence[ObjectMeta]:
            """Return the keys after the last one, by a new listing: one that failed cannot be continued."""
            stream = self.store.list(f"{key}/" if key else None, offset=last, chunk_size=_KEYS_PER_DELETION)
            return next(iter(stream), ())

        while found := self.send(path, part):
            yield from (each["path"] for each in found)
            if len(found) < _KEYS_PER_DELETION:
                return
            last = found[-1]["path"]


def _name(key: str) -> str:
    return key.rstrip("/").rpartition("/")[2]


def _chunks(names: Iterable[str]) -> Iterator[list[str]]:
    remaining = iter(names)
    while portion := list(islice(remaining, _KEYS_PER_DELETION)):
        yield portion


#: Custom endpoints that have proven conditional creation.
_PROVEN: set[tuple[ObjectLocation, StoreOptions]] = set()


def _prove_conditions(file_io: ObjectFileIO, path: str) -> None:
    """Raise UnsupportedFeatureError if a custom endpoint creates one temporary object twice."""
    probed = (file_io.location, file_io.options)
    if not file_io.options.is_own_endpoint or probed in _PROVEN:
        return
    folder, _, name = path.rpartition("/")
    probe = f"{folder}/{temporary_name(name, SYSTEM.new_uuid())}"
    try:
        file_io.create(probe, b"")
        is_conditional = not file_io.create(probe, b"")
    except UnknownOutcomeError as error:
        raise StorageUnavailableError(str(error)) from None  # The object itself was not sent.
    finally:
        with suppress(OSError):  # Orphan removal deletes an object that stays.
            file_io.delete(probe)
    if not is_conditional:
        raise no_conditional_create(file_io.location)
    _PROVEN.add(probed)
