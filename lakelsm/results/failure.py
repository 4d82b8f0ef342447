"""An error as a part of a result."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from lakelsm.errors import LakelsmError
from lakelsm.results.result import Result

#: Longest text of an error in characters: Spark's may hold whole stacks.
_MAX_TEXT = 2000


@dataclass(frozen=True, kw_only=True, repr=False)
class Failure(Result):
    """An error as plain values.

    ``step`` is the part of the operation that failed, such as 'the expiry of snapshots'. ``error`` is the name of the
    exception's class, ``kind`` the text of its `ErrorKind` (None for an error of another library), ``text`` its message
    (the class's name if the exception has no text), ``remedy`` what to do.
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
        """The failure of a step by an exception."""
        kind = error.kind.value if isinstance(error, LakelsmError) else None
        return Failure(step=step, error=type(error).__name__, kind=kind, text=error_text(error), remedy=remedy)


def error_values(error: Failure | None) -> dict[str, object]:
    """An error as the fields of a report: the same as those of an operation that raised it."""
    if error is None:
        return {"error": None, "error_class": None, "error_kind": None, "remedy": None}
    return {"error": error.text, "error_class": error.error, "error_kind": error.kind, "remedy": error.remedy}


def error_text(error: BaseException) -> str:
    """The message of an error in one line. It is never empty, and names the class of another library's error."""
    name, text = type(error).__name__, ""
    with suppress(Exception):  # Of an exception whose __str__ is broken the class is left.
        text = " ".join(str(error).split())
    if len(text) > _MAX_TEXT:
        text = text[:_MAX_TEXT] + " …"
    if isinstance(error, LakelsmError):
        return text or name
    return f"{name}: {text}" if text else name
