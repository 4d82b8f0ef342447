"""Deletion of a table's files that are proven not to be needed: the one module of `maintain` that deletes.

Many files are deleted at once: in batches, as stores accept them, several in parallel. It is best effort: a file that is
missing is not a failure; one that stays is counted, reported, and left to orphan removal.
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
#: Files of one batch: what object stores take in one request at most.
_BATCH = 1000
#: Batches that are deleted side by side.
_THREADS = 8


@dataclass(frozen=True)
class DeletedFiles:
    """How many files were ``deleted`` (those that were not there included), and of those that stay, what it was."""

    deleted: int = 0
    failures: tuple[str, ...] = ()

    def __add__(self, other: DeletedFiles) -> DeletedFiles:
        return DeletedFiles(self.deleted + other.deleted, self.failures + other.failures)


def delete_unneeded(file_io: FileIO, paths: Iterable[str]) -> DeletedFiles:
    """Delete files that the caller has proven not to be needed. Returns when each was tried.

    A single batch is deleted in this thread, so that few files need no other.
    """
    batches = _batches(paths)
    first = list(islice(batches, 2))
    if len(first) < 2:
        return _summed(map(partial(_delete_batch, file_io), first))
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="lakelsm-delete") as pool:
        return _summed(pool.map(partial(_delete_batch, file_io), chain(first, batches)))


def delete_empty_directories(file_io: FileIO, directories: Iterable[str]) -> int:
    """Delete those of some directories that are empty, in the order given; return how many went. Best effort."""
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
    except Exception as error:  # noqa: BLE001  Remaining files are reported below, for any error.
        log_step(_LOG, "%d files are deleted one by one, as their batch failed: %s", len(paths), error)
        return _delete_each(file_io, paths)  # The batch reports only its first failure; a missing file is not one.
    return DeletedFiles(len(paths))


def _delete_each(file_io: FileIO, paths: Sequence[str]) -> DeletedFiles:
    failures: list[str] = []
    for path in paths:
        try:
            file_io.delete_files([path])
        except Exception as error:  # noqa: BLE001  It takes room and does no harm; orphan removal takes it.
            failures.append(f"{path}: {str(error) or type(error).__name__}")
    return DeletedFiles(len(paths) - len(failures), tuple(failures))
