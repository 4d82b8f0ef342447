"""The check of tasks that the machine has the directory of a table: they would create another one, and lose its rows."""

from __future__ import annotations

import os

from lakelsm.errors import StorageError
from lakelsm.storage.object_location import is_object_uri


def check_shared_disk(root: str) -> None:
    """Raise StorageError if a table on a local disk is not on the disk of this machine. Called by tasks that write."""
    if not is_object_uri(root) and not os.path.isdir(root):
        raise StorageError(
            f"{root} does not exist on a machine of Spark's workers. Use a warehouse on storage that the program and all "
            "workers share, for example an object store."
        )
