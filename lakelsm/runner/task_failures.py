"""Converts errors of other libraries in tasks of this process to errors of lakelsm, with the table and the remedy."""

from __future__ import annotations

import errno

import pyarrow as pa

from lakelsm.errors import CorruptTableError, LakelsmError, OutOfMemoryError, UnsupportedFeatureError
from lakelsm.storage.refusals import storage_error

_FULL = {errno.ENOSPC: "Free disk space", errno.EDQUOT: "Free disk space or raise the quota"}


def known_failure(error: BaseException, table: str) -> BaseException:
    """Return the error to raise for a task's ``error`` on the table named ``table``.

    An error that no table, file system or machine explains is a defect of the program, and is not converted.
    """
    if isinstance(error, LakelsmError):
        return error
    reason = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, MemoryError):  # Arrow's error is a subclass.
        return OutOfMemoryError(
            f"Table {table}: a task ran out of memory ({reason}). Provide more memory, or lower max_task_memory of a "
            "compaction, and run it again."
        )
    if isinstance(error, (pa.ArrowNotImplementedError, pa.ArrowCapacityError)):
        return UnsupportedFeatureError(f"Table {table}: Arrow does not support an operation on these rows: {reason}.")
    if isinstance(error, OSError):
        remedy = _FULL.get(error.errno or 0, "Fix the cause")
        return storage_error(
            f"Table {table}: a file operation of a task failed ({reason}). {remedy}, and run it again; scratch files are "
            "in the directory that TMPDIR names.",
            error,
        )
    if isinstance(error, pa.ArrowException):
        return CorruptTableError(f"Table {table}: Arrow refuses rows as damaged: {reason}. check() finds all damage.")
    return error
