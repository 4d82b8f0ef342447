"""The source of a merge on Spark: it is computed once, and its values in the columns of the key are summarized."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame

from lakelsm.errors import InvalidInputError
from lakelsm.frames.prepare import value_type
from lakelsm.plan.merge_pruning import SourceValues
from lakelsm.spark.connect import as_active, is_connect
from lakelsm.spark.expressions import quoted_all
from lakelsm.spark.functions import functions_of, of_session
from lakelsm.spark.task_errors import translated_errors
from lakelsm.spark.tasks import map_in_arrow
from lakelsm.types import DataType

_PART = "part"


def source_types(frame: DataFrame) -> Iterator[tuple[str, DataType | None]]:
    """Yield the columns of a frame and their types; None for a type that Paimon does not have."""
    for field in frame.schema.fields:
        try:
            kind = value_type(field.dataType)
        except InvalidInputError:
            kind = None
        yield field.name, kind


@contextmanager
def computed_once(frame: DataFrame) -> Iterator[DataFrame]:
    """Yield a frame with the rows of ``frame``, which are computed once, at its first use, and kept until the block ends.

    A frame with ``rand()`` or a Python function can return other rows each time, and files can change between two reads.
    Spark does not find persisted rows of such a frame again in another query, so that ``persist`` does not suffice. If
    an executor is lost, the query fails instead of computing its rows again.
    """
    with functions_of(frame), as_active(frame.sparkSession):
        kept = frame.localCheckpoint(eager=False)
    try:
        yield kept
    finally:
        if not is_connect(kept):  # A Connect server drops the rows when it drops the frame.
            kept._jdf.queryExecution().analyzed().rdd().unpersist(False)


@of_session
def source_values(frame: DataFrame, names: Mapping[str, bool], root: str) -> SourceValues:
    """Return the values of columns of a frame, in bounded memory: each task returns one part.

    ``names`` are as in `SourceValues.of_columns`, ``root`` is the directory of the table, for errors.
    """
    parts = map_in_arrow(frame.select(*quoted_all(names)), partial(_parts, names=names), f"{_PART} binary")
    # One task combines the parts, so that the driver does not hold one for each task of the frame.
    whole = map_in_arrow(parts.repartition(1), partial(_combined, names=names), f"{_PART} binary")
    with translated_errors(root):
        rows = whole.collect()
    return _merged((row[0] for row in rows), names)


def _parts(batches: Iterator[pa.RecordBatch], names: Mapping[str, bool]) -> Iterator[pa.RecordBatch]:
    values = SourceValues.of_columns(names)
    for batch in batches:
        values.add(batch)
    yield _packed(values)


def _combined(batches: Iterator[pa.RecordBatch], names: Mapping[str, bool]) -> Iterator[pa.RecordBatch]:
    yield _packed(_merged((part.as_py() for batch in batches for part in batch.column(0)), names))


def _merged(parts: Iterator[bytes], names: Mapping[str, bool]) -> SourceValues:
    values = SourceValues.of_columns(names)
    for part in parts:
        values.merge(pickle.loads(part))
    return values


def _packed(values: SourceValues) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([pickle.dumps(values)], pa.binary())], [_PART])
