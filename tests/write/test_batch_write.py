"""One batch: replayed, redone after others came first, and with dynamic buckets that others assigned meanwhile."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.format.manifest import ManifestEntry
from lakelsm.format.snapshot import CommitKind
from lakelsm.snapshots.manifest_scan import read_index_entries, read_live_entries
from lakelsm.snapshots.table_store import TableStore
from tests.option_keys import option_keys
from tests.spark_frames import frame_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakelsm import Table
    from lakelsm.write.batch_write import BatchResult


@pytest.fixture
def create(spark: SparkSession, tmp_path: Path) -> Callable[..., Table]:
    def table(columns: str = "k INT, v STRING", key: str = "k", partition: str = "", **options: str) -> Table:
        from lakelsm import Catalog

        given = option_keys(options)
        return Catalog(str(tmp_path), spark).create_table(
            "db.t",
            columns,
            primary_key=key.split(","),
            partition_by=partition.split(",") if partition else [],
            options={"write-only": "true", **given},
        )

    return table


def rows(spark: SparkSession, *values: tuple[int, str]) -> DataFrame:
    return frame_of(spark, values, "k INT, v STRING")


def read(table: Table) -> dict[int, str]:
    found = [(row.k, row.v) for row in table.read().collect()]
    assert len(found) == len(dict(found)), f"a key is there twice: {sorted(found)}"
    return dict(found)


def store_of(table: Table) -> TableStore:
    return TableStore.open(table._opened.paths.root)


def live(table: Table) -> list[ManifestEntry]:
    store = store_of(table)
    latest = store.snapshots.latest()
    return [] if latest is None else read_live_entries(store.file_io, store.paths, latest)


def stored_files(table: Table) -> set[str]:
    return {path.name for path in Path(table._opened.paths.root).rglob("data-*")}


def append(
    spark: SparkSession, table: Table, frame: DataFrame, meanwhile: Callable[[], Any], times: int = 1
) -> BatchResult:
    """Write a batch that finds, each time it has written its files, that ``meanwhile`` came first."""
    from lakelsm.frames.frame_writer import FrameWriter
    from lakelsm.frames.prepare import prepare
    from lakelsm.write.batch_write import BatchWriter

    left = [times]

    def step(name: str) -> None:
        if name == "data-files-written" and left[0]:
            left[0] -= 1
            meanwhile()

    store = store_of(table)
    writer = BatchWriter(FrameWriter(spark, store), store, step)
    return writer.append(prepare(frame, store.schema, store.options), "slow", 5)


def test_options_of_one_write_act_in_it_alone(spark: SparkSession, create: Callable[..., Table]) -> None:
    table = create(bucket="1")
    options = {"target-file-row-num": 1, "commit.user-prefix": "nightly", "file.compression": "none"}
    assert table.write(rows(spark, (1, "a"), (2, "b"), (3, "c")), options=options).files == 3
    table.write(rows(spark, (1, "d"), (2, "e"), (3, "f")))
    first, second = (row.commit_user for row in table.snapshots().orderBy("snapshot_id").collect())
    assert first.startswith("nightly_") and not second.startswith("nightly")
    with pytest.raises(InvalidInputError, match=r"'snapshot\.time-retained' = '2 h' cannot hold for one call"):
        table.write(rows(spark, (1, "g")), options={"snapshot.time-retained": "2 h"})


def test_the_same_batch_again_is_a_no_op_that_says_so(spark: SparkSession, create: Callable[..., Table]) -> None:
    table = create(bucket="1")
    first = table.write(rows(spark, (1, "a")), commit_user="u", batch_id=3)
    table.write(rows(spark, (1, "b")))
    files = stored_files(table)
    again = table.write(rows(spark, (1, "a")), commit_user="u", batch_id=3)
    assert (again.snapshot_id, again.already_committed, again.files) == (first.snapshot_id, True, 0)
    assert not table.write(rows(spark, (2, "c")), commit_user="other", batch_id=3).already_committed
    assert read(table) == {1: "b", 2: "c"} and files < stored_files(table)


def test_a_batch_that_failed_may_be_run_after_a_later_one(spark: SparkSession, create: Callable[..., Table]) -> None:
    table = create(bucket="1")
    table.write(rows(spark, (1, "second")), commit_user="u", batch_id=2)
    first = table.write(rows(spark, (3, "first")), commit_user="u", batch_id=1)
    assert not first.already_committed and read(table) == {1: "second", 3: "first"}
    for batch_id in (1, 2):
        assert table.write(rows(spark, (9, "again")), commit_user="u", batch_id=batch_id).already_committed
    assert read(table) == {1: "second", 3: "first"}


def test_a_batch_that_another_process_committed_meanwhile_is_not_written_twice(
    spark: SparkSession, create: Callable[..., Table]
) -> None:
    table = create(bucket="1")
    frame = rows(spark, (1, "a"))
    result = append(spark, table, frame, lambda: table.write(frame, commit_user="slow", batch_id=5))
    assert result.outcome.already_committed and result.entries == ()
    assert table.snapshots().count() == 1
    assert stored_files(table) == {entry.file.file_name for entry in live(table)}


def test_a_batch_is_renumbered_when_another_came_first_in_its_bucket(
    spark: SparkSession, create: Callable[..., Table]
) -> None:
    table = create(bucket="1")
    table.write(rows(spark, (1, "old"), (2, "old")))
    fast = rows(spark, (1, "fast"), (4, "fast"))
    result = append(spark, table, rows(spark, (1, "slow"), (3, "slow")), lambda: table.write(fast))
    assert result.outcome.snapshot is not None and result.outcome.snapshot.id == 3
    assert read(table) == {1: "slow", 2: "old", 3: "slow", 4: "fast"}
    spans = sorted((e.file.min_sequence_number, e.file.max_sequence_number) for e in live(table))
    assert all(high < low for (_, high), (low, _) in pairwise(spans))
    assert stored_files(table) == {entry.file.file_name for entry in live(table)}
    table.compact(full=True)
    assert read(table) == {1: "slow", 2: "old", 3: "slow", 4: "fast"}


def test_a_slow_batch_meets_faster_writers_of_its_bucket_only_once(
    spark: SparkSession, create: Callable[..., Table]
) -> None:
    table = create(bucket="1")
    count = [0]

    def fast() -> None:
        count[0] += 1
        table.write(rows(spark, (1, f"fast {count[0]}"), (100 + count[0], "fast")))

    append(spark, table, rows(spark, (1, "slow")), fast, times=5)
    assert count == [2]
    assert read(table) == {1: "slow", 101: "fast", 102: "fast"}
    table.write(rows(spark, (1, "later")))
    assert read(table)[1] == "later"


def test_a_batch_of_other_buckets_is_not_redone(spark: SparkSession, create: Callable[..., Table]) -> None:
    table = create("k INT, p INT, v STRING", key="p,k", partition="p", bucket="1")

    def frame(p: int, v: str) -> DataFrame:
        return frame_of(spark, [(1, p, v)], "k INT, p INT, v STRING")

    count = [0]

    def other() -> None:
        count[0] += 1
        table.write(frame(2, "other"))

    append(spark, table, frame(1, "mine"), other, times=3)
    assert count == [1]
    assert {(row.p, row.v) for row in table.read().collect()} == {(1, "mine"), (2, "other")}


ALL_TYPES = (
    "k INT, a BOOLEAN, b TINYINT, c BIGINT, d FLOAT, e DOUBLE, f DECIMAL(20, 3), g CHAR(2), h BYTES, i DATE, j TIME(3), "
    "l TIMESTAMP(3), m TIMESTAMP(6), n TIMESTAMP(9), o TIMESTAMP_LTZ(6), p ARRAY<INT>, q MAP<STRING, INT>, "
    "r ROW<x INT, y STRING>"
)
NOON = datetime.datetime(2020, 2, 29, 12, 30, 1, 123000)
OLD = datetime.datetime(1850, 1, 1, 1, 2, 3, 4000)


def test_a_batch_that_is_redone_keeps_values_of_every_type(spark: SparkSession, create: Callable[..., Table]) -> None:
    from lakelsm.spark.spark_types import to_struct

    table = create(ALL_TYPES, bucket="1")
    noon = [NOON, NOON, NOON, NOON.replace(tzinfo=datetime.timezone.utc)]
    old = [OLD, OLD, OLD, OLD.replace(tzinfo=datetime.timezone.utc)]
    number = Decimal("-12345678901234567.891")
    values: list[list[Any]] = [
        [1, True, -7, 1 << 60, 0.5, -0.0, number, "ab", b"\0\1", NOON.date(), 86_399_999, *noon, [1, None]],
        [2, False, 7, -1, 1.0, 1.5, Decimal("0.001"), "é", b"", OLD.date(), 0, *old, []],
        [3, *[None] * 17],
    ]
    values[0] += [{"a": 1, "b": None}, (1, None)]
    values[1] += [{}, (None, "y")]
    frame = spark.createDataFrame(values, to_struct(table.schema.fields))
    other = spark.createDataFrame([(4, *[None] * 17)], to_struct(table.schema.fields))
    append(spark, table, frame, lambda: table.write(other))
    found = sorted(table.read().collect(), key=lambda row: row.k)
    assert found[:3] == sorted(frame.collect(), key=lambda row: row.k) and found[3].k == 4


def test_deletes_of_a_batch_that_is_redone_stay_deletes(spark: SparkSession, create: Callable[..., Table]) -> None:
    from lakelsm.frames.frame_writer import FrameWriter
    from lakelsm.frames.prepare import prepare
    from lakelsm.write.batch_write import BatchWriter

    table = create(bucket="1")
    table.write(rows(spark, (1, "a"), (2, "b")))
    store = store_of(table)
    frame = frame_of(spark, [(1, None, "-D"), (3, "c", "+I")], "k INT, v STRING, op STRING")
    once = [lambda: table.write(rows(spark, (1, "fast")))]

    def step(name: str) -> None:
        if name == "data-files-written" and once:
            once.pop()()

    writer = BatchWriter(FrameWriter(spark, store), store, step)
    writer.append(prepare(frame, store.schema, store.options, "op"), "u")
    assert read(table) == {2: "b", 3: "c"}


def test_competing_assigners_of_dynamic_buckets_agree_in_the_end(
    spark: SparkSession, create: Callable[..., Table]
) -> None:
    table = create(dynamic_bucket__target_row_num="5")
    fast = rows(spark, *((k, "fast") for k in range(10, 22)))
    result = append(spark, table, rows(spark, *((k, "slow") for k in range(18))), lambda: table.write(fast))
    assert result.outcome.snapshot is not None and result.outcome.snapshot.id == 2
    assert read(table) == {**dict.fromkeys(range(18, 22), "fast"), **dict.fromkeys(range(18), "slow")}
    check_index(table, 22)
    table.write(rows(spark, *((k, "last") for k in range(22))))
    assert set(read(table).values()) == {"last"} and len(read(table)) == 22
    check_index(table, 22)
    stored = {path.name for path in (Path(table._opened.paths.root) / "index").iterdir()}
    assert {e.file.file_name for e in index_of(table)} <= stored


def index_of(table: Table) -> list[Any]:
    store = store_of(table)
    latest = store.snapshots.latest()
    assert latest is not None
    return list(read_index_entries(store.file_io, store.paths, latest))


def check_index(table: Table, keys: int) -> None:
    """Every bucket that has rows has its HASH index, and together they hold every key once."""
    entries = index_of(table)
    assert {entry.bucket for entry in live(table)} == {entry.bucket for entry in entries}
    assert sum(entry.file.row_count for entry in entries) == keys


def test_an_overwrite_gives_dynamic_buckets_anew_and_keys_stay_single_afterwards(
    spark: SparkSession, create: Callable[..., Table]
) -> None:
    table = create(dynamic_bucket__target_row_num="4")
    table.write(rows(spark, *((k, "a") for k in range(20))))
    assert len(index_of(table)) == 5
    table.overwrite(rows(spark, *((k, "b") for k in range(10, 20))))
    check_index(table, 10)
    assert {entry.bucket for entry in live(table)} == {0, 1, 2}
    table.write(rows(spark, *((k, "c") for k in range(19, 4, -1))))
    assert read(table) == dict.fromkeys(range(5, 20), "c")
    check_index(table, 15)


def test_an_append_planned_before_an_overwrite_is_redone_on_it(
    spark: SparkSession, create: Callable[..., Table]
) -> None:
    table = create(dynamic_bucket__target_row_num="4")
    table.write(rows(spark, *((k, "a") for k in range(12))))
    append(spark, table, rows(spark, (3, "slow"), (50, "slow")), lambda: table.overwrite(rows(spark, (3, "o"), (4, "o"))))
    assert read(table) == {3: "slow", 4: "o", 50: "slow"}
    check_index(table, 3)


def test_an_overwrite_whose_partitions_cannot_be_told_leaves_no_file(
    spark: SparkSession, create: Callable[..., Table]
) -> None:
    from lakelsm.frames.frame_writer import FrameWriter
    from lakelsm.frames.prepare import prepare
    from lakelsm.write.batch_write import BatchWriter

    table = create(bucket="1")
    store = store_of(table)

    def refuse(written: set[bytes]) -> None:
        raise InvalidInputError("no such partition")

    with pytest.raises(InvalidInputError, match="no such partition"):
        prepared = prepare(rows(spark, (1, "a")), store.schema, store.options)
        BatchWriter(FrameWriter(spark, store), store).overwrite(prepared, refuse, "u")
    assert stored_files(table) == set() and table.snapshots().count() == 0


def test_many_commits_of_one_bucket_keep_ascending_numbers(spark: SparkSession, create: Callable[..., Table]) -> None:
    table = create(bucket="2")
    for n in range(3):
        table.write(rows(spark, *((k, f"v{n}") for k in range(6))))
    table.compact(full=True)
    table.write(rows(spark, (0, "last")))
    assert read(table) == {0: "last", **dict.fromkeys(range(1, 6), "v2")}
    newest = [e.file for e in live(table) if e.file.level == 0]
    oldest = [e.file for e in live(table) if e.file.level > 0]
    assert len(newest) == 1
    assert newest[0].min_sequence_number > max(file.max_sequence_number for file in oldest)
    assert store_of(table).snapshots.get(4).commit_kind is CommitKind.COMPACT


@pytest.mark.parametrize("bucket", ["2", "-1"])
def test_columns_may_have_any_name(spark: SparkSession, create: Callable[..., Table], bucket: str) -> None:
    from lakelsm.spark.spark_types import to_struct

    columns = "`a.b` STRING NOT NULL, `the key` INT NOT NULL, `back``tick` STRING, `a` ROW<b INT>"
    options = {"bucket": bucket, **({"dynamic-bucket.target-row-num": "2"} if bucket == "-1" else {})}
    table = create(columns, key="a.b,the key", partition="a.b", **options)
    struct = to_struct(table.schema.fields)
    data = [("p", key, f"v{key}", (key,)) for key in range(5)]
    append(spark, table, spark.createDataFrame(data, struct), lambda: table.write(spark.createDataFrame(data, struct)))
    assert sorted(tuple(row) for row in table.read().collect()) == data
    table.compact(full=True)
    found = table.read(where="`back``tick` = 'v3'", columns=["a.b", "the key"]).collect()
    assert [tuple(row) for row in found] == [("p", 3)]
