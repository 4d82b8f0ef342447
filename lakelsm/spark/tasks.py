"""Planned units as Spark tasks: one unit a task, Arrow batches out; and scans of files by Spark itself."""

from __future__ import annotations

import gc
import logging
import pickle
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import TypeVar

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame, DataFrameReader, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from lakelsm.environment import SYSTEM
from lakelsm.errors import LakelsmError
from lakelsm.format.file_names import AttemptNames
from lakelsm.runner.task_messages import TaskMessages
from lakelsm.schema.system_columns import ERROR
from lakelsm.spark.spark_types import from_struct, to_spark_arrow
from lakelsm.spark.task_errors import error_text, translated_errors

Unit = TypeVar("Unit")

#: Seconds to wait for the tasks of a failed job.
_LONGEST_END = 60.0

#: Rows and bytes from which on batches of a frame are handed to its task.
_GATHERED_ROWS = 1 << 16
_GATHERED_BYTES = 8 << 20

_LISTING_JOB_FROM = "spark.sql.sources.parallelPartitionDiscovery.threshold"


#: A file that is missing or damaged is an error, and dates are of one calendar: settings of the session that decide
#: otherwise would change rows.
_READER_OPTIONS = {
    "parquet.page.verify-checksum.enabled": "true",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}

#: Names that Spark resolves to their own column and to nothing else.
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_PATTERN_CHARACTERS = re.compile(r"([{}\[\]*?\\])")


@contextmanager
def listing_on_driver(spark: SparkSession) -> Iterator[None]:
    """Let Spark look up the files of a scan on the driver.

    For more than 32 files it starts a job, which costs far more than the look-up of files that a plan names.
    """
    before = spark.conf.get(_LISTING_JOB_FROM)
    spark.conf.set(_LISTING_JOB_FROM, str(1 << 30))
    try:
        yield
    finally:
        spark.conf.set(_LISTING_JOB_FROM, before or "32")


def parquet_reader(spark: SparkSession, schema: StructType, settings: Mapping[str, str]) -> DataFrameReader:
    """A reader of Parquet files that verifies the checksums of pages which have some, whatever the session is set to.

    ``settings`` are Hadoop's for this reader alone; no plan shows them.
    """
    reader = spark.read.schema(schema).options(**_READER_OPTIONS)
    with unlogged():
        return reader.options(**settings)


@cache
def _exempt_modules_from_collection() -> None:
    """Once a process: what is loaded now stays. Spark's workers collect garbage after each task, which costs 35 ms where
    all modules of pyarrow, pandas and Spark are looked through.
    """
    gc.collect()
    gc.freeze()


def run_units(
    spark: SparkSession,
    units: Sequence[Unit],
    task: Callable[[Unit], Iterator[pa.RecordBatch]],
    schema: str | StructType,
) -> DataFrame:
    """Return the DataFrame of what ``task`` yields for each unit, each unit in a separate task.

    ``units`` and ``task`` must pickle; ``schema`` is the Spark type or DDL of the batches. Nothing runs before an action.
    Each unit is pickled separately, so that a task decodes no other's. In plans it has the name of the task's class.
    """
    packed = [pickle.dumps(unit) for unit in units]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _exempt_modules_from_collection()
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
    """``frame.mapInArrow(task, schema)`` for columns of any names.

    PySpark's own resolves them as ``frame[name]``, which fails on a dot and a backtick, and takes ``*`` for all columns.
    """
    names = frame.columns
    plain = all(_IDENTIFIER.fullmatch(name) for name in names)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _exempt_modules_from_collection()
        return task(batches if plain else (batch.rename_columns(names) for batch in batches))

    if not plain:
        frame = frame.toDF(*(f"column_{number}" for number in range(len(names))))
    return frame.mapInArrow(run, schema)


def collect_after_tasks_end(frame: DataFrame, tag: str) -> list[Row]:
    """``frame.collect()`` which, when it fails, returns only after the job's tasks have ended.

    Spark gives up a job while tasks of it still run, and they may still write files. ``tag`` is the job's alone.
    """
    context = frame.sparkSession.sparkContext
    context.addJobTag(tag)
    try:
        return frame.collect()
    except BaseException:
        context.cancelJobsWithTag(tag)
        deadline = SYSTEM.monotonic() + _LONGEST_END
        while _runs(context, tag) and SYSTEM.monotonic() < deadline:
            SYSTEM.sleep(0.05)
        raise
    finally:
        context.removeJobTag(tag)


