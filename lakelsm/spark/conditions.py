"""A user's condition: as a predicate that leaves files out, and as Spark's filter of rows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakelsm.errors import InvalidInputError
from lakelsm.predicate.parser import parse_where, shown_condition
from lakelsm.predicate.predicate import Predicate
from lakelsm.spark.task_errors import first_line
from lakelsm.types import DataField

_AND = re.compile(r"\band\b", re.IGNORECASE)

#: From so many ANDs on a condition is a single expression to Spark. It would take them apart and put them together
#: again as a chain, whose depth overflows its stack.
_MANY_ANDS = 500


def predicate_of(spark: SparkSession, fields: Sequence[DataField], where: str) -> Predicate:
    """The condition on columns of a table; texts of times are in the session's time zone."""
    return parse_where(where, fields, spark.conf.get("spark.sql.session.timeZone"))


def filtered(frame: DataFrame, where: str) -> DataFrame:
    """The rows that match. Raises InvalidInputError for a condition that Spark does not understand."""
    try:
        if len(_AND.findall(where)) < _MANY_ANDS:
            return frame.where(where)
        return frame.where(F.expr(where).eqNullSafe(True))
    except (PySparkException, Py4JJavaError) as error:
        raise InvalidInputError(f"Condition {shown_condition(where)} is wrong: {first_line(error)}") from error
