"""System tables and inspections as DataFrames."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from lakelsm import Catalog
from tests.spark_frames import frame_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_snapshots_report_their_operations_and_partitions_their_values(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = Catalog(str(tmp_path), spark).create_table(
        "db.reported",
        "dt DATE, id INT, v STRING",
        primary_key=["dt", "id"],
        partition_by=["dt"],
        options={"bucket": "1", "write-only": "true", "overwrite-upgrade": "false", "changelog-producer": "input"},
    )
    day = date(2025, 12, 31)
    rows = [(day, 1, "a"), (day, 2, "b")]
    table.write(frame_of(spark, rows, "dt DATE, id INT, v STRING"))
    table.delete("id = 1")
    table.compact(full=True)
    table.overwrite(frame_of(spark, rows[:1], "dt DATE, id INT, v STRING"), {"dt": day})
    table.overwrite(spark.createDataFrame([], "dt DATE, id INT, v STRING"))
    columns = ["commit_kind", "operation", "delta_record_count", "changelog_record_count"]
    counts = ["added_file_count", "deleted_file_count"]
    assert [tuple(row) for row in table.inspect.snapshots().to_spark().select(*columns, *counts).collect()] == [
        ("APPEND", "WRITE", 2, 2, 1, 0),
        ("APPEND", "DELETE", 1, 1, 1, 0),
        ("COMPACT", "COMPACT", -2, 0, 1, 2),
        ("OVERWRITE", "OVERWRITE", 0, 0, 1, 1),
        ("OVERWRITE", "OVERWRITE", 0, 0, 0, 0),
    ]
    assert {row.partition for row in table.inspect.files().to_spark().collect()} == {"dt=2025-12-31"}
    assert {row.partition for row in table.inspect.buckets().to_spark().collect()} == {"dt=2025-12-31"}
    table.overwrite(spark.createDataFrame([], "id INT, v STRING"), {"dt": day})
    assert table.read().count() == 0 and table.inspect.files().to_spark().count() == 0


def test_the_frame_of_shown_rows_has_times_as_milliseconds_of_the_day(spark: SparkSession, tmp_path: Path) -> None:
    columns = "id INT, t TIME(3), a ARRAY<TIME(0)>, r ROW<t TIME(3)>, m MAP<STRING, TIME(3)>, s MULTISET<STRING>"
    table = Catalog(str(tmp_path), spark).create_table("db.t", columns, primary_key="id")
    assert table.head().to_spark().collect() == []
    noon = "12:00"
    table.write([{"id": 1, "t": noon, "a": [noon, None], "r": {"t": noon}, "m": {"x": noon}, "s": {"y": 2}}])
    (row,) = table.head().to_spark().collect()
    millis = 43_200_000
    assert row.asDict(True) == {
        "id": 1, "t": millis, "a": [millis, None], "r": {"t": millis}, "m": {"x": millis}, "s": {"y": 2},
    }  # fmt: skip
