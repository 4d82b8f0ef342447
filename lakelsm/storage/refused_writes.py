"""What the file system says when it refuses a write or a deletion, told with the file, the space and the remedy."""

from __future__ import annotations

import errno
import os
import shutil

from lakelsm.errors import StorageError, StorageUnavailableError

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


#: A network file system or its server is unavailable; EIO, a failing disk, is none of these.
_PASSING = frozenset(
    {
        *(errno.ESTALE, errno.ETIMEDOUT, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH),
        *(errno.ECONNRESET, errno.ECONNREFUSED, errno.ECONNABORTED, errno.ENOTCONN, errno.EAGAIN),
    }
)


def storage_error(text: str, error: OSError) -> StorageError:
    """The error with a text for what the file system refuses: StorageUnavailableError where that may pass by itself."""
    return (StorageUnavailableError if error.errno in _PASSING else StorageError)(text)


def refused_write(
    path: str, error: OSError, needed: int | None = None, lost: str = "Nothing of this commit is visible"
) -> StorageError:
    """Return the error for a file that cannot be written; ``needed`` is its size in bytes where that is known.

    ``lost`` says what the failure means for the table.
    """
    size = "" if needed is None else f" ({needed} bytes)"
    free = f"; {_free(path)} bytes are free there" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
    return storage_error(
        f"{path} cannot be written{size}: {_reason(error)}{free}. {lost}. {_remedy(error)}, and run it again.", error
    )


def refused_deletion(path: str, error: OSError) -> StorageError:
    """Return the error for a file or directory that cannot be deleted."""
    return storage_error(f"{path} cannot be deleted: {_reason(error)}. {_remedy(error)}, and run it again.", error)


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else " ".join(str(error).split())


def _remedy(error: OSError) -> str:
    if error.errno in _PASSING:
        return "Wait until the file system answers again"
    return _REMEDIES.get(error.errno or 0, "Mend what the file system says")


def _free(path: str) -> int:
    folder = os.path.dirname(path)
    while not os.path.isdir(folder) and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
    return shutil.disk_usage(folder).free
