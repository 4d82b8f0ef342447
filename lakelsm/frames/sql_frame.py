"""Queries on Spark: each table of the query is a DataFrame, and Spark runs the text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from lakelsm.errors import InvalidInputError, TableNotFoundError

#: Spark's condition of an error for a name that is neither a table nor a view.
_NO_TABLE = "TABLE_OR_VIEW_NOT_FOUND"


def query_frame(spark: SparkSession, sql: str, frames: Mapping[str, DataFrame]) -> DataFrame:
    """Return the DataFrame of a query in which names stand for frames.

    Raises InvalidInputError, with Spark's message, for a query that Spark cannot analyze.
    """
    text = sql.replace("{", "{{").replace("}", "}}")
    for name in frames:
        text = text.replace(name, "{" + name + "}")
    try:
        return spark.sql(text if frames else sql, **dict[str, Any](frames))
    except PySparkException as error:
        message = (error.getMessage() or str(error)).partition("\n")[0]
        found = TableNotFoundError if error.getCondition() == _NO_TABLE else InvalidInputError
        raise found(f"SQL: {message.rstrip('.')}.") from error


def with_literals(frame: DataFrame, values: Mapping[str, object]) -> DataFrame:
    """Return a frame with columns of one value each."""
    return frame.withColumns({name: lit(value) for name, value in values.items()})


def session_time_zone(spark: SparkSession) -> str | None:
    """Return the time zone of a session."""
    return spark.conf.get("spark.sql.session.timeZone")
