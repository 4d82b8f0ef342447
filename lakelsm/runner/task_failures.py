"""Converts an error of another library in a task of this process to one of lakelsm, with the table and the remedy."""

from __future__ import annotations

import errno

import pyarrow as pa

from lakelsm.errors import CorruptTableError, LakelsmError, OutOfMemoryError, UnsupportedFeatureError
from lakelsm.storage.refusals import storage_error

_FULL = {errno.ENOSPC: "free space there", errno.EDQUOT: "free space there, or raise the quota"}


def known_failure(error: BaseException, table: str) -> BaseException:
    """Return what to raise for a task's ``error`` on the ``table``, as messages name it.

    An error that no table, file system or machine explains is a defect of the program, and is not converted.
    """
    if isinstance(error, LakelsmError):
        return error
    reason = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, MemoryError):  # Arrow's own is one.
        return OutOfMemoryError(
            f"Table {table}: a task could not have the memory that it needs ({reason}): leave it more, or give the tasks "
            "of a compaction less with max_task_memory, and run it again."
        )
    if isinstance(error, (pa.ArrowNotImplementedError, pa.ArrowCapacityError)):
        return UnsupportedFeatureError(f"Table {table}: Arrow cannot work on these rows: {reason}.")
    if isinstance(error, OSError):
        remedy = _FULL.get(error.errno or 0, "mend what the file system says")
        return storage_error(
            f"Table {table}: the file system refused a task ({reason}): {remedy}, and run it again. Scratch files lie in "
            "the directory that TMPDIR names.",
            error,
        )
    if isinstance(error, pa.ArrowException):
        return CorruptTableError(f"Table {table}: a task met rows that Arrow takes for damaged: {reason}.")
    return error
