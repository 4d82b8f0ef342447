"""One INFO line for each operation of a table, and DEBUG lines for its steps.

No Exception of a logging handler leaves it, as an operation may have been committed. No line shows a secret.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

import pyarrow as pa

from lakelsm.errors import CommitConflictError
from lakelsm.results import Failure
from lakelsm.results.result import OperationResult, Result, changed_fields
from lakelsm.secret_values import shown_text
from lakelsm.surroundings import SYSTEM

_LOG = logging.getLogger("lakelsm.table")
#: Fields of results that the line has in another form, or that are texts of any length.
_LEFT_OUT = frozenset({"table", "status", "outcome", "complete", "already_committed", "seconds", "remedy"})
#: A log record has an attribute of its own with this name.
_RENAMED = {"name": "subject"}


class _LoggedTable(Protocol):
    @property
    def _log_name(self) -> str:
        """The name of the table."""


NamedT = TypeVar("NamedT", bound=_LoggedTable)
P = ParamSpec("P")
R = TypeVar("R")


class OperationLine:
    """The INFO line of an operation that runs."""

    def __init__(self, table: str, operation: str) -> None:
        self._table, self._operation = shown_text(table), operation
        self._fields: dict[str, object] = {}
        self._outcome = "done"
        self._started = SYSTEM.monotonic()

    def add(self, **fields: object) -> None:
        """Add fields to the line."""
        self._fields.update(fields)

    def take(self, result: object) -> None:
        """Add the fields of a result that have another value than their default, and its outcome."""
        if isinstance(result, OperationResult):
            self._outcome = result.outcome
        if isinstance(result, Result):
            shown = {name: _shown(value) for name, value in changed_fields(result).items() if name not in _LEFT_OUT}
            self.add(**{_RENAMED.get(name, name): value for name, value in shown.items()})

    def end(self, error: BaseException | None = None) -> None:
        """Log the line."""
        with suppress(Exception):
            if error is not None:
                self._outcome = "conflict" if isinstance(error, CommitConflictError) else "failed"
                self.add(error=type(error).__name__)
            self.add(seconds=round(SYSTEM.monotonic() - self._started, 3))
            text = " ".join(f"{name}={value}" for name, value in self._fields.items())
            fields = {"table": self._table, "operation": self._operation, "outcome": self._outcome, **self._fields}
            _LOG.info("Table %s: %s %s (%s)", self._table, self._operation, self._outcome, text, extra=fields)


@contextmanager
def operation_line(table: str, operation: str) -> Iterator[OperationLine]:
    """Log what is done within the context as one operation."""
    line = OperationLine(table, operation)
    try:
        yield line
    except BaseException as error:
        line.end(error)
        raise
    line.end()


def logged(operation: str) -> Callable[[Callable[Concatenate[NamedT, P], R]], Callable[Concatenate[NamedT, P], R]]:
    """Log each call of a method as an operation, with the fields of its result."""

    def decorated(method: Callable[Concatenate[NamedT, P], R]) -> Callable[Concatenate[NamedT, P], R]:
        @wraps(method)
        def call(self: NamedT, /, *args: P.args, **named: P.kwargs) -> R:
            if not _LOG.isEnabledFor(logging.INFO):
                return method(self, *args, **named)
            with operation_line(self._log_name, operation) as line:
                if named.get("dry_run") is True:
                    line.add(dry_run=True)
                result = method(self, *args, **named)
                line.take(result)
                return result

        return call

    return decorated


def logged_stream(
    reader: pa.RecordBatchReader, table: str, operation: str, **fields: object
) -> pa.RecordBatchReader:
    """The same stream, which logs its operation when it ends. Where INFO lines are not logged it is the reader itself."""
    if not _LOG.isEnabledFor(logging.INFO):
        return reader
    line = OperationLine(table, operation)
    line.add(**fields)
    return pa.RecordBatchReader.from_batches(reader.schema, _counted(reader, line))


def _counted(reader: pa.RecordBatchReader, line: OperationLine) -> Iterator[pa.RecordBatch]:
    rows = size = 0
    failed: BaseException | None = None
    try:
        for batch in reader:
            rows, size = rows + len(batch), size + batch.nbytes
            yield batch
    except Exception as error:
        failed = error
        raise
    finally:
        line.add(rows=rows, bytes=size)
        line.end(failed)


def log_step(logger: logging.Logger, text: str, *args: object) -> None:
    """Log a step of an operation or a retry at DEBUG level. An error among the arguments is shown in one line."""
    if logger.isEnabledFor(logging.DEBUG):
        with suppress(Exception):
            shown = tuple(
                Failure.of(each, "", "").text if isinstance(each, BaseException) else each for each in args
            )
            logger.debug("%s", shown_text(text % shown))


def _shown(value: object) -> object:
    """A value of a result as a field: what is long is counted."""
    if isinstance(value, OperationResult):
        return value.outcome
    if isinstance(value, Failure):
        return value.error
    if isinstance(value, (tuple, Sequence)) and not isinstance(value, str):
        return list(value) if all(isinstance(each, int) for each in value) else len(value)
    if isinstance(value, (bool, int)) or value is None:
        return value
    if isinstance(value, float):
        return round(value, 3)
    return value.isoformat() if isinstance(value, datetime) else shown_text(str(value))
