"""An error as part of a result."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from lakelsm.errors import LakelsmError
from lakelsm.results.result import Result

#: Maximum length of an error text in characters: Spark's errors may contain whole stacks.
_MAX_TEXT = 2000


@dataclass(frozen=True, kw_only=True, repr=False)
class Failure(Result):
    """An error as plain values.

    ``step`` is the part of the operation that failed, such as 'the expiry of snapshots'. ``error`` is the name of the
    exception class, ``kind`` the text of its `ErrorKind` (None for an error of another library), ``text`` the message
    (or the class name, if the message is empty), ``remedy`` the recommended action.
    """

    step: str
    error: str
    kind: str | None
    text: str
    remedy: str

    def __str__(self) -> str:
        return self.text

    @staticmethod
    def of(error: BaseException, step: str, remedy: str) -> Failure:
        """Return the failure of a step by an exception."""
        kind = error.kind.value if isinstance(error, LakelsmError) else None
        return Failure(step=step, error=type(error).__name__, kind=kind, text=error_text(error), remedy=remedy)


def error_values(error: Failure | None) -> dict[str, object]:
    """Return an error as the fields of a report. They equal those of an operation that raised the error."""
    if error is None:
        return {"error": None, "error_class": None, "error_kind": None, "remedy": None}
    return {"error": error.text, "error_class": error.error, "error_kind": error.kind, "remedy": error.remedy}


def error_text(error: BaseException) -> str:
    """Return the message of an error in one line, never empty; the class name precedes an error of another library."""
    name, text = type(error).__name__, ""
    with suppress(Exception):  # If __str__ of the exception raises, the text is the class name.
        text = " ".join(str(error).split())
    if len(text) > _MAX_TEXT:
        text = text[:_MAX_TEXT] + " …"
    if isinstance(error, LakelsmError):
        return text or name
    return f"{name}: {text}" if text else name
