"""The rows of a DataFrame as a stream of Arrow batches."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakelsm.frames.frame_reader import frame_reader


def test_rows_of_all_partitions_come_in_their_order(spark: SparkSession) -> None:
    frame = spark.range(0, 1000, 1, 3).selectExpr("1000 - id AS `a.b`", "named_struct('x', array(id)) AS s")
    found = frame_reader(frame.orderBy("`a.b`")).read_all()
    assert found.column("a.b").to_pylist() == list(range(1, 1001))
    assert found.column("s").to_pylist()[0] == {"x": [999]}
    assert frame_reader(frame.where("id < 0")).read_all().num_rows == 0


def test_values_keep_their_types_and_instants_are_in_utc(spark: SparkSession) -> None:
    frame = spark.sql(
        "SELECT TIMESTAMP '2024-01-01 00:00:00+09:00' AS i, TIMESTAMP_NTZ '2024-01-01 00:00:00' AS t, X'01FF' AS b, "
        "1.50BD AS d, map('k', 1) AS m, CAST(NULL AS STRING) AS n"
    )
    rows = frame_reader(frame).read_all()
    assert rows.schema.field("i").type == pa.timestamp("us", "UTC")
    assert rows.to_pylist() == [
        {
            "i": datetime(2023, 12, 31, 15, tzinfo=timezone.utc), "t": datetime(2024, 1, 1), "b": b"\x01\xff",
            "d": Decimal("1.50"), "m": [("k", 1)], "n": None,
        }
    ]  # fmt: skip


def test_an_error_of_a_row_is_raised_by_the_stream(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        frame_reader(spark.sql("SELECT 1 / id FROM range(3)")).read_all()
