"""DuckDB (extra ``lakelsm[sql]``): its import when a call needs it, its settings, and its errors of values."""

from __future__ import annotations

from typing import Any

from lakelsm.errors import InvalidInputError, LakelsmError, OutOfMemoryError
from lakelsm.runner.process_limits import usable_memory

#: The share of the process's memory that one database of DuckDB may use.
_MEMORY_SHARE = 4
#: The prefix of the messages of `duckdb_casts.failure`.
_FAILURE = "lakelsm: "


def imported_duckdb(use: str, remedy: str) -> Any:
    """Return the module. Raises InvalidInputError if it is not installed: ``use`` needs it, else use the ``remedy``."""
    try:
        import duckdb
    except ImportError as error:
        raise InvalidInputError(
            f"{use} needs DuckDB, which is not installed. Install lakelsm[sql], or {remedy}."
        ) from error
    return duckdb


def database_settings(threads: int) -> dict[str, str]:
    """Return the settings of each database: no extension is loaded, and memory and threads are limited."""
    return {
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "memory_limit": f"{usable_memory() // _MEMORY_SHARE // 1024}KiB",
        "threads": str(threads),
    }


def raised(error: Exception, what: str) -> LakelsmError:
    """Return the error to raise for one of DuckDB: a wrong value, or not enough memory. ``what`` begins its message."""
    text = str(error).partition("\n")[0]
    if _FAILURE in text:
        return InvalidInputError(f"{what}: {text.partition(_FAILURE)[2].partition(chr(39))[0]}.")
    if type(error).__name__ == "OutOfMemoryException":
        return OutOfMemoryError(f"{what}: DuckDB needs more memory or disk space than it may use: {text}.")
    return InvalidInputError(f"{what}: {text.rstrip('.')}.")
