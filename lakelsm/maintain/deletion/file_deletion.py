"""Deletion of files that no retained state needs. No other module of `maintain` deletes data or metadata files.

Files are deleted in batches, several batches in parallel. Deletion is best effort: a missing file is not a failure. A
file that cannot be deleted is counted, reported, and left to orphan removal.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice

from lakelsm.errors import LakelsmError
from lakelsm.operation_log import log_step
from lakelsm.storage import FileIO

_LOG = logging.getLogger("lakelsm.maintain")
#: Files in one batch: the maximum of a request to an object store.
_BATCH = 1000
#: Batches that are deleted in parallel.
_THREADS = 8


@dataclass(frozen=True)
class DeletedFiles:
    """The number of ``deleted`` files, missing ones included, and a text for each file that could not be deleted."""

    deleted: int = 0
    failures: tuple[str, ...] = ()

    def __add__(self, other: DeletedFiles) -> DeletedFiles:
        return DeletedFiles(self.deleted + other.deleted, self.failures + other.failures)


def delete_unneeded(file_io: FileIO, paths: Iterable[str]) -> DeletedFiles:
    """Delete files that the caller has proven not to be needed. Returns after every deletion was tried.

    A single batch is deleted in this thread: a pool would cost more.
    """
    batches = _batches(paths)
    first = list(islice(batches, 2))
    if len(first) < 2:
        return _summed(map(partial(_delete_batch, file_io), first))
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="lakelsm-delete") as pool:
        return _summed(pool.map(partial(_delete_batch, file_io), chain(first, batches)))


def delete_empty_directories(file_io: FileIO, directories: Iterable[str]) -> int:
    """Delete the empty ones of some directories, in the given order. Return the number deleted. Best effort."""
    deleted = 0
    for directory in directories:
        try:
            deleted += file_io.delete_empty_dir(directory)
        except (OSError, LakelsmError):
            continue
    return deleted


def _batches(paths: Iterable[str]) -> Iterator[Sequence[str]]:
    remaining = iter(paths)
    while batch := list(islice(remaining, _BATCH)):
        yield batch


def _summed(parts: Iterable[DeletedFiles]) -> DeletedFiles:
    return sum(parts, DeletedFiles())


def _delete_batch(file_io: FileIO, paths: Sequence[str]) -> DeletedFiles:
    try:
        file_io.delete_files(paths)
    except Exception as error:  # noqa: BLE001  Any error: each file is tried separately below.
        log_step(_LOG, "deleting %d files one by one, because the deletion of their batch failed: %s", len(paths), error)
        return _delete_each(file_io, paths)  # The batch reports only its first failure.
    return DeletedFiles(len(paths))


def _delete_each(file_io: FileIO, paths: Sequence[str]) -> DeletedFiles:
    failures: list[str] = []
    for path in paths:
        try:
            file_io.delete_files([path])
        except Exception as error:  # noqa: BLE001  The file is harmless, and orphan removal deletes it later.
            failures.append(f"{path}: {str(error) or type(error).__name__}")
    return DeletedFiles(len(paths) - len(failures), tuple(failures))
