"""Planned units as Spark tasks, one for each unit, with Arrow batches as results; and scans of files by Spark itself."""

from __future__ import annotations

import gc
import logging
import pickle
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, Row, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from lakelsm.environment import SYSTEM
from lakelsm.errors import LakelsmError, SparkUnavailableError
from lakelsm.format.file_names import AttemptNames
from lakelsm.runner.task_messages import TaskMessages
from lakelsm.schema.system_columns import ERROR
from lakelsm.spark import functions as F
from lakelsm.spark.connect import is_connect
from lakelsm.spark.functions import of_session
from lakelsm.spark.spark_types import from_struct, to_spark_arrow
from lakelsm.spark.task_errors import error_text, translated_errors
from lakelsm.version import VERSION

if TYPE_CHECKING:
    from pyspark import SparkContext

Unit = TypeVar("Unit")

#: Seconds to wait for the tasks of a failed job.
_MAX_WAIT_SECONDS = 60.0

#: Batches of a frame are combined up to this many rows or bytes before they are passed to a task.
_COMBINED_ROWS = 1 << 16
_COMBINED_BYTES = 8 << 20

_LISTING_JOB_FROM = "spark.sql.sources.parallelPartitionDiscovery.threshold"


#: A missing or damaged file is an error, and all dates are of one calendar. With other settings of the session, rows
#: would change.
_READER_OPTIONS = {
    "parquet.page.verify-checksum.enabled": "true",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}

#: Names that Spark resolves to the column of that name only.
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_PATTERN_CHARACTERS = re.compile(r"([{}\[\]*?\\])")


@contextmanager
def listing_on_driver(spark: SparkSession) -> Iterator[None]:
    """Make Spark look up the files of a scan on the driver, within the block.

    For more than 32 files it would start a job, which costs far more than looking up files that a plan names.
    """
    before = spark.conf.get(_LISTING_JOB_FROM)
    spark.conf.set(_LISTING_JOB_FROM, str(1 << 30))
    try:
        yield
    finally:
        spark.conf.set(_LISTING_JOB_FROM, before or "32")


def parquet_reader(spark: SparkSession, schema: StructType, settings: Mapping[str, str]) -> DataFrameReader:
    """Return a reader of Parquet files that verifies existing page checksums, whatever the session's settings.

    ``settings`` are Hadoop's, for this reader alone; no plan shows them.
    """
    reader = spark.read.schema(schema).options(**_READER_OPTIONS)
    with unlogged():
        return reader.options(**settings)


@cache
def _prepare_worker(version: str) -> None:
    """Check the version of lakelsm in a worker, which may be on another machine than the program's, once a process.

    All loaded modules are exempt from garbage collection: Spark's workers collect garbage after each task, which takes
    35 ms with all modules of pyarrow, pandas and Spark.
    """
    if version != VERSION:
        raise SparkUnavailableError(
            f"Spark's workers have lakelsm {VERSION}, and this program has {version}. Install one version for both."
        )
    gc.collect()
    gc.freeze()


def run_units(
    spark: SparkSession,
    units: Sequence[Unit],
    task: Callable[[Unit], Iterator[pa.RecordBatch]],
    schema: str | StructType,
) -> DataFrame:
    """Return the batches that ``task`` yields for each unit as a DataFrame; each unit is a separate task.

    ``units`` and ``task`` must pickle; ``schema`` is the Spark type or DDL of the batches. Nothing runs before an action.
    Each unit is pickled separately, so that a task decodes its own only. Plans show the name of the task's class.
    """
    packed = [pickle.dumps(unit) for unit in units]
    version = VERSION  # Functions of modules are not copied to workers, values of variables are.

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _prepare_worker(version)
        for batch in batches:
            for index in batch.column(0).to_pylist():
                yield from task(pickle.loads(packed[index]))

    run.__name__ = _name_of(task)
    return spark.range(0, len(packed), 1, max(len(packed), 1)).mapInArrow(run, schema)


def _name_of(task: Callable[..., object]) -> str:
    name: str = getattr(task, "__name__", type(task).__name__)
    return name


def map_in_arrow(
    frame: DataFrame, task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]], schema: StructType | str
) -> DataFrame:
    """Return ``frame.mapInArrow(task, schema)`` for columns of any names.

    PySpark resolves names as ``frame[name]``, which fails on a dot or a backtick, and takes ``*`` for all columns.
    """
    names = frame.columns
    plain = all(_IDENTIFIER.fullmatch(name) for name in names)
    version = VERSION

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _prepare_worker(version)
        return task(batches if plain else (batch.rename_columns(names) for batch in batches))

    if not plain:
        frame = frame.toDF(*(f"column_{number}" for number in range(len(names))))
    return frame.mapInArrow(run, schema)


def collect_after_tasks_end(frame: DataFrame, tag: str) -> list[Row]:
    """Run ``frame.collect()``; if it fails, raise only after the job's tasks have ended.

    Spark gives up a job while tasks still run, and these may still write files. No other job has the tag ``tag``.
    """
    if is_connect(frame):
        return _collected_by_server(frame, tag)
    context = frame.sparkSession.sparkContext
    context.addJobTag(tag)
    try:
        return frame.collect()
    except BaseException:
        context.cancelJobsWithTag(tag)
        deadline = SYSTEM.monotonic() + _MAX_WAIT_SECONDS
        while _runs(context, tag) and SYSTEM.monotonic() < deadline:
            SYSTEM.sleep(0.05)
        raise
    finally:
        context.removeJobTag(tag)


