"""Streams into a table: each micro-batch is one commit, exactly once, whatever is killed."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from lakelsm import Catalog, Table
from lakelsm.compact.compactor import Compactor
from lakelsm.errors import CommitUserTakenError, InvalidInputError
from lakelsm.schema_changes import AddColumn
from tests.option_keys import option_keys
from tests.spark_frames import arrow_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = pytest.mark.spark
COLUMNS = "id INT, v BIGINT"


class Feed:
    """Parquet files that a stream reads one by one, and the checkpoint of its query."""

    def __init__(self, spark: SparkSession, root: Path, columns: str = COLUMNS) -> None:
        self.spark, self.columns = spark, columns
        self.landing, self.checkpoint = root / "landing", root / "checkpoint"
        self.landing.mkdir(parents=True)
        self._files = 0

    def add(self, *batches: Sequence[Sequence[Any]]) -> None:
        """Add a file for each batch, in the order of their times."""
        for rows in batches:
            self._files += 1
            path = self.landing / f"{self._files:03d}.parquet"
            pq.write_table(arrow_of(rows, self.columns), path)
            os.utime(path, (1_700_000_000 + self._files,) * 2)

    @property
    def stream(self) -> DataFrame:
        schema = ", ".join(f"`{part.strip().split()[0]}` {part.strip().split()[1]}" for part in self.columns.split(","))
        reader = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.landing))

    def writer(self, stream: DataFrame | None = None) -> Any:
        writer = (self.stream if stream is None else stream).writeStream
        return writer.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True)

    def run(self, table: Table, stream: DataFrame | None = None, **named: Any) -> StreamingQuery:
        """Run a query to its end, and return it."""
        query = table.write_stream(self.writer(stream), **named)
        assert query.awaitTermination(120)
        return query

    def forget_last_commit(self) -> None:
        """Make the checkpoint that of a process that was killed after the table's commit, and before Spark's."""
        commits = self.checkpoint / "commits"
        last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
        for name in (f"{last}", f".{last}.crc"):
            (commits / name).unlink(missing_ok=True)


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Feed:
    return Feed(spark, tmp_path)


def made(feed: Feed, name: str = "db.t", columns: str = COLUMNS, keys: str = "id", **options: str) -> Table:
    """Create a table; the name of an option has '__' for each dot and '_' for each hyphen."""
    catalog = Catalog(str(feed.landing.parent / "warehouse"), feed.spark)
    return catalog.create_table(name, columns, primary_key=keys, options={"bucket": "1", **option_keys(options)})


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())


def kinds(table: Table) -> list[tuple[str, str, int]]:
    snapshots = table._store().snapshots.list()
    return [(each.commit_kind.value, each.commit_user, each.commit_identifier) for each in snapshots]


def test_each_batch_is_one_commit_and_its_log_line_and_a_restart_continues(
    feed: Feed, caplog: pytest.LogCaptureFixture
) -> None:
    table = made(feed)
    feed.columns = "id INT, v BIGINT, op STRING"
    feed.add([(1, 1, "+I"), (2, 2, "+I"), (1, 3, "+U"), (3, 3, "+I"), (3, 3, "-D")], [], [(2, 2, "-D"), (4, 4, "+I")])
    with caplog.at_level(logging.INFO, "lakelsm.table"):
        query = feed.run(table, row_kind="op")
    assert rows_of(table) == [(1, 3), (4, 4)]
    user = f"stream-{query.id}"
    assert kinds(table) == [("APPEND", user, 0), ("APPEND", user, 2)]
    for snapshot in table._store().snapshots.list():
        assert (snapshot.properties or {})["lakelsm.stream-query"] == query.id
    lines = [vars(each) for each in caplog.records if getattr(each, "operation", "") == "write_stream"]
    found = [(each["batch_id"], each["outcome"], each.get("snapshot_id"), each.get("rows")) for each in lines]
    assert found == [(0, "done", 1, 3), (1, "nothing", None, None), (2, "done", 2, 2)]
    assert all(each["query_id"] == query.id for each in lines)
    assert lines[0]["compaction"] == "nothing"

    feed.add([(5, 5, "+I")])
    assert feed.run(table, row_kind="op").id == query.id
    assert kinds(table)[2:] == [("APPEND", user, 3)] and len(rows_of(table)) == 3


@pytest.mark.parametrize("compact_every", [1, 2])
def test_a_batch_whose_query_was_killed_after_its_commit_is_not_applied_again(feed: Feed, compact_every: int) -> None:
    """apache/paimon#9666: the sums of an aggregation table would double."""
    table = made(feed, merge_engine="aggregation", fields__v__aggregate_function="sum", changelog_producer="lookup")
    feed.add([(1, 1), (2, 2)], [(1, 10), (1, 100)])
    feed.run(table, compact_every=compact_every)
    expected = [(1, 111), (2, 2)]
    assert rows_of(table) == expected
    for _ in range(2):
        before = kinds(table)
        feed.forget_last_commit()
        feed.run(table, compact_every=compact_every)
        assert rows_of(table) == expected and kinds(table) == before
    feed.add([(2, 20)])
    feed.forget_last_commit()
    feed.run(table, compact_every=compact_every)
    assert rows_of(table) == [(1, 111), (2, 22)]
    changes = table.changelog_reader(mode="changelog").read_all().to_pylist()
    inserted = [each["id"] for each in changes if each["rowkind"] == "+I"]
    assert sorted(inserted) == [1, 2], "each change is in the changelog once"


