"""Streaming queries on tables in a Spark session: rows, limits, restarts, triggers, tables by name, and errors."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import datasource

from lakelsm import Catalog, Table
from lakelsm.schema_changes import AddColumn
from tests.stream_queries import run_stream
from tests.typed_values import TYPED_VALUES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.skipif(not hasattr(datasource, "ReadAllAvailable"), reason="limits: PySpark 4.2 and later")

NESTED = "a ARRAY<DECIMAL(5, 2)>, m MAP<STRING, TIMESTAMP(9)>, r ROW<x TIME NOT NULL, z ARRAY<CHAR(3)>>, mu MULTISET<INT>"
ONE_FILE = {"read.stream.maxFilesPerTrigger": "1"}


def created(tmp_path: Path, spark: SparkSession, columns: str = "id INT, n INT") -> Table:
    options = {"bucket": "1", "write-only": "true"}
    return Catalog(str(tmp_path / "wh"), spark).create_table("ds.t", columns, primary_key="id", options=options)


def load(spark: SparkSession, tmp_path: Path, **options: str) -> DataFrame:
    return spark.readStream.format("lakelsm").options(**options).load(str(tmp_path / "wh" / "ds.db" / "t"))


def test_batches_are_limited_and_a_restart_continues_also_after_a_compaction_and_a_new_column(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = created(tmp_path, spark)
    for key in range(2):
        table.write([{"id": key, "n": key}])
    frame = load(spark, tmp_path, **ONE_FILE, **{"Read.Changelog": "true", "columns": "n, ID", "consumer-id": "c"})
    assert frame.schema.simpleString() == "struct<rowkind:string,n:int,ID:int>"
    log = tmp_path / "checkpoint"
    assert run_stream(frame, log) == [[("+I", 0, 0)], [("+I", 1, 1)]]
    table.delete("id = 0", engine="local")
    table.compact(full=True, engine="local")
    assert run_stream(frame, log) == [[("-D", 0, 0)]]
    Catalog(str(tmp_path / "wh")).alter_table("ds.t", AddColumn("s", "STRING"))
    table.write([{"id": 2, "n": 2, "s": "x"}])
    assert run_stream(load(spark, tmp_path), log) == [[(2, 2, "x")]]
    assert [each.next_snapshot_id for each in table.consumers.list()] == [3]


def test_every_type_has_the_values_of_a_read(spark: SparkSession, tmp_path: Path) -> None:
    columns = ", ".join(f"c{at} {each.sql}" for at, each in enumerate(TYPED_VALUES))
    table = created(tmp_path, spark, f"id INT NOT NULL, {columns}, {NESTED}")
    rows = [{"id": at} | {f"c{n}": each.values[at] for n, each in enumerate(TYPED_VALUES)} for at in range(3)]
    middle = {each.sql: each.values[1] for each in TYPED_VALUES}
    stamp, clock = middle["TIMESTAMP(9)"], middle["TIME(3)"]
    rows[0] |= {"a": [None], "m": [("k", stamp)], "r": {"x": clock, "z": ["ab", None]}, "mu": [(1, 2)]}
    table.write([*rows, {"id": 3}])

    def texts(frame: DataFrame) -> list[str]:
        return sorted(row[0] for row in frame.selectExpr("to_json(struct(*))").collect())

    expected, frame = table.read(), load(spark, tmp_path)
    assert frame.schema == expected.schema
    found: list[str] = []
    stream = load(spark, tmp_path, **{"scan.snapshot-id": "1"})
    writer = stream.writeStream.foreachBatch(lambda batch, _: found.extend(texts(batch)))
    writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start().awaitTermination()
    assert sorted(found) == texts(expected)


def until(condition: Callable[[], Any], seconds: float = 60) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the query did not come so far"
        time.sleep(0.02)


def test_a_running_query_gets_changes_as_they_are_committed_and_ends_when_columns_change(
    spark: SparkSession, tmp_path: Path
) -> None:
    table, found = created(tmp_path, spark), list[list[tuple[Any, ...]]]()
    table.write([{"id": 1, "n": 1}])
    frame = load(spark, tmp_path, **{"read.stream.minRowsPerTrigger": "2", "read.stream.maxTriggerDelayMs": "600000"})
    writer = frame.writeStream.foreachBatch(lambda batch, _: found.append(sorted(map(tuple, batch.collect()))))
    query = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(processingTime="20 milliseconds").start()
    try:
        until(lambda: found)
        table.write([{"id": 2, "n": 2}])
        table.write([{"id": 3, "n": 3}])
        until(lambda: len(found) == 2)
        assert found == [[(1, 1)], [(2, 2), (3, 3)]]
        Catalog(str(tmp_path / "wh")).alter_table("ds.t", AddColumn("s", "STRING"))
        table.write([{"id": 4, "n": 4, "s": "x"}, {"id": 5, "n": 5, "s": "y"}])
        with pytest.raises(StreamingQueryException, match=r"lakelsm\.errors\.StreamSchemaChangedError: Table .*again"):
            query.awaitTermination(60)
    finally:
        query.stop()
    assert sorted(run_stream(load(spark, tmp_path), tmp_path / "c")[0]) == [(4, 4, "x"), (5, 5, "y")]


def test_a_registered_table_is_a_stream_by_its_name(spark: SparkSession, tmp_path: Path) -> None:
    table = created(tmp_path, spark)
    for key in range(2):
        table.write([{"id": key, "n": key}])
    Catalog(str(tmp_path / "wh"), spark).register(spark)
    try:
        stream = spark.readStream.options(**ONE_FILE, **{"scan.mode": "from-snapshot", "scan.snapshot-id": "1"})
        assert run_stream(stream.table("ds.t"), tmp_path / "a") == [[(0, 0)], [(1, 1)]]
        message = r"lakelsm.errors.InvalidInputError: option 'read.changelog': the schema that is given or registered"
        with pytest.raises(StreamingQueryException, match=message):
            run_stream(spark.readStream.option("read.changelog", "true").table("ds.t"), tmp_path / "b")
    finally:
        spark.sql("DROP DATABASE ds CASCADE")


def test_errors_have_the_text_of_lakelsm(spark: SparkSession, tmp_path: Path) -> None:
    table = created(tmp_path, spark)
    with pytest.raises(AnalysisException, match=r"lakelsm.errors.InvalidInputError: option 'scan.mode': 'never'"):
        load(spark, tmp_path, **{"scan.mode": "never"})
    table.write([{"id": 1, "n": 1}])
    frame, log = load(spark, tmp_path), tmp_path / "c"
    assert run_stream(frame, log) == [[(1, 1)]]
    for key in range(3):
        table.write([{"id": key, "n": 5}])
    table.maintenance.expire_snapshots(retain_last=1, older_than="0 s")
    with pytest.raises(StreamingQueryException, match=r"lakelsm.errors.SnapshotNotFoundError: .*failOnDataLoss"):
        run_stream(frame, log)
    assert run_stream(load(spark, tmp_path, FAILONDATALOSS="false"), log) == [[(2, 5)]]
    Catalog(str(tmp_path / "wh"), spark).drop_table("ds.t")
    created(tmp_path, spark).write([{"id": 1, "n": 1}])
    with pytest.raises(StreamingQueryException, match=r"lakelsm.errors.StreamOffsetError: "):
        run_stream(frame, log)
