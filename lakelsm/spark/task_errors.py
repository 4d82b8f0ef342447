"""Failures of Spark jobs, told as what they are: the one place where task errors become lakelsm's own.

A task's exception reaches the driver as text. Two kinds of text are lakelsm's: the refusal of a row by an expression
(its message begins with `CHECK_MARK`), and a LakelsmError that a Python task raised (its traceback ends with it) or
handed over as a row (`error_text`). A third is Spark's own: a data file of the table that its Parquet reader cannot read,
and workers of another Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException

from lakelsm import errors
from lakelsm.errors import CorruptTableError, InvalidInputError, LakelsmError
from lakelsm.spark.session import SparkUnavailableError, python_remedy

#: Starts the message of every row check.
CHECK_MARK = "lakelsm: "

_RAISED = re.compile(
    r"^(?:\[USER_RAISED_EXCEPTION\] |\S*\.)?lakelsm\.errors\.(\w+): (.*?)(?: *SQLSTATE: \w+)?$", re.MULTILINE
)
_CHECKED = re.compile(r"\[USER_RAISED_EXCEPTION\] " + re.escape(CHECK_MARK) + r"(.*?)(?: SQLSTATE|$)", re.MULTILINE)
_OTHER_PYTHON = re.compile(r"^ModuleNotFoundError: No module named 'lakelsm\b|\[PYTHON_VERSION_MISMATCH\]", re.MULTILINE)
_UNREADABLE = re.compile(
    r"\[(?:FAILED_READ_FILE|PATH_NOT_FOUND)\S*\] .*?(?:reading file|does not exist:) (?:file:)?(/.+?)\."
    r"(?: File does not exist| +SQLSTATE|\s*$)",
    re.MULTILINE,
)


def error_text(error: LakelsmError) -> str:
    """The error as one line that `lakelsm_error` knows again."""
    return f"lakelsm.errors.{type(error).__name__}: {' '.join(str(error).split())}"


@contextmanager
def translated(root: str) -> Iterator[None]:
    """Run a Spark action on the table in directory ``root``; raise what lakelsm knows of its failure as LakelsmError.

    Any other failure passes as it is.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        known = lakelsm_error(str(error), root)
        if known is None:
            raise
        raise known from error


def lakelsm_error(text: str, root: str) -> LakelsmError | None:
    """Return the error of lakelsm that a failed job's text tells of; None when it tells of none."""
    checked = _CHECKED.search(text)
    if checked is not None:
        return InvalidInputError(f"The write was refused and nothing of it is visible: {checked[1]}")
    if _OTHER_PYTHON.search(text) is not None:
        return SparkUnavailableError(
            "Spark's workers run another Python than this program, of another version or without lakelsm: "
            + python_remedy()
        )
    raised = _RAISED.findall(text)
    if raised:
        name, message = raised[-1]
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, LakelsmError):
            return kind(message)
    for found in _UNREADABLE.findall(text):
        path = "/" + found.lstrip("/")  # Spark writes file:/x and file:///x.
        if path.startswith(root.rstrip("/") + "/"):
            return CorruptTableError(
                f"Data file {path} is missing or cannot be read, but the table names it: restore the file, or read "
                "a snapshot from before it."
            )
    return None


def first_line(error: AnalysisException) -> str:
    """What Spark found wrong, without the plan that it prints below."""
    return str(error).splitlines()[0]