def test_a_batch_that_is_killed_between_its_commit_and_its_compaction_is_compacted_by_its_rerun(feed: Feed) -> None:
    table = made(feed, deletion_vectors__enabled="true")
    feed.add([(1, 1), (2, 2)])
    feed.run(table, compact_every=0)
    feed.forget_last_commit()
    assert rows_of(table) == [], "reads do not show level 0"
    feed.run(table)
    assert rows_of(table) == [(1, 1), (2, 2)] and [each[0] for each in kinds(table)] == ["APPEND", "COMPACT"]


def test_a_failed_compaction_is_a_warning_and_the_stream_continues(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(feed)
    feed.add([(1, 1)], [(2, 2)])

    def fail(*args: object, **named: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr(Compactor, "compact", fail)
    seen: list[str] = []
    monkeypatch.setattr("warnings.warn", lambda text, *more, **named: seen.append(str(text)))
    feed.run(table)
    assert rows_of(table) == [(1, 1), (2, 2)]
    assert sum("the compaction" in text and "no space" in text for text in seen) == 2


def test_a_query_with_the_commit_user_of_another_one_ends_and_commits_nothing(feed: Feed, tmp_path: Path) -> None:
    table = made(feed)
    feed.add([(1, 1)])
    feed.run(table, commit_user="etl")
    other = Feed(feed.spark, tmp_path / "other")
    other.add([(1, 9)])
    with pytest.raises(Exception, match=r"CommitUserTakenError: .*commit user 'etl' belongs to streaming query"):
        other.run(table, commit_user="etl")
    with pytest.raises(CommitUserTakenError):
        table.write(arrow_of([(1, 9)], COLUMNS), commit_user="etl", batch_id=0)
    assert rows_of(table) == [(1, 1)] and kinds(table) == [("APPEND", "etl", 0)]


def test_in_complete_mode_each_batch_replaces_the_whole_table(feed: Feed) -> None:
    from pyspark.sql import functions as F

    catalog = Catalog(str(feed.landing.parent / "warehouse"), feed.spark)
    columns, keys = "p INT, k INT, n BIGINT", ["p", "k"]
    table = catalog.create_table("db.t", columns, primary_key=keys, partition_by=["p"], options={"bucket": "1"})
    table.write([{"p": 77, "k": 0, "n": 1}])
    feed.add([(1, 1), (2, 2), (1, 3)], [(2, 5), (3, 3)])
    counted = feed.stream.groupBy(F.col("id").alias("p")).agg(F.count("*").alias("n")).withColumn("k", F.lit(0))
    feed.run(table, counted, overwrite=True)
    assert rows_of(table) == [(1, 0, 2), (2, 0, 2), (3, 0, 1)]
    feed.forget_last_commit()
    before = kinds(table)
    feed.run(table, counted, overwrite=True)
    assert rows_of(table) == [(1, 0, 2), (2, 0, 2), (3, 0, 1)] and kinds(table) == before
    with pytest.raises(InvalidInputError, match="overwrite: the query has the output mode 'complete'"):
        table.write_stream(feed.writer(counted).outputMode("complete"))


@pytest.mark.parametrize(
    ("options", "batches", "expected"),
    [
        ({"bucket": "-1"}, [[(1, 1), (2, 2), (1, 3)], [(2, 4), (3, 5)]], [(1, 3), (2, 4), (3, 5)]),
        ({"merge_engine": "partial-update"}, [[(1, 1), (2, None)], [(1, None), (2, 4)]], [(1, 1), (2, 4)]),
        ({"merge_engine": "first-row"}, [[(1, 1), (1, 2)], [(1, 3), (2, 2)]], [(1, 1), (2, 2)]),
        ({"deletion_vectors__enabled": "true"}, [[(1, 1), (2, 2)], [(1, 5)], [(2, 6), (2, 7)]], [(1, 5), (2, 7)]),
    ],
    ids=["dynamic buckets", "partial-update", "first-row", "deletion vectors"],
)
def test_tables_of_all_kinds_apply_each_batch_once(
    feed: Feed, options: dict[str, str], batches: list[Any], expected: list[Any]
) -> None:
    table = made(feed, **options)
    feed.add(*batches)
    feed.run(table)
    assert rows_of(table) == expected
    feed.forget_last_commit()
    feed.run(table)
    assert rows_of(table) == expected


def test_the_last_row_of_a_key_wins_in_a_batch_of_several_tasks(feed: Feed) -> None:
    """Tasks compute the rows 0, 4, 8, …, then 1, 5, 9, …"""
    table = made(feed, bucket="2")
    rows = feed.spark.readStream.format("rate-micro-batch").options(rowsPerBatch=4000, numPartitions=4).load()
    feed.run(table, rows.selectExpr("CAST(value % 10 AS INT) AS id", "value AS v"))
    last = {number % 10: number for number in sorted(range(4000), key=lambda number: (number % 4, number))}
    assert rows_of(table) == sorted(last.items())


def test_a_dedicated_compaction_beside_the_stream_makes_no_batch_fail(feed: Feed) -> None:
    table = made(feed, num_sorted_run__compaction_trigger="2")
    feed.add(*([(number, number), (0, number)] for number in range(1, 9)))
    ended, results = Event(), []

    def compact() -> None:
        while not ended.is_set():
            results.append(table.compact(full=True, engine="local").status.value)

    job = Thread(target=compact)
    job.start()
    try:
        feed.run(table, compact_every=0)
    finally:
        ended.set()
        job.join()
    assert rows_of(table) == [(0, 8), *((number, number) for number in range(1, 9))]
    appended = [number for kind, _, number in kinds(table) if kind == "APPEND"]
    assert appended == list(range(8)) and "done" in results
    assert set(results) <= {"done", "nothing", "conflict"}


def test_a_changed_table_ends_the_query_with_the_error_of_a_write(feed: Feed) -> None:
    table = made(feed)
    feed.add([(1, 1)])
    feed.run(table)
    catalog = Catalog(str(feed.landing.parent / "warehouse"))
    query = table.write_stream(feed.writer().trigger(processingTime="0 seconds"))
    try:
        catalog.alter_table("db.t", AddColumn("more", "INT"))
        feed.add([(2, 2)])
        with pytest.raises(Exception, match=r"InvalidInputError: .*more"):
            query.awaitTermination(60)
        assert not query.isActive
    finally:
        query.stop()
    assert rows_of(table) == [(1, 1, None)]
    with pytest.raises(InvalidInputError, match="more"):
        feed.run(table)


def test_a_table_that_is_created_again_ends_the_query(feed: Feed) -> None:
    table = made(feed)
    feed.add([(1, 1)])
    query = table.write_stream(feed.writer().trigger(processingTime="0 seconds"))
    try:
        query.processAllAvailable()
        Catalog(str(feed.landing.parent / "warehouse")).drop_table("db.t")
        again = made(feed)
        feed.add([(2, 2)])
        with pytest.raises(Exception, match=r"InvalidInputError: .*dropped and created again"):
            query.awaitTermination(60)
    finally:
        query.stop()
    assert rows_of(again) == []


def test_wrong_arguments_are_refused_before_a_query_starts(feed: Feed) -> None:
    table, lazy = made(feed), made(feed, "db.w", write_only="true")
    writer, batch = feed.writer, feed.spark.range(1)
    bare = feed.stream.writeStream
    counted = feed.stream.groupBy("id").count().withColumnRenamed("count", "v")
    refused: list[tuple[str, Callable[[], object]]] = [
        ("stream: its checkpoint location is missing. Set", lambda: table.write_stream(feed.stream)),
        ("stream: its checkpoint", lambda: table.write_stream(bare.option("checkpointlocation", " "))),
        ("stream: the DataFrame is not a stream. Use Table.write", lambda: table.write_stream(batch)),
        ("stream: expected a streaming DataFrame", lambda: table.write_stream(None)),
        ("stream: expected a streaming DataFrame", lambda: table.write_stream([{"id": 1}])),
        ("the frame lacks column v", lambda: table.write_stream(writer(feed.stream.withColumnRenamed("v", "w")))),
        ("column 'v'", lambda: table.write_stream(writer(feed.stream.selectExpr("id", "current_date() AS v")))),
        ("row_kind: expected", lambda: table.write_stream(writer(), row_kind=3)),  # type: ignore[arg-type]
        ("row_kind: rows that", lambda: table.write_stream(writer(), row_kind="v", overwrite=True)),
        ("'op'", lambda: table.write_stream(writer(), row_kind="op")),
        ("cast: ", lambda: table.write_stream(writer(), cast="loose")),
        ("overwrite: ", lambda: table.write_stream(writer(), overwrite=1)),  # type: ignore[arg-type]
        ("commit_user: ' ' is blank", lambda: table.write_stream(writer(), commit_user=" ")),
        ("compact_every: ", lambda: table.write_stream(writer(), compact_every=-1)),
        ("compact_every: .*write-only", lambda: lazy.write_stream(writer(), compact_every=2)),
        ("event_time_delay: event_time is missing", lambda: table.write_stream(writer(), event_time_delay="1 h")),
        ("event_time: column 'v'", lambda: table.write_stream(writer(), event_time="v")),
        ("output mode 'update'", lambda: table.write_stream(writer().outputMode("update"), overwrite=True)),
        ("output mode 'complete'", lambda: table.write_stream(writer(counted).outputMode("complete"))),
        ("stream: it has a function", lambda: table.write_stream(writer().foreachBatch(lambda rows, number: None))),
        ("stream: Spark cannot start the query: ", lambda: table.write_stream(writer(), overwrite=True)),
        ("stream: Spark cannot start the query: ", lambda: table.write_stream(writer().partitionBy("id"))),
        ("stream: Spark cannot .*FileSystem", lambda: table.write_stream(writer().option("checkpointLocation", "no://x"))),
    ]
    for text, call in refused:
        with pytest.raises(InvalidInputError, match=text):
            call()
    feed.spark.conf.set("spark.sql.streaming.checkpointLocation", str(feed.checkpoint))
    try:
        with pytest.raises(InvalidInputError, match="without a name each start has a new checkpoint"):
            table.write_stream(bare)
        feed.add([(1, 1)])
        named = feed.stream.writeStream.queryName("named").trigger(availableNow=True)
        assert table.write_stream(named).awaitTermination(60)
    finally:
        feed.spark.conf.unset("spark.sql.streaming.checkpointLocation")
    assert rows_of(table) == [(1, 1)] and (feed.checkpoint / "named").exists()
    assert feed.spark.streams.active == []
