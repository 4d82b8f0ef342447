"""Spark Connect: sessions whose JVM runs in a server, which this process reaches through PySpark's client alone.

Their class is unrelated to that of a classic session, and their DataFrames are a separate subclass. A process may have
sessions of both kinds. Nothing here loads the client, which needs packages of the extra `pyspark[connect]`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from lakelsm.errors import InvalidInputError, SparkUnavailableError, UnsupportedFeatureError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CLASSES = "pyspark.sql.connect."
_ERRORS = "pyspark.errors.exceptions.connect"
#: Conditions of errors for a server, session or operation that has ended, and the texts of failed calls of gRPC.
_LOST_SERVER = re.compile(r"^(NO_ACTIVE_SESSION|RETRIES_EXCEEDED|INVALID_HANDLE)\b|\bStatusCode\.[A-Z]")


def is_connect(value: object) -> bool:
    """Return whether a session, a DataFrame or a column is one of Spark Connect."""
    return any(kind.__module__.startswith(_CLASSES) for kind in type(value).__mro__)


def is_connect_error(error: BaseException) -> bool:
    """Return whether a Connect server, or the connection to it, has raised an error."""
    return any(kind.__module__ == _ERRORS for kind in type(error).__mro__)


def lost_server(error: PySparkException) -> SparkUnavailableError | None:
    """Return the error for a Connect server that has ended, or that refuses calls; None for any other error."""
    if not _LOST_SERVER.search(f"{error.getCondition()} {error}"):
        return None
    return SparkUnavailableError(
        "The Spark Connect server does not answer, refuses the call, or has ended the session. Unfinished work is not "
        f"visible, and earlier commits are safe; run it again in a new session: {' '.join(str(error).split())[:200]}"
    )


def raise_lost_server(error: Exception) -> None:
    """Raise the error for a Connect server that has ended, or that refuses calls, if ``error`` is one."""
    lost = lost_server(error) if isinstance(error, PySparkException) else None
    if lost is not None:
        raise lost from error


def active_connect_session() -> SparkSession | None:
    """Return the active Connect session of this thread, else that of the process."""
    client: Any = sys.modules.get("pyspark.sql.connect.session")
    if client is None:
        return None
    try:
        session: SparkSession = client.SparkSession.active()
    except PySparkException:  # There is none, or it has ended.
        return None
    return session


@contextmanager
def as_active(session: SparkSession) -> Iterator[None]:
    """Make a Connect session the active one of this thread within the block; a classic session changes nothing.

    PySpark (4.0 to 4.3) binds the rows of a checkpoint to the active session, whatever the session of the DataFrame is.
    """
    if not is_connect(session):
        yield
        return
    connect: Any = session
    active = connect._active_session
    before = getattr(active, "session", None)
    active.session = session
    try:
        yield
    finally:
        active.session = before


def has_ended(session: SparkSession) -> bool:
    """Return whether a session of either kind was stopped in this process."""
    if is_connect(session):
        connect: Any = session
        return bool(connect.is_stopped)
    return session.sparkContext._jsc is None


def is_same_session(one: SparkSession, other: SparkSession) -> bool:
    """Return whether DataFrames of two sessions can be used together. Classic sessions of a process share a JVM."""
    if not is_connect(one) or not is_connect(other):
        return is_connect(one) == is_connect(other)
    first: Any = one
    second: Any = other
    return bool(first.session_id == second.session_id)


def analyzed(frame: DataFrame) -> DataFrame:
    """Return a DataFrame that Spark can analyze; raises PySpark's error for any other.

    A classic session analyzes each DataFrame when it is created, a Connect session when its schema is requested.
    """
    if is_connect(frame):
        assert frame.schema is not None
    return frame


def require_classic(session: SparkSession, what: str, instead: str) -> None:
    """Raise UnsupportedFeatureError for a session without a JVM in this process. ``instead`` is the remedy."""
    if is_connect(session):
        raise UnsupportedFeatureError(f"Spark Connect: {what} is not supported. {instead}")


def check_same_session(argument: str, frame: DataFrame, session: SparkSession) -> None:
    """Raise InvalidInputError for a DataFrame of another session, which Spark cannot combine with this one."""
    if not is_same_session(frame.sparkSession, session):
        raise InvalidInputError(
            f"{argument}: the DataFrame belongs to another Spark session than the table. Create it in the session of the "
            "table, or open the table with the session of the DataFrame (spark=…)."
        )
