"""Times as the Spark session reads them."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakelsm.errors import InvalidInputError


def millis_of(spark: SparkSession, timestamp: str | datetime) -> int:
    """Epoch millis of a time in the session's zone; Spark reads the text, so its formats are Spark's."""
    if isinstance(timestamp, datetime):
        timestamp = timestamp.isoformat(sep=" ")
    literal = F.try_to_timestamp(F.lit(timestamp))
    millis = spark.range(1).select(F.unix_millis(literal)).collect()[0][0]
    if millis is None:
        raise InvalidInputError(f"timestamp {timestamp!r} is no time: write 'YYYY-MM-DD HH:MM:SS'.")
    return int(millis)
