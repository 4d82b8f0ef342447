"""Failures of Spark jobs as errors of lakelsm. No other module converts them.

A task's exception reaches the driver as text. Two kinds of text are lakelsm's own: an expression refused a row (the
message begins with `CHECK_PREFIX`), or a Python task raised a LakelsmError (its traceback ends with it) or returned it as
a row (`error_text`). The others are Spark's: its Parquet reader cannot read a data file, workers run another Python, or a
user's expression fails on a row.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

from pyspark.errors import PySparkException

from lakelsm import errors
from lakelsm.errors import (
    CorruptTableError,
    InvalidInputError,
    LakelsmError,
    SnapshotNotFoundError,
    SparkUnavailableError,
    StorageError,
    StorageUnavailableError,
)
from lakelsm.schema.row_rules import refused_rows
from lakelsm.spark.connect import is_connect_error, lost_server
from lakelsm.spark.session import python_remedy
from lakelsm.version import VERSION

try:
    from py4j.protocol import Py4JError, Py4JJavaError
except ImportError:  # PySpark's client for Spark Connect alone (pyspark-client) has no JVM, and none of its errors.
    Py4JError = Py4JJavaError = type("Py4JError", (Exception,), {})


#: What PySpark raises for a condition or expression that Spark cannot analyze.
ANALYSIS_ERRORS = (PySparkException, Py4JJavaError)

#: The message of every row check begins with it.
CHECK_PREFIX = "lakelsm: "

_RAISED = re.compile(
    r"^(?:.*\[USER_RAISED_EXCEPTION\] |\S*\.)?lakelsm\.errors\.(\w+): (.*?)(?: *SQLSTATE: \w+)?$", re.MULTILINE
)
_CHECKED = re.compile(r"\[USER_RAISED_EXCEPTION\] " + re.escape(CHECK_PREFIX) + r"(.*?)(?: SQLSTATE|$)", re.MULTILINE)
_OTHER_PYTHON = re.compile(r"^ModuleNotFoundError: No module named 'lakelsm\b|\[PYTHON_VERSION_MISMATCH\]", re.MULTILINE)
#: SQLSTATE classes 'data exception' and 'raised by an expression', and errors without an SQLSTATE.
_FAILING_EXPRESSION = re.compile(
    r"(\[[A-Z_.]+\] .*?) *SQLSTATE: (?:22|P0)|(\[INVALID_FORMAT\S*\] .*?) *SQLSTATE|(PatternSyntaxException: .*)"
)
#: The conditions of a job that `cancelJobsWithTag`, `interruptAll` or an administrator has cancelled.
_CANCELLED = re.compile(r"\[(SPARK_JOB_CANCELLED|OPERATION_CANCELED)\]")
_SERVER_REMEDY = (
    f"Install lakelsm {VERSION} for Python {sys.version_info.major}.{sys.version_info.minor} where the Connect server "
    "runs its workers, or ship it (docs/spark-connect.md)."
)
_DISK_FULL = re.compile(r"java\.io\.\w+: .*?(No space left on device|Disk quota exceeded)")
#: Messages of the operating system when it refuses a file to Java, with the remedy.
_REFUSALS = {
    "Permission denied": "give Spark's processes the permission to read it",
    "Too many open files": "raise the limit of open files (ulimit -n) of Spark's processes",
    "Input/output error": "check the disk",
}
_REFUSED = re.compile(rf"java\.io\.\w+: (\S+ \(({'|'.join(_REFUSALS)})\))")
_UNREADABLE = re.compile(
    r"\[(FAILED_READ_FILE|PATH_NOT_FOUND)\S*\] .*?(?:reading file|does not exist:) (?:file:)?((?:s3a:/)?/.+?)\."
    r"(?: File does not exist| +SQLSTATE|\s*$)",
    re.MULTILINE,
)
#: The store's answer in messages of S3's connector.
_STORE_ANSWERS = re.compile(r"(s3a://\S+?): .*Status Code: (\d{3})")


def error_text(error: LakelsmError) -> str:
    """Return the error as one line that `lakelsm_error` can parse."""
    return f"lakelsm.errors.{type(error).__name__}: {' '.join(str(error).split())}"


@contextmanager
def translated_errors(root: str) -> Iterator[None]:
    """Convert known failures of a Spark action on the table in directory ``root`` to LakelsmError.

    The loss of Spark's JVM is one of them. Any other failure is raised unchanged.
    """
    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        known = lost_session(error) or lakelsm_error(str(error), root, is_connect_error(error))
        if known is None:
            raise
        raise known from error


def lost_session(error: Exception) -> SparkUnavailableError | None:
    """Return the error for a JVM or Connect server that does not answer any more; None for any other error."""
    if isinstance(error, PySparkException):
        return lost_server(error)
    answered = isinstance(error, Py4JJavaError) or "Trace:" in str(error)
    if answered or not isinstance(error, (Py4JError, ConnectionError)):
        return None
    return SparkUnavailableError(
        "Spark's JVM has ended or does not answer. Unfinished work is not visible, and earlier commits are safe. Read "
        "its log (it may need more memory: spark.driver.memory), and run it again with a new session in a new process."
    )


def lakelsm_error(text: str, root: str, is_connect: bool = False) -> LakelsmError | None:
    """Return the error of lakelsm in the text of a failed job, or None. ``is_connect``: the job ran on Spark Connect."""
    checked = _CHECKED.search(text)
    if checked is not None:
        return refused_rows(checked[1])
    if _OTHER_PYTHON.search(text) is not None:
        return SparkUnavailableError(
            "Spark's workers run another Python than this program: another version, or one without lakelsm. "
            + (_SERVER_REMEDY if is_connect else python_remedy())
        )
    raised = _RAISED.findall(text)
    if raised:
        name, message = raised[-1]
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, LakelsmError):
            # The snapshot existed when the read was planned.
            return SnapshotNotFoundError(message, was_removed=True) if kind is SnapshotNotFoundError else kind(message)
    full = _DISK_FULL.search(text)
    if full is not None:
        return StorageError(
            f"Spark's disk is full ({full[1]}), and nothing of this commit is visible. Free space below spark.local.dir, "
            "where Spark keeps shuffled and sorted rows, or set another directory, and run it again."
        )
    # Spark also reports a file as unreadable if the system or the store refuses it. The file then has no fault.
    refused = _REFUSED.search(text)
    if refused is not None:
        return StorageError(
            f"The operating system refuses a file to Spark ({refused[1]}): {_REFUSALS[refused[2]]}, and run it again."
        )
    answered = _STORE_ANSWERS.search(text)
    if answered is not None and answered[2] != "404":
        return _refused_by_store(answered[1], answered[2])
    for kind_of_failure, found in _UNREADABLE.findall(text):
        # Spark writes file:/x and file:///x, percent-encodes the names of files that it reads, and names S3 objects s3a:.
        written = unquote(found) if kind_of_failure == "FAILED_READ_FILE" else found
        path = "s3" + written[3:] if written.startswith("s3a:") else "/" + written.lstrip("/")
        if path.startswith(root.rstrip("/") + "/"):
            return CorruptTableError(
                f"Data file {path} is missing or cannot be read, but the table needs it. Restore the file, or read an "
                "older snapshot."
            )
    if answered is not None:
        return _refused_by_store(answered[1], answered[2])
    if _CANCELLED.search(text) is not None:
        return SparkUnavailableError(
            "Spark has cancelled the job by a request of this or another program. Unfinished work is not visible, and "
            "earlier commits are safe; run it again."
        )
    failing = _FAILING_EXPRESSION.search(text)
    if failing is not None:
        reason = next(filter(None, failing.groups()))
        return InvalidInputError(f"An expression fails on a row of the DataFrame. Nothing is committed: {reason}")
    return None


def _refused_by_store(path: str, status: str) -> StorageError:
    """Return the error for an answer of the store to Spark's connector."""
    if status == "429" or status.startswith("5"):
        return StorageUnavailableError(
            f"{path}: the store has an internal error ({status}) for Spark's connector. Run it again later."
        )
    return StorageError(
        f"{path}: the store refuses Spark's connector ({status}). Give the credentials (docs/object-stores.md) the "
        "permission to list and read there, or fix the cause, and run it again."
    )


def first_line(error: PySparkException | Py4JJavaError) -> str:
    """Return Spark's message without the plan and the Java stack below it."""
    text = error.java_exception.toString() if isinstance(error, Py4JJavaError) else str(error)
    return next((line for line in str(text).splitlines() if line.strip()), "")  # A syntax error begins with a blank line.
