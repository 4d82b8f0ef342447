"""Starts a streaming query on Spark whose batches a function writes, and identifies its batches.

Spark does not show the settings of a `DataStreamWriter`. They are read from its fields, because a query that lacks a
checkpoint, or has another output mode than the sink, would lose or repeat rows without an error.

PySpark's modules of classic streams need Py4J, which a client of Spark Connect may lack. So they are not imported before
it is known that the stream is a classic one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lakelsm.arguments import invalid_argument, wrong_argument
from lakelsm.errors import InvalidInputError, SparkUnavailableError, UnsupportedFeatureError
from lakelsm.spark.connect import is_connect
from lakelsm.spark.session import checked_rows
from lakelsm.spark.task_errors import lost_session

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

#: Options of a writer and settings of a session. Spark compares names of options in lower case.
_CHECKPOINT, _NAME = "checkpointLocation", "queryName"
_DEFAULT_CHECKPOINTS = "spark.sql.streaming.checkpointLocation"
_COMPLETE = "complete"
#: Local property of threads of Spark that run a batch of a streaming query: the id of the query.
_QUERY_ID = "sql.streaming.queryId"
_ADAPTIVE = "spark.sql.adaptive.enabled"
#: Texts of Java's errors in a batch whose query is stopped: the thread is interrupted, and its jobs are cancelled.
_STOPPED = re.compile(r"java\.lang\.InterruptedException|cancelled part of cancelled job group")
#: Spark searches the text of Python's error for this one to see that the query was stopped. It is short, because Spark's
#: regular expression overflows the stack on the trace of the original error.
_STOPPED_TEXT = (
    "The query was stopped in a batch, which it repeats when it starts again. "
    "py4j.protocol.Py4JJavaError: An error occurred while calling foreachBatch: java.lang.InterruptedException"
)
_ADD_CHECKPOINT = "Set df.writeStream.option('checkpointLocation', '…')"


@dataclass(frozen=True)
class StreamQuery:
    """A query that a caller described, and that is not started. ``frame`` is its stream."""

    frame: DataFrame
    writer: DataStreamWriter

    @staticmethod
    def checked(stream: object, *, overwrite: bool) -> StreamQuery:
        """Return the query of a DataStreamWriter or a streaming DataFrame; with ``overwrite`` in output mode 'complete'.

        Raises InvalidInputError if it is not a stream, if its checkpoint location is missing, and for settings that
        a sink of batches does not have.
        """
        if is_connect(stream):
            raise UnsupportedFeatureError(
                "Spark Connect: Table.write_stream is not supported. Use writeStream.format('lakelsm'), or a classic "
                "session."
            )
        given = _writer(stream)
        rows = stream if given is None else given._df
        if not isinstance(rows, DataFrame):
            raise wrong_argument("stream", stream, "a streaming DataFrame or its writeStream")
        frame = checked_rows("stream", rows)
        if not frame.isStreaming:
            raise invalid_argument("stream", "the DataFrame is not a stream.", "Use Table.write.")
        writer = given or frame.writeStream
        settings = _Settings(writer)
        _check_checkpoint(settings, frame.sparkSession)
        _check_mode(settings, overwrite)
        if settings.has_function:
            raise invalid_argument("stream", "it has a function of foreach or foreachBatch.", "Leave it out.")
        return StreamQuery(frame, writer.outputMode(_COMPLETE) if overwrite else writer)

    def start(self, write: Callable[[DataFrame, int, str], None]) -> StreamingQuery:
        """Start the query; ``write`` gets the rows, the batch id and the query id of each batch.

        Raises InvalidInputError if Spark refuses the query.
        """

        def run(batch: DataFrame, batch_id: int) -> None:
            try:
                query_id = query_id_of(batch.sparkSession)
                with _adaptive(batch.sparkSession):
                    write(batch, batch_id, query_id)
            except Exception as error:  # Of Spark, of Py4J, or of a task in the words of lakelsm.
                if _STOPPED.search(str(error)) is None:
                    raise
                raise SparkUnavailableError(_STOPPED_TEXT) from None

        from py4j.protocol import Py4JError

        try:
            return self.writer.foreachBatch(run).start()
        except (PySparkException, Py4JError, ConnectionError) as error:
            lost = lost_session(error)
            if lost is not None:
                raise lost from error
            raise InvalidInputError(f"stream: Spark cannot start the query: {_reason(error)}") from error
        finally:
            _Settings(self.writer).remove_function()


def _writer(stream: object) -> DataStreamWriter | None:
    """Return the stream if it is a DataStreamWriter of a classic session."""
    loaded = sys.modules.get("pyspark.sql.streaming.readwriter")
    is_writer = loaded is not None and isinstance(stream, loaded.DataStreamWriter)
    return cast("DataStreamWriter", stream) if is_writer else None


def compute(batch: DataFrame) -> None:
    """Compute the rows of a batch that was committed before: a query that does not write its state again fails."""
    batch.write.format("noop").mode("overwrite").save()


def _reason(error: Exception) -> str:
    """Return the first line of an error of Spark, or of the Java error in it."""
    java = getattr(error, "java_exception", None)
    text = error.getMessage() if isinstance(error, PySparkException) else java and java.toString()
    return str(text or error).partition("\n")[0]


@contextmanager
def _adaptive(session: SparkSession) -> Iterator[None]:
    """Let Spark join small partitions of the write, within the block.

    Spark turns it off in the session of a streaming query, because state has a fixed number of partitions. The rows of
    a batch are planned already, and a shuffle of them would have hundreds of tasks.
    """
    before = session.conf.get(_ADAPTIVE)
    session.conf.set(_ADAPTIVE, "true")
    try:
        yield
    finally:
        session.conf.set(_ADAPTIVE, before or "false")


def query_id_of(session: SparkSession) -> str:
    """Return the id of the streaming query whose batch this thread runs."""
    found = session.sparkContext.getLocalProperty(_QUERY_ID)
    if not found:
        raise SparkUnavailableError("Spark gives this batch no query id. Use PySpark 4.0 or newer, with its own streams.")
    return str(found)


class _Settings:
    """The settings of a DataStreamWriter of a classic session."""

    def __init__(self, writer: DataStreamWriter) -> None:
        self._writer: Any = writer._jwrite

    def option(self, name: str) -> str | None:
        """Return an option of the query, or None if it is not set or blank."""
        found = self._field("extraOptions").get(name)
        text = str(found.get()) if found.isDefined() else ""
        return text if text.strip() else None

    @property
    def mode(self) -> str:
        """The output mode in lower case; ``append`` if the caller did not set it."""
        return str(self._field("outputMode").toString()).lower()

    @property
    def has_function(self) -> bool:
        """Whether the caller has set a function that processes rows or batches."""
        return any(self._field(name) is not None for name in ("foreachWriter", "foreachBatchWriter"))

    def remove_function(self) -> None:
        """Remove the function of batches, so that the caller can start the query again. A running query keeps it."""
        self._accessible("foreachBatchWriter").set(self._writer, None)

    def _field(self, name: str) -> Any:
        return self._accessible(name).get(self._writer)

    def _accessible(self, name: str) -> Any:
        field = self._writer.getClass().getDeclaredField(name)
        field.setAccessible(True)
        return field


def _check_checkpoint(settings: _Settings, session: SparkSession) -> None:
    """Raise InvalidInputError unless a restart of the query finds its checkpoint again."""
    if settings.option(_CHECKPOINT) is not None:
        return
    if not session.conf.get(_DEFAULT_CHECKPOINTS, None):
        raise invalid_argument("stream", "its checkpoint location is missing.", f"{_ADD_CHECKPOINT}.")
    if settings.option(_NAME) is None:
        raise invalid_argument(
            "stream",
            f"without a name each start has a new checkpoint below {_DEFAULT_CHECKPOINTS}.",
            f"{_ADD_CHECKPOINT}, or queryName('…').",
        )


def _check_mode(settings: _Settings, overwrite: bool) -> None:
    mode = settings.mode
    if overwrite and mode == "update":
        raise invalid_argument("overwrite", "the query has the output mode 'update'.", "Use 'complete'.")
    if not overwrite and mode == _COMPLETE:
        raise invalid_argument(
            "overwrite", "the query has the output mode 'complete'.", "Pass overwrite=True, or use 'update'."
        )
