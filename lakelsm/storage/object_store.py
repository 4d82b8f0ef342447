"""Objects of a bucket as lakelsm's files: S3, Google Cloud Storage and Azure, through obstore.

Paths are whole URIs ('s3://bucket/warehouse/db.db/t/schema/schema-0'). Directories are what keys have in common: none is
made, and an empty one does not exist. What is written is durable once the store has answered.
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
from lakelsm.storage.object_client import ObjectClient, no_conditions
from lakelsm.storage.object_filesystem import object_filesystem
from lakelsm.storage.object_location import ObjectLocation
from lakelsm.storage.storage_options import StoreOptions
from lakelsm.storage.store_failures import OpenOutcomeError

if TYPE_CHECKING:
    from obstore import ObjectMeta

_LOG = logging.getLogger("lakelsm.storage")

Answer = TypeVar("Answer")

#: Within the class below, `list` is its method.
_Failures: TypeAlias = list[OSError]

#: Keys that S3 deletes by one request.
_DELETED_AT_ONCE = 1000
@dataclass(frozen=True)
class ObjectFileIO(ObjectClient):
    """FileIO on the objects of one bucket: what `ObjectClient` does with single ones, lists, and many at once."""

    def fresh(self) -> ObjectFileIO:
        """Return the same storage, of which nothing is kept in memory."""
        return replace(self, keeps=False)

    def within(self, root: str) -> ObjectFileIO:
        """Return the same storage, kept to the keys below ``root``."""
        return replace(self, root=root)

    def check_file(self, path: str) -> None:
        """Raise CorruptTableError where the path leads out of the root; an object is always a regular file."""
        self.key(path)

    def check_directory(self, path: str) -> None:
        """Raise CorruptTableError where files in the directory would leave the root."""
        self.key(path)

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
        return self.create(path, data)

    def delete_files(self, paths: Sequence[str]) -> None:
        """Delete objects, many by one request where the store can. Each is tried; then the first failure is raised."""
        failures: _Failures = []
        for path in paths:
            self.forget(path)
        for portion in _portions(paths):
            failures += self._failed_deletions(portion)
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

    def _failed_deletions(self, paths: Sequence[str]) -> _Failures:
        """Delete objects by one request; each by its own where one of them is gone, which says nothing of the others."""
        keys = [self.key(path) for path in paths]
        if len(keys) > 1:
            try:
                self.ask(paths[0], lambda: self.store.delete(keys))
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


def _portions(names: Iterable[str]) -> Iterator[list[str]]:
    remaining = iter(names)
    while portion := list(islice(remaining, _DELETED_AT_ONCE)):
        yield portion


#: Places whose own endpoint has proven that it keeps conditions.
_PROVEN: set[tuple[ObjectLocation, StoreOptions]] = set()


def _prove_conditions(file_io: ObjectFileIO, path: str) -> None:
    """Raise UnsupportedFeatureError where a store of the user's own creates one spare object twice."""
    asked = (file_io.place, file_io.options)
    if not file_io.options.is_own_endpoint or asked in _PROVEN:
        return
    folder, _, name = path.rpartition("/")
    spare = f"{folder}/{temporary_name(name, SYSTEM.new_uuid())}"
    try:
        file_io.create(spare, b"")
        keeps = not file_io.create(spare, b"")
    except OpenOutcomeError as error:
        raise StorageUnavailableError(str(error)) from None  # Of what is to be created nothing was sent.
    finally:
        with suppress(OSError):  # What stays is taken by the removal of orphans.
            file_io.delete(spare)
    if not keeps:
        raise no_conditions(file_io.place)
    _PROVEN.add(asked)
