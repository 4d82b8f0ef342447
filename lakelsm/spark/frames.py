"""The DataFrame that a user passes."""

from __future__ import annotations

from pyspark.sql import DataFrame

from lakelsm.arguments import type_name
from lakelsm.errors import InvalidInputError


def checked_frame(frame: DataFrame) -> DataFrame:
    """Return a frame whose rows tasks can write.

    Its session need not be the table's: ``foreachBatch`` hands over frames of a session of their own.
    """
    kind: type = type(frame)
    if kind.__module__.startswith("pyspark.sql.connect"):
        raise InvalidInputError("frame is of Spark Connect, which lakelsm does not work with: use a classic session.")
    if not issubclass(kind, DataFrame):
        raise InvalidInputError(
            f"frame is a {type_name(kind)}; it must be a Spark DataFrame: write {_remedy(frame)}."
        )
    if frame.sparkSession.sparkContext._jsc is None:
        raise InvalidInputError("frame is of a Spark session that has ended: make it again in one that runs.")
    if frame.isStreaming:
        raise InvalidInputError(
            "frame is a stream: write its batches, frame.writeStream.foreachBatch(lambda batch, batch_id: "
            "table.write(batch, commit_user='…', batch_id=batch_id))."
        )
    return frame


def _remedy(frame: object) -> str:
    package = type(frame).__module__.split(".")[0]
    if package in ("pandas", "pyarrow"):
        return "spark.createDataFrame(frame)"
    if package == "polars":
        return "spark.createDataFrame(frame.to_pandas())"
    if isinstance(frame, str):
        return "spark.table(frame)"
    return "spark.createDataFrame(rows, schema)"