def _runs(context: SparkContext, tag: str) -> bool:
    """Whether a task of a tag's jobs runs."""
    tracker = context.statusTracker()
    # PySpark's tracker knows no tags.
    for job in map(tracker.getJobInfo, context._jsc.sc().statusTracker().getJobIdsForTag(tag)):
        for stage in map(tracker.getStageInfo, () if job is None else job.stageIds):
            if stage is not None and stage.numActiveTasks > 0:
                return True
    return False


def read_units(
    spark: SparkSession,
    units: Sequence[Unit],
    task: Callable[[Unit], Iterator[pa.RecordBatch]],
    schema: StructType,
) -> DataFrame:
    """As `run_units`, for a DataFrame that a user runs; all its columns are nullable.

    What Spark raises for an exception of a Python task begins with a traceback. So a LakelsmError is handed over as a
    row, of which an expression makes an error whose first line is the message. The exception follows the row: should a
    condition of the user's leave the row out, the query fails all the same.
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
    return _raising(run_units(spark, units, run, StructType([*shown, StructField(ERROR, StringType())])))


def map_batches(
    frame: DataFrame, task: Callable[[pa.RecordBatch], Iterator[pa.RecordBatch]], added: StructType
) -> DataFrame:
    """The rows that ``task`` makes of each batch of a frame, which may be a stream: the frame's columns, then those of
    ``added``, all of which can be NULL.

    Spark's batches are combined. An error is returned as in `read_units`, by a row: the first of the batch,
    which has a value for each column that must.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in _gathered(batches):
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
    return _raising(map_in_arrow(frame, run, schema))


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches: Spark's have 10,000 rows, and a task may do much once a batch."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + len(batch), size + batch.nbytes
        if rows >= _GATHERED_ROWS or size >= _GATHERED_BYTES:
            yield from _as_one(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield from _as_one(waiting)


def _as_one(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Batches as one, or as many as a column's bytes need."""
    if len(batches) == 1:
        return batches
    joined: list[pa.RecordBatch] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined


def _raising(frame: DataFrame) -> DataFrame:
    """The rows of a frame without the column `ERROR`, of which each text is raised."""
    return frame.where(F.col(ERROR).isNull() | F.raise_error(F.col(ERROR)).cast("boolean")).drop(ERROR)


def _with_error(columns: Sequence[pa.Array], schema: pa.Schema, text: str | None) -> pa.RecordBatch:
    rows = len(columns[0])
    errors = pa.nulls(rows, pa.string()) if text is None else pa.repeat(text, rows)
    return pa.RecordBatch.from_arrays([*columns, errors], names=[*schema.names, ERROR])


def collect_messages(frame: DataFrame, root: str, names: AttemptNames) -> TaskMessages:
    """Run the tasks of ``frame`` (rows of `MESSAGE_SCHEMA`) on the table in ``root``, and join their messages.

    What lakelsm knows of a task's failure is raised as a LakelsmError. No task runs any more when it is.
    """
    with translated_errors(root):
        rows = collect_after_tasks_end(frame, names.uuid_prefix)
    joined = TaskMessages()
    for row in rows:
        joined.add(TaskMessages.of_row(row))
    return joined


def literal_path(path: str) -> str:
    """Return a path as a pattern that means it alone: Spark takes each path for a glob pattern."""
    return _PATTERN_CHARACTERS.sub(r"\\\1", path)


#: Loggers of py4j that show what is sent.
_LOGGERS = ("py4j.clientserver", "py4j.java_gateway")
_lock = Lock()


@contextmanager
def unlogged() -> Iterator[None]:
    """Within, no command to the JVM is logged, of any thread."""
    with _lock:
        loggers = [logger for logger in map(logging.getLogger, _LOGGERS) if not logger.disabled]
        for logger in loggers:
            logger.disabled = True
        try:
            yield
        finally:
            for logger in loggers:
                logger.disabled = False
