"""Queries on Spark: names that stand for frames, braces in the text, and errors."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from lakelsm.errors import InvalidInputError
from lakelsm.frames.sql_frame import query_frame, session_time_zone, with_literals


def test_frames_take_the_places_of_names_and_braces_stay(spark: SparkSession) -> None:
    frames = {"lakelsm_table_0_": spark.range(2), "lakelsm_table_1_": spark.range(1, 3)}
    text = "SELECT a.id, '{x}' AS t FROM lakelsm_table_0_ a JOIN lakelsm_table_1_ b USING (id)"
    assert [tuple(row) for row in query_frame(spark, text, frames).collect()] == [(1, "{x}")]
    assert [tuple(row) for row in query_frame(spark, "SELECT '{}' AS t", {}).collect()] == [("{}",)]


def test_literals_are_columns(spark: SparkSession) -> None:
    row = with_literals(spark.range(1), {"p": "x", "n": None}).first()
    assert row is not None and tuple(row) == (0, "x", None)
    assert session_time_zone(spark) == "UTC"


@pytest.mark.parametrize("text", ["SELECT nope FROM range(1)", "SELECT 1 +", "SELECT * FROM nothing"])
def test_an_error_of_spark_is_one_typed_error(spark: SparkSession, text: str) -> None:
    with pytest.raises(InvalidInputError, match="SQL: "):
        query_frame(spark, text, {})
