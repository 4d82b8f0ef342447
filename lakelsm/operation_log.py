"""The log: one INFO line for each operation of a table or a catalog, and DEBUG lines for steps.

An Exception of a logging handler does not make an operation fail, because its commit may be visible. No line shows a
secret. If a level is off, nothing is computed for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

import pyarrow as pa

from lakelsm.environment import SYSTEM
from lakelsm.errors import CommitConflictError
from lakelsm.results import Failure
from lakelsm.results.result import OperationResult, Result, changed_fields
from lakelsm.secret_values import shown_text

#: The logger of operations on tables.
TABLE_LOG = logging.getLogger("lakelsm.table")
#: The logger of operations on catalogs.
CATALOG_LOG = logging.getLogger("lakelsm.catalog")
#: Fields of results that are not logged: the line has them in another form, or they are texts of any length.
_LEFT_OUT = frozenset({"table", "status", "outcome", "complete", "already_committed", "seconds", "remedy"})
#: Fields whose name is already an attribute of log records, with the name that is used instead.
_RENAMED = {"name": "subject"}


class _LoggedTable(Protocol):
    @property
    def _log_name(self) -> str:
        """The name of the table."""


NamedT = TypeVar("NamedT", bound=_LoggedTable)
MethodT = TypeVar("MethodT", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")


class OperationLine:
    """The INFO line of a running operation. Its methods raise no Exception."""

    def __init__(self, logger: logging.Logger, kind: str, name: object, operation: str) -> None:
        self._logger, self._kind, self._name, self._operation = logger, kind, name, operation
        self._fields: dict[str, object] = {}
        self._outcome = "done"
        self._started = SYSTEM.monotonic()
        self._has_stream = self._has_ended = False

    def add(self, fields: Callable[[], Mapping[str, object]]) -> None:
        """Add the fields that ``fields`` returns."""
        with suppress(Exception):
            self._fields.update({name: _shown(value) for name, value in fields().items()})

    def set_nothing_done(self) -> None:
        """Set the outcome to ``nothing``: there was nothing to do."""
        self._outcome = "nothing"

    def add_result(self, result: object, *, dry_run: bool = False) -> None:
        """Add the outcome of a result, and its fields that do not have their default value."""
        with suppress(Exception):
            if isinstance(result, OperationResult):
                self._outcome = result.outcome
            elif isinstance(result, list) and not result:
                self.set_nothing_done()
            elif dry_run and self._outcome == "done":
                self._outcome = "planned"
            if isinstance(result, Result):
                shown = {name: _shown(value) for name, value in changed_fields(result).items() if name not in _LEFT_OUT}
                self._fields.update({_RENAMED.get(name, name): value for name, value in shown.items()})

    def count_stream(self, reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """Return the same stream. Its end logs the line, with the rows and bytes that were read from it."""
        self._has_stream = True
        counted = self._counted(reader)
        next(counted)  # Only a started generator runs its `finally`, also if no batch is read.
        return pa.RecordBatchReader.from_batches(reader.schema, counted)

    def end(self, error: BaseException | None = None) -> None:
        """Log the line, once."""
        has_ended, self._has_ended = self._has_ended, True
        if has_ended:
            return
        with suppress(Exception):
            if error is not None:
                self._outcome = "conflict" if isinstance(error, CommitConflictError) else "failed"
                self._fields["error"] = type(error).__name__
            self._fields["seconds"] = round(SYSTEM.monotonic() - self._started, 3)
            name = shown_text(str(self._name))
            text = " ".join(f"{field}={value}" for field, value in self._fields.items())
            fields = {self._kind.lower(): name, "operation": self._operation, "outcome": self._outcome, **self._fields}
            self._logger.info("%s %s: %s %s (%s)", self._kind, name, self._operation, self._outcome, text, extra=fields)

    def end_without_stream(self) -> None:
        """Log the line now, unless a stream logs it at its end."""
        if not self._has_stream:
            self.end()

    def _counted(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch | None]:
        rows = size = 0
        failed: BaseException | None = None
        try:
            yield None
            for batch in reader:
                rows, size = rows + len(batch), size + batch.nbytes
                yield batch
        except GeneratorExit:
            raise  # The caller dropped the stream; this is not a failure.
        except BaseException as error:
            failed = error
            raise
        finally:
            self._fields.update(rows=rows, bytes=size)
            self.end(failed)


class _NoLine(OperationLine):
    """The line if INFO is off: its methods do nothing."""

    def __init__(self) -> None:
        pass

    def add(self, fields: Callable[[], Mapping[str, object]]) -> None:
        """Do nothing; ``fields`` is not called."""

    def set_nothing_done(self) -> None:
        """Do nothing."""

    def add_result(self, result: object, *, dry_run: bool = False) -> None:
        """Do nothing."""

    def count_stream(self, reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """Return the reader itself."""
        return reader

    def end(self, error: BaseException | None = None) -> None:
        """Do nothing."""

    def end_without_stream(self) -> None:
        """Do nothing."""


_NO_LINE = _NoLine()
_CURRENT: ContextVar[OperationLine] = ContextVar("lakelsm_operation_line", default=_NO_LINE)


def current_line() -> OperationLine:
    """Return the line of the innermost operation of this thread."""
    return _CURRENT.get()


@contextmanager
def operation_line(
    name: object,
    operation: str,
    *,
    kind: str = "Table",
    logger: logging.Logger = TABLE_LOG,
    only_failures: bool = False,
) -> Iterator[OperationLine]:
    """Log the work in the context as one operation on the table ``name``, or on another ``kind`` of object.

    With ``only_failures``, only a failure is logged; the caller logs a success.
    """
    line = OperationLine(logger, kind, name, operation) if logger.isEnabledFor(logging.INFO) else _NO_LINE
    outer = _CURRENT.set(line)
    try:
        yield line
    except BaseException as error:
        line.end(error)
        raise
    finally:
        _CURRENT.reset(outer)
    if not only_failures:
        line.end_without_stream()


def logged(operation: str) -> Callable[[Callable[Concatenate[NamedT, P], R]], Callable[Concatenate[NamedT, P], R]]:
    """Return a decorator that logs each call of a method as an operation, with the fields of its result."""

    def decorated(method: Callable[Concatenate[NamedT, P], R]) -> Callable[Concatenate[NamedT, P], R]:
        @wraps(method)
        def call(self: NamedT, /, *args: P.args, **named: P.kwargs) -> R:
            with operation_line(self._log_name, operation) as line:
                is_dry = named.get("dry_run") is True
                if is_dry:
                    line.add(lambda: {"dry_run": True})
                result = method(self, *args, **named)
                line.add_result(result, dry_run=is_dry)
                return result

        return call

    return decorated


def logged_call(kind: str) -> Callable[[MethodT], MethodT]:
    """Return a decorator that logs each call of a catalog method as an operation on the object of its ``name``."""

    def decorated(method: MethodT) -> MethodT:
        @wraps(method)
        def call(self: object, *args: Any, **named: Any) -> Any:
            name = args[0] if args else named.get("name")
            with operation_line(name, method.__name__, kind=kind, logger=CATALOG_LOG):
                return method(self, *args, **named)

        return cast(MethodT, call)

    return decorated


def log_step(logger: logging.Logger, text: str, *args: object) -> None:
    """Log a step or a retry at DEBUG level. An error among the arguments is shown as one line."""
    if logger.isEnabledFor(logging.DEBUG):
        with suppress(Exception):
            shown = tuple(Failure.of(each, "", "").text if isinstance(each, BaseException) else each for each in args)
            logger.debug("%s", shown_text(text % shown))


def _shown(value: object) -> object:
    """Return a value of a result as a field. Sequences, except of integers, are shown as their length."""
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
