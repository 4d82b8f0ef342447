"""The file of a store while it is written: all of it, or none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from lakelsm.errors import StorageError
from lakelsm.storage.refused_writes import refused_write


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A file that is not there yet, to be written. Whatever is raised within leaves none behind.

    Raises StorageError, naming the file and the remedy, for what the system refuses within.
    """
    try:
        file = path.open("xb")
    except OSError as error:
        raise _refused(path, error) from error
    try:
        with file:
            yield file
    except BaseException as error:
        with suppress(OSError):
            path.unlink()
        if isinstance(error, OSError) and not isinstance(error, StorageError):
            raise _refused(path, error) from error
        raise


def _refused(path: Path, error: OSError) -> StorageError:
    return refused_write(str(path), error, lost="The table is unharmed")