def _collected_by_server(frame: DataFrame, tag: str) -> list[Row]:
    """Run ``frame.collect()`` on a Connect server. If this process gives up, the server cancels the job.

    The server interrupts the tasks of a failed job, and no call of the client shows their state.
    """
    session = frame.sparkSession
    session.addTag(tag)
    try:
        return frame.collect()
    except PySparkException:
        raise
    except BaseException:
        session.interruptTag(tag)
        raise
    finally:
        session.removeTag(tag)


def _runs(context: SparkContext, tag: str) -> bool:
    """Return whether a task of the jobs with a tag runs."""
    tracker = context.statusTracker()
    # PySpark's own tracker has no tags.
    for job in map(tracker.getJobInfo, context._jsc.sc().statusTracker().getJobIdsForTag(tag)):
        for stage in map(tracker.getStageInfo, () if job is None else job.stageIds):
            if stage is not None and stage.numActiveTasks > 0:
                return True
    return False


@of_session
def read_units(
    spark: SparkSession,
    units: Sequence[Unit],
    task: Callable[[Unit], Iterator[pa.RecordBatch]],
    schema: StructType,
) -> DataFrame:
    """Return the batches as `run_units` does, for a DataFrame that a user runs; all its columns are nullable.

    Spark's error for an exception of a Python task begins with a traceback. Therefore a LakelsmError is also returned
    as a row, from which an expression raises an error with the message in its first line. The exception itself follows:
    if a user's condition filters the row out, the query still fails.
    """
    shown = [StructField(field.name, field.dataType) for field in schema]
    arrow = to_spark_arrow(from_struct(StructType(shown)))

    def run(unit: Unit) -> Iterator[pa.RecordBatch]:
        columns = arrow
        try:
            for batch in task(unit):
                columns = batch.schema
                yield _with_error(batch.columns, batch.schema, None)
        except LakelsmError as error:
            yield _with_error([pa.nulls(1, column.type) for column in columns], columns, error_text(error))
            raise

    run.__name__ = _name_of(task)
    return _raise_errors(run_units(spark, units, run, StructType([*shown, StructField(ERROR, StringType())])))


@of_session
def map_batches(
    frame: DataFrame, task: Callable[[pa.RecordBatch], Iterator[pa.RecordBatch]], added: StructType
) -> DataFrame:
    """Return the rows that ``task`` makes of each batch of a frame, which may be a stream: the frame's columns, then
    those of ``added``, all nullable.

    Spark's small batches are combined. An error is returned as a row, as in `read_units`; this row is the first of the
    batch, so that columns which are NOT NULL have a value.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in _combined(batches):
            try:
                for rows in task(batch):
                    yield _with_error(rows.columns, rows.schema, None)
            except LakelsmError as error:
                nothing = [pa.nulls(1, column.type) for column in arrow]
                names = pa.schema([*batch.schema, *arrow])
                yield _with_error([*batch.slice(0, 1).columns, *nothing], names, error_text(error))
                raise

    arrow = to_spark_arrow(from_struct(added))
    schema = StructType([*frame.schema, *added, StructField(ERROR, StringType())])
    return _raise_errors(map_in_arrow(frame, run, schema))


def _combined(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in fewer batches: Spark's have 10,000 rows, and a task may have a high cost for each batch."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + len(batch), size + batch.nbytes
        if rows >= _COMBINED_ROWS or size >= _COMBINED_BYTES:
            yield from _joined(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield from _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return batches as one, or as several if a column is too large for one."""
    if len(batches) == 1:
        return batches
    joined: list[pa.RecordBatch] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined


def _raise_errors(frame: DataFrame) -> DataFrame:
    """Return the rows of a frame without the column `ERROR`, and raise each text in it as an error."""
    return frame.where(F.col(ERROR).isNull() | F.raise_error(F.col(ERROR)).cast("boolean")).drop(ERROR)


def _with_error(columns: Sequence[pa.Array], schema: pa.Schema, text: str | None) -> pa.RecordBatch:
    rows = len(columns[0])
    errors = pa.nulls(rows, pa.string()) if text is None else pa.repeat(text, rows)
    return pa.RecordBatch.from_arrays([*columns, errors], names=[*schema.names, ERROR])


def collect_messages(frame: DataFrame, root: str, names: AttemptNames) -> TaskMessages:
    """Run the tasks of ``frame`` (rows of `MESSAGE_SCHEMA`) on the table in ``root``, and join their messages.

    Known failures are raised as LakelsmError, after all tasks have ended.
    """
    with translated_errors(root):
        rows = collect_after_tasks_end(frame, names.uuid_prefix)
    joined = TaskMessages()
    for row in rows:
        joined.add(TaskMessages.of_row(row))
    return joined


def literal_path(path: str) -> str:
    """Return a pattern that matches only this path: Spark treats each path as a glob pattern."""
    return _PATTERN_CHARACTERS.sub(r"\\\1", path)


#: Loggers of py4j that log each command.
_LOGGERS = ("py4j.clientserver", "py4j.java_gateway")
_lock = Lock()


@contextmanager
def unlogged() -> Iterator[None]:
    """Log no commands to the JVM, in any thread, within the block: they may contain secrets."""
    with _lock:
        loggers = [logger for logger in map(logging.getLogger, _LOGGERS) if not logger.disabled]
        for logger in loggers:
            logger.disabled = True
        try:
            yield
        finally:
            for logger in loggers:
                logger.disabled = False
