"""Log lines of ``lakelsm.*`` on standard error. The library itself installs no handler."""

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
#: The level of no -v, of one, and of more.
_OF_VERBOSITY = (logging.WARNING, logging.INFO, logging.DEBUG)
#: Environment variables that hold credentials of stores.
_OF_STORES = ("AWS_", "AZURE_", "GOOGLE_")
#: What every record has: all else is a field that its statement gave.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def add_log_arguments(parser: _ActionsContainer) -> None:
    """How much is logged, and in which form. They may stand before the verb or after it."""
    parser.add_argument(
        "-v",
        "--verbose",
        action="count",
        default=SUPPRESS,
        help="log each operation on standard error, and show the traceback of a failure; -vv: log its steps too",
    )
    parser.add_argument(
        "--log-level",
        type=str.upper,
        choices=_LEVELS,
        default=SUPPRESS,
        help="log from this level on (default: WARNING, INFO with -v, DEBUG with -vv)",
    )
    parser.add_argument(
        "--log-format", choices=("text", "json"), default=SUPPRESS, help="json: each log line is one JSON object"
    )


def verbosity(arguments: Namespace) -> int:
    """How often -v was given."""
    return int(getattr(arguments, "verbose", 0))


@contextmanager
def logs_on_stderr(arguments: Namespace) -> Iterator[None]:
    """Log on standard error by the arguments. Values of credentials on the command line are hidden.

    lakelsm's warnings are not printed, as each of them is also a line of the log.
    """
    logger, handler = logging.getLogger("lakelsm"), logging.StreamHandler(sys.stderr)
    shown = without_credentials(arguments)
    is_json = getattr(arguments, "log_format", "text") == "json"
    handler.setFormatter(_JsonLines(shown) if is_json else _TextLines(shown))
    before = logger.level
    default = _OF_VERBOSITY[min(verbosity(arguments), len(_OF_VERBOSITY) - 1)]
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
    """Time in UTC, level, logger and message; the lines of a traceback follow."""

    def __init__(self, shown: Callable[[str], str]) -> None:
        super().__init__()
        self.shown = shown

    def format(self, record: logging.LogRecord) -> str:
        """One line, and those of a traceback."""
        message = printable(record.getMessage()).replace("\n", "\\n")
        line = f"{_time(record)} {record.levelname} {record.name}: {message}"
        return self.shown("\n".join([line, *self.traceback(record)]))

    def traceback(self, record: logging.LogRecord) -> list[str]:
        """The traceback of a record; nothing where it has none."""
        return [self.formatException(record.exc_info)] if record.exc_info else []


class _JsonLines(_TextLines):
    """One JSON object a line, with the fields that a statement gave."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        values = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **{key: value for key, value in vars(record).items() if key not in _STANDARD},
        }
        if found := self.traceback(record):
            values["traceback"] = found[0]
        return json.dumps(self._plain(values))

    def _plain(self, value: object) -> object:
        """A value as JSON has it. Credentials are hidden before quotes in them are escaped."""
        if isinstance(value, Mapping):
            return {self.shown(str(key)): self._plain(each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._plain(each) for each in value]
        return value if value is None or isinstance(value, (bool, int, float)) else self.shown(str(value))


def _time(record: logging.LogRecord) -> str:
    """When it was logged: ISO 8601 in UTC, with milliseconds."""
    return datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")


def without_credentials(arguments: Namespace) -> Callable[[str], str]:
    """What hides the credentials of the command line and the environment in a text."""
    given = [value for key, value in getattr(arguments, "storage_option", ()) if is_secret(key)]
    given += [value for key, value in os.environ.items() if key.startswith(_OF_STORES) and is_secret(key)]
    found = sorted(filter(None, map(str.strip, given)), key=len, reverse=True)
    if not found:
        return lambda text: text
    pattern = re.compile("|".join(rf"(?<!\w){re.escape(each)}(?!\w)" for each in found))
    return lambda text: pattern.sub(REDACTED, text)
