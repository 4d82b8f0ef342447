"""Errors of the file system as errors of lakelsm, with the file, the free space and the remedy."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from lakelsm.errors import CorruptTableError, StorageError, StorageUnavailableError

_REMEDIES = {
    errno.EACCES: "Give this process the permission to write there",
    errno.EPERM: "Give this process the permission to write there",
    errno.EROFS: "Mount the file system so that it can be written",
    errno.EMFILE: "Raise the limit of open files (ulimit -n)",
    errno.ENFILE: "Raise the system's limit of open files",
    errno.ENOSPC: "Free space on that file system",
    errno.EDQUOT: "Free space, or raise the quota",
    errno.EFBIG: "Raise the limit of a file's size (ulimit -f)",
}

#: A network file system or its server is unavailable. EIO, from a failing disk, is not one of these.
_TEMPORARY = frozenset(
    {
        *(errno.ESTALE, errno.ETIMEDOUT, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH),
        *(errno.ECONNRESET, errno.ECONNREFUSED, errno.ECONNABORTED, errno.ENOTCONN, errno.EAGAIN),
    }
)

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def storage_error(text: str, error: OSError) -> StorageError:
    """Return an error with a text: StorageUnavailableError if the cause may be temporary, else StorageError."""
    return (StorageUnavailableError if error.errno in _TEMPORARY else StorageError)(text)


def refused_write(
    path: str, error: OSError, needed: int | None = None, lost: str = "Nothing of this commit is visible"
) -> StorageError:
    """Return the error for a file that cannot be written; ``needed`` is its size in bytes, if known.

    ``lost`` states the effect on the table.
    """
    size = "" if needed is None else f" ({needed} bytes)"
    free = f"; {_free_bytes(path)} bytes are free there" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
    return storage_error(
        f"{path} cannot be written{size}: {_reason(error)}{free}. {lost}. {_remedy(error)}, and run it again.", error
    )


def refused_deletion(path: str, error: OSError) -> StorageError:
    """Return the error for a file or directory that cannot be deleted."""
    return storage_error(f"{path} cannot be deleted: {_reason(error)}. {_remedy(error)}, and run it again.", error)


def refused_read(path: str, error: OSError) -> StorageError:
    """Return the error for a file or directory that cannot be read."""
    return storage_error(
        f"{path} cannot be read: {error.strerror}. Give this process the permission to read it, or fix the cause, and "
        "run it again.",
        error,
    )


def status_of(path: str) -> os.stat_result:
    """Return the status of a path, links followed. Raises FileNotFoundError if it does not exist."""
    try:
        return os.stat(path)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENAMETOOLONG):
            raise CorruptTableError(f"{path} cannot be reached ({error.strerror}). Restore the file.") from error
        if isinstance(error, FileNotFoundError):
            raise
        raise refused_read(path, error) from error


@contextmanager
def deleting(path: str) -> Iterator[None]:
    """Convert the errors of a deletion: a missing file is ignored, a refusal raises an error of lakelsm."""
    try:
        yield
    except FileNotFoundError:
        return
    except IsADirectoryError as error:
        raise CorruptTableError(f"{path} is a directory instead of a regular file. Delete it yourself.") from error
    except OSError as error:
        raise refused_deletion(path, error) from error


@contextmanager
def listing(path: str) -> Iterator[None]:
    """Convert the errors of a listing: a missing directory is ignored, a refusal raises an error of lakelsm."""
    try:
        yield
    except FileNotFoundError:
        return
    except NotADirectoryError as error:
        if os.path.lexists(path):  # Otherwise a parent of the path is a file.
            raise CorruptTableError(f"{path} is not a directory. Restore it.") from error
    except OSError as error:
        raise refused_read(path, error) from error


def require_regular(path: str, status: os.stat_result) -> None:
    """Raise CorruptTableError for a directory, FIFO, socket or device."""
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for test, name in _KINDS if test(status.st_mode)), "not a file")
        raise CorruptTableError(
            f"{path} is {kind} instead of a regular file, and lakelsm does not open it. Restore the file."
        )


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else " ".join(str(error).split())


def _remedy(error: OSError) -> str:
    if error.errno in _TEMPORARY:
        return "Wait until the file system answers again"
    return _REMEDIES.get(error.errno or 0, "Fix the cause")


def _free_bytes(path: str) -> int:
    folder = os.path.dirname(path)
    while not os.path.isdir(folder) and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
    return shutil.disk_usage(folder).free
