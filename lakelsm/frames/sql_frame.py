"""Queries on Spark: each table of the query is a DataFrame, and Spark runs the text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import AtomicType, StringType

from lakelsm.errors import InvalidInputError, TableNotFoundError
from lakelsm.frames.system_frames import without_times
from lakelsm.frames.task_scan import ROW_INDEX
from lakelsm.plan.read_plan import bucket_of
from lakelsm.schema.system_columns import FILE_NAME
from lakelsm.spark import functions as F
from lakelsm.spark.connect import analyzed, raise_lost_server
from lakelsm.spark.expressions import quoted, union_all
from lakelsm.spark.functions import of_session

#: Spark's condition of an error for a name that is neither a table nor a view.
_NO_TABLE = "TABLE_OR_VIEW_NOT_FOUND"


@of_session
def query_frame(spark: SparkSession, sql: str, frames: Mapping[str, DataFrame]) -> DataFrame:
    """Return the DataFrame of a query in which names stand for frames.

    Raises InvalidInputError, with Spark's message, for a query that Spark cannot analyze.
    """
    text = sql.replace("{", "{{").replace("}", "}}")
    for name in frames:
        text = text.replace(name, "{" + name + "}")
    try:
        return analyzed(spark.sql(text if frames else sql, **dict[str, Any](frames)))
    except PySparkException as error:
        raise_lost_server(error)
        message = (error.getMessage() or str(error)).partition("\n")[0]
        found = TableNotFoundError if error.getCondition() == _NO_TABLE else InvalidInputError
        raise found(f"SQL: {message.rstrip('.')}.") from error


@of_session
def with_literals(frame: DataFrame, values: Mapping[str, object]) -> DataFrame:
    """Return a frame with columns of one value each."""
    return frame.withColumns({name: F.lit(value) for name, value in values.items()})


@of_session
def frame_of_rows(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Return rows of the caller. Times without a zone stay so, whatever the session's default for them is."""
    shown = without_times(rows)
    kinds = pa.schema([pa.field(field.name, _micros(field.type)) for field in shown.schema])
    # Spark has microseconds.
    columns = [column.cast(kind, safe=False) for column, kind in zip(shown.columns, kinds.types)]
    table = pa.Table.from_arrays(columns, schema=kinds)
    return spark.createDataFrame(table, from_arrow_schema(kinds, prefer_timestamp_ntz=True))


def _micros(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else kind


@of_session
def with_metadata(
    spark: SparkSession,
    frames: Sequence[tuple[str | int, DataFrame]],
    names: Sequence[str],
    *,
    made: Mapping[str, str],
    partition: Sequence[str],
) -> DataFrame:
    """Return the rows of all parts of a table with the columns ``names``.

    ``frames`` have the number of their bucket, or its directory if they are those of `located_frame`. ``made`` are the
    columns that are made, with their kinds: the 'partition', 'bucket', 'path' or 'index' of the row.
    """
    kinds: Mapping[str, Callable[[str | int], Column]] = {
        "partition": lambda part: F.struct(*map(quoted, partition)),
        "bucket": lambda part: F.lit(bucket_of(part) if isinstance(part, str) else part),
        "path": lambda part: F.concat(F.lit(f"{part}/"), quoted(FILE_NAME)),
        "index": lambda part: quoted(ROW_INDEX),
    }
    return union_all(
        [
            frame.select(*((kinds[made[name]](part) if name in made else quoted(name)).alias(name) for name in names))
            for part, frame in frames
        ]
    )


@of_session
def with_texts(frame: DataFrame, positions: Sequence[int]) -> DataFrame:
    """Return a frame in which some columns are texts, where their values are atomic, as INSERT casts them in Spark."""
    kinds = [field.dataType for field in frame.schema.fields]
    changed = [at for at in positions if isinstance(kinds[at], AtomicType) and not isinstance(kinds[at], StringType)]
    if not changed:
        return frame
    plain = frame.toDF(*(f"c{at}" for at in range(len(kinds))))
    cast = (plain[f"c{at}"].cast("string") if at in changed else plain[f"c{at}"] for at in range(len(kinds)))
    return plain.select(*cast).toDF(*frame.columns)


@of_session
def session_time_zone(spark: SparkSession) -> str | None:
    """Return the time zone of a session."""
    return spark.conf.get("spark.sql.session.timeZone")
