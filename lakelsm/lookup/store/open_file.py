"""The file of a store when it is opened: a regular file that is there, and nothing else."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from lakelsm.errors import CorruptStoreError, StorageError


def opened(path: Path) -> int:
    """A descriptor of the file, to be read. It waits for nobody, as a FIFO would.

    Raises CorruptStoreError where there is no such file or something else has its name, and StorageError for what the
    system refuses.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise CorruptStoreError(f"{path} is missing: the lookup store is made anew") from error
    except OSError as error:
        reason = error.strerror or error
        raise StorageError(f"{path} cannot be read: {reason}. Mend that, and look up again.") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise CorruptStoreError(f"{path} is no regular file: the lookup store is made anew")
    return descriptor
