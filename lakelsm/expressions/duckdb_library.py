"""DuckDB (extra ``lakelsm[sql]``): its import when a call needs it, its settings, and its errors of values."""

from __future__ import annotations

import re
from typing import Any

from lakelsm.errors import InvalidInputError, LakelsmError, OutOfMemoryError, UnsupportedFeatureError
from lakelsm.expressions.duckdb_casts import IN_THIS_PROCESS
from lakelsm.runner.process_limits import usable_memory

#: The share of the process's memory that one database of DuckDB may use.
_MEMORY_SHARE = 4
#: The prefix of the messages of `duckdb_casts.failure`.
_FAILURE = "lakelsm: "
#: The class of an error at the beginning of DuckDB's messages.
_CLASS = re.compile(r"[A-Z][A-Za-z ]* Error: ")
#: The end of some messages: the column has a number for a name.
_COLUMN = re.compile(r"!? when casting from source column \w+")
#: DuckDB's messages on values, and the same in the words of SQL; {kind} is a type.
_VALUES = [
    (re.compile(pattern), message)
    for pattern, message in (
        (r"Overflow in \w+ of (?P<kind>\w+) \((?P<value>.*)\)", "overflow: {value} does not fit {kind}"),
        (r"Overflow (in|on) (?P<value>.*)", "overflow: {value}"),
        (r"Type \w+ with value (?P<value>.*) can't be cast .* type (?P<kind>.*)", "{value} does not fit {kind}"),
        (r'Casting value "(?P<value>.*)" to type (?P<kind>.*) failed', "{value} does not fit {kind}"),
        (r"Failed to cast decimal value (?P<value>\S+) to type (?P<kind>.*)", "{value} does not fit {kind}"),
        (r"(?P<kind>\w+) field value out of range: (?P<value>.*)", "{value} is not a {kind}"),
    )
]
_INTERRUPTED = ("Query interrupted", "INTERRUPT Error: Interrupted!")
_KINDS = {"INT8": "TINYINT", "INT16": "SMALLINT", "INT32": "INT", "INT64": "BIGINT", "INT128": "DECIMAL(38,0)"}


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
        reason = text.partition(_FAILURE)[2].partition(chr(39))[0]
        if reason.endswith(IN_THIS_PROCESS):
            return UnsupportedFeatureError(f"{what}: {reason}. Evaluate it on Spark.")
        return InvalidInputError(f"{what}: {reason}.")
    if type(error).__name__ == "OutOfMemoryException":
        return OutOfMemoryError(f"{what}: DuckDB needs more memory or disk space than it may use: {text}.")
    return InvalidInputError(f"{what}: {_in_sql(_COLUMN.sub('', _CLASS.sub('', text, count=1)))}.")


def check_interrupted(error: Exception) -> None:
    """Raise KeyboardInterrupt for an error of DuckDB that stands for it: DuckDB handles SIGINT while it runs a query."""
    if str(error).partition("\n")[0].strip() in _INTERRUPTED:
        raise KeyboardInterrupt from error


def _in_sql(text: str) -> str:
    """Return DuckDB's message on a value in the words of SQL, without a full stop."""
    for pattern, message in _VALUES:
        found = pattern.match(text)
        if found is not None:
            named = found.groupdict()
            kind = named.get("kind", "").upper()
            return message.format(value=named["value"].rstrip(".!"), kind=_KINDS.get(kind, kind))
    return text.rstrip(".! ")
