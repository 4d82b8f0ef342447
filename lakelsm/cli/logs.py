"""Log lines of ``lakelsm.*`` on standard error. The library itself installs no log handler."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import warnings
from argparse import SUPPRESS, Namespace, _ActionsContainer
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone

from lakelsm.cli.report import printable
from lakelsm.secret_values import REDACTED, is_secret

_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
#: The log level without -v, with -v and with -vv.
_VERBOSITY_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)
#: Prefixes of environment variables with credentials of object stores.
_STORE_PREFIXES = ("AWS_", "AZURE_", "GOOGLE_")
#: Fields of every record. All other fields are those that the log statement added.
_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def add_log_arguments(parser: _ActionsContainer) -> None:
    """Add the arguments for logging. They can be before or after the verb."""
    parser.add_argument(
        "-v",
        "--verbose",
        action="count",
        default=SUPPRESS,
        help="log each operation on standard error, with the traceback of a failure; -vv also logs the steps",
    )
    parser.add_argument(
        "--log-level",
        type=str.upper,
        choices=_LEVELS,
        default=SUPPRESS,
        help="lowest logged level (default: WARNING, INFO with -v, DEBUG with -vv)",
    )
    parser.add_argument(
        "--log-format", choices=("text", "json"), default=SUPPRESS, help="form of the log lines (default: text)"
    )


def verbosity(arguments: Namespace) -> int:
    """Return the number of -v flags."""
    return int(getattr(arguments, "verbose", 0))


@contextmanager
def logs_on_stderr(arguments: Namespace) -> Iterator[None]:
    """Log on standard error within the block. Credentials of the command line are replaced.

    Warnings of lakelsm are not printed, because each of them is also logged.
    """
    logger, handler = logging.getLogger("lakelsm"), logging.StreamHandler(sys.stderr)
    shown = without_credentials(arguments)
    is_json = getattr(arguments, "log_format", "text") == "json"
    handler.setFormatter(_JsonLines(shown) if is_json else _TextLines(shown))
    before = logger.level
    default = _VERBOSITY_LEVELS[min(verbosity(arguments), len(_VERBOSITY_LEVELS) - 1)]
    logger.setLevel(getattr(arguments, "log_level", default))
    logger.addHandler(handler)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"lakelsm\b")
            yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


class _TextLines(logging.Formatter):
    """Formats time in UTC, level, logger and message in one line; the lines of a traceback follow."""

    def __init__(self, shown: Callable[[str], str]) -> None:
        super().__init__()
        self.shown = shown

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record and its traceback."""
        message = printable(record.getMessage()).replace("\n", "\\n")
        line = f"{_time(record)} {record.levelname} {record.name}: {message}"
        return self.shown("\n".join([line, *self.traceback(record)]))

    def traceback(self, record: logging.LogRecord) -> list[str]:
        """Return the traceback of a record, or an empty list."""
        return [self.formatException(record.exc_info)] if record.exc_info else []


class _JsonLines(_TextLines):
    """Formats each record as one JSON object, with the fields that the log statement added."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the JSON object of a record."""
        values = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **{key: value for key, value in vars(record).items() if key not in _STANDARD_FIELDS},
        }
        if found := self.traceback(record):
            values["traceback"] = found[0]
        return json.dumps(self._plain(values))

    def _plain(self, value: object) -> object:
        """Return a value for JSON. Credentials are replaced first, because JSON would escape quotes in them."""
        if isinstance(value, Mapping):
            return {self.shown(str(key)): self._plain(each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._plain(each) for each in value]
        return value if value is None or isinstance(value, (bool, int, float)) else self.shown(str(value))


def _time(record: logging.LogRecord) -> str:
    """Return the time of a record: ISO 8601 in UTC, with milliseconds."""
    return datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")


def without_credentials(arguments: Namespace) -> Callable[[str], str]:
    """Return a function that replaces credentials of the command line and the environment in a text."""
    given = [value for key, value in getattr(arguments, "storage_option", ()) if is_secret(key)]
    given += [value for key, value in os.environ.items() if key.startswith(_STORE_PREFIXES) and is_secret(key)]
    found = sorted(filter(None, map(str.strip, given)), key=len, reverse=True)
    if not found:
        return lambda text: text
    pattern = re.compile("|".join(rf"(?<!\w){re.escape(each)}(?!\w)" for each in found))
    return lambda text: pattern.sub(REDACTED, text)
