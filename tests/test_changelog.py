"""Incremental reads through the table's public face: what each producer keeps, ranges, modes, order."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakelsm import Catalog, Table
from lakelsm.errors import InvalidInputError, SnapshotNotFoundError
from lakelsm.schema.changes import AddColumn
from lakelsm.types import parse_type
from tests.option_keys import option_keys
from tests.spark_frames import frame_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = tuple[Any, ...]
Create = Callable[..., Table]


@pytest.fixture
def create(spark: SparkSession, tmp_path: Path) -> Create:
    """``create(producer, **options)``: a table of (k, v) in one bucket."""

    def make(producer: str = "none", name: str = "t", **options: str) -> Table:
        given = option_keys(options)
        keys = {"bucket": "1", "changelog-producer": producer, **given}
        catalog = Catalog(str(tmp_path), spark)
        return catalog.create_table(f"db.{name}", "k INT, v STRING", primary_key=["k"], options=keys)

    return make


def kinded(table: Table, *rows: Row) -> DataFrame:
    return frame_of(table.spark, rows, "op string, k int, v string").coalesce(1)


def write(table: Table, *rows: Row, **more: Any) -> int:
    """Write (kind, k, v) rows; the id of the snapshot."""
    snapshot = table.write(kinded(table, *rows), "op", **more).snapshot_id
    assert snapshot is not None
    return snapshot


def told(frame: DataFrame) -> list[Row]:
    return [tuple(row) for row in frame.collect()]


def names(table: Table, pattern: str) -> set[str]:
    return {path.name for path in Path(table._opened.paths.root).rglob(pattern)}


def tag(table: Table, name: str, snapshot: int) -> None:
    root = Path(table._opened.paths.root)
    (root / "tag").mkdir(exist_ok=True)
    (root / "tag" / f"tag-{name}").write_bytes((root / "snapshot" / f"snapshot-{snapshot}").read_bytes())


def test_input_keeps_every_written_row_in_its_order(create: Create) -> None:
    table = create("input", write_only="true")
    write(table, ("+I", 2, "a"), ("+I", 1, "b"), ("-U", 2, "a"), ("+U", 2, "c"))
    write(table, ("-D", 1, "b"))
    assert told(table.changelog().where("k = 2")) == [("+I", 2, "a"), ("-U", 2, "a"), ("+U", 2, "c")]
    assert told(table.changelog(1)) == [("-D", 1, "b")]
    assert told(table.read()) == [(2, "c")]
    snapshot = table._store().snapshots.get(1)
    assert (snapshot.changelog_record_count, snapshot.total_record_count) == (4, 2)
    numbers = table.changelog(end=1, positions=True).select("_SEQUENCE_NUMBER").collect()
    assert [number for (number,) in numbers] == [0, 1, 2, 3]


def test_a_batch_that_is_written_again_after_a_race_keeps_all_its_rows(create: Create) -> None:
    from lakelsm.frames.frame_writer import FrameWriter
    from lakelsm.frames.prepare import prepare
    from lakelsm.write.batch_write import BatchWriter

    table = create("input", write_only="true")
    rivals = [("+I", 1, "rival")]

    def step(name: str) -> None:
        if name == "data-files-written" and rivals:
            write(table, rivals.pop())

    store = table._store()
    rows = prepare(kinded(table, ("+I", 1, "a"), ("+U", 1, "b")), store.schema, store.options, "op")
    BatchWriter(FrameWriter(table.spark, store), store, step).append(rows, "slow")
    assert told(table.changelog()) == [("+I", 1, "rival"), ("+I", 1, "a"), ("+U", 1, "b")]
    assert told(table.read()) == [(1, "b")]
    live = {path.rsplit("/", 1)[-1] for (path,) in table.files().select("file_path").collect()}
    assert names(table, "data-*") == live
    assert len(names(table, "changelog-*")) == 2


@pytest.mark.parametrize("producer", ["lookup", "full-compaction"])
def test_changes_written_to_another_table_make_it_equal(create: Create, producer: str) -> None:
    table, mirror = create(producer), create("none", "mirror")
    write(table, ("+I", 1, "a"), ("+I", 2, "b"))
    write(table, ("+U", 1, "c"), ("+I", 3, "d"))
    write(table, ("-D", 2, None))
    write(table, ("+I", 2, "e"))
    changes = table.changelog()
    assert changes.columns == ["rowkind", "k", "v"]
    mirror.write(changes, row_kind="rowkind")
    assert sorted(told(mirror.read())) == sorted(told(table.read())) == [(1, "c"), (2, "e"), (3, "d")]


def test_a_table_without_a_producer_tells_the_merged_changes(create: Create) -> None:
    table = create(write_only="true")
    write(table, ("+I", 1, "a"), ("+I", 2, "b"))
    write(table, ("+I", 1, "c"), ("-D", 2, "b"), ("+I", 3, "d"))
    write(table, ("+I", 1, "e"))
    table.compact(full=True)
    assert sorted(told(table.changelog(1))) == [("+I", 1, "e"), ("+I", 3, "d"), ("-D", 2, "b")]
    assert told(table.changelog(2)) == [("+I", 1, "e")]
    assert sorted(told(table.changelog(1, mode="diff"))) == [
        ("+I", 3, "d"),
        ("+U", 1, "e"),
        ("-D", 2, "b"),
        ("-U", 1, "a"),
    ]
    assert told(table.changelog(3)) == []


def test_an_overwrite_has_no_changelog_and_later_changes_know_its_rows(create: Create) -> None:
    table = create("lookup")
    write(table, ("+I", 1, "a"), ("+I", 2, "b"))
    before = table._store().snapshots.latest_id()
    replaced = table.spark.createDataFrame([(1, "x")], "k int, v string")
    assert table.overwrite(replaced).compaction is not None
    assert told(table.changelog(before)) == []
    assert sorted(told(table.changelog(before, mode="diff"))) == [("+U", 1, "x"), ("-D", 2, "b"), ("-U", 1, "a")]
    write(table, ("+I", 1, "y"), ("+I", 2, "z"))
    assert sorted(told(table.changelog(before))) == [("+I", 2, "z"), ("+U", 1, "y"), ("-U", 1, "x")]


def test_ranges_are_ids_tags_and_times(create: Create) -> None:
    table = create("input", write_only="true")
    moments = []
    for number in (1, 2, 3):
        write(table, ("+I", number, None))
        path = Path(table._opened.paths.root) / "snapshot" / f"snapshot-{number}"
        moments.append(datetime(2024, 7, 1, 10 + number, tzinfo=timezone.utc))
        values = {**json.loads(path.read_text()), "timeMillis": int(moments[-1].timestamp() * 1000)}
        path.write_text(json.dumps(values))

    def keys(*points: Any, **more: Any) -> Sequence[int]:
        return sorted(row[1] for row in told(table.changelog(*points, **more)))

    tag(table, "first", 1)
    assert keys() == keys(0) == keys(datetime(2024, 1, 1, tzinfo=timezone.utc)) == [1, 2, 3]
    assert keys(1) == keys("first") == keys(moments[0]) == [2, 3]
    assert keys(1, 2) == keys(end=2)[1:] == keys(moments[0], moments[1]) == [2]
    assert keys(3) == keys(2, 2) == keys(2, moments[1]) == []
    assert keys(1, where="k > 2") == [3]
    (Path(table._opened.paths.root) / "snapshot" / "snapshot-1").unlink()
    assert keys() == keys(1) == [2, 3]
    tag(table, "third", 3)
    # Between tags the states are compared: what lies between may have expired.
    (Path(table._opened.paths.root) / "snapshot" / "snapshot-2").unlink()
    assert keys("first", "third") == [2, 3]
    with pytest.raises(SnapshotNotFoundError, match="expired"):
        table.changelog(1, 3)


def test_a_range_that_cannot_be_is_refused(create: Create) -> None:
    table = create("input", write_only="true")
    assert told(table.changelog()) == []
    write(table, ("+I", 1, "a"))
    write(table, ("+I", 2, "b"))
    with pytest.raises(InvalidInputError, match="after end"):
        table.changelog(2, 1)
    for missing in (7, "monthly"):
        with pytest.raises(SnapshotNotFoundError, match=str(missing)):
            table.changelog(missing)
    with pytest.raises(InvalidInputError, match="start is -2; it must be a whole number"):
        table.changelog(-2)
    with pytest.raises(InvalidInputError, match=r"start is 1\.5; it must be a snapshot id"):
        table.changelog(1.5)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="changelog, delta, diff"):
        table.changelog(mode="log")
    with pytest.raises(InvalidInputError, match="kind_column"):
        table.changelog(kind_column="v")
    assert table.changelog(1, kind_column="op").columns == ["op", "k", "v"]


def test_changes_written_before_a_column_came_have_null_in_it(
    create: Create, spark: SparkSession, tmp_path: Path
) -> None:
    table = create("lookup")
    write(table, ("+I", 1, "a"))
    Catalog(str(tmp_path), spark).alter_table("db.t", AddColumn("w", parse_type("INT")))
    table.write(spark.createDataFrame([(1, "b", 5)], "k int, v string, w int"))
    assert told(table.changelog()) == [("+I", 1, "a", None), ("-U", 1, "a", None), ("+U", 1, "b", 5)]
    assert sorted(told(table.changelog(1, mode="diff"))) == [("+U", 1, "b", 5), ("-U", 1, "a", None)]


def test_a_condition_on_partitions_leaves_other_changelogs_unread(spark: SparkSession, tmp_path: Path) -> None:
    options = {"bucket": "1", "changelog-producer": "lookup"}
    table = Catalog(str(tmp_path), spark).create_table(
        "db.t", "p STRING, k INT, v INT", primary_key=["p", "k"], partition_by=["p"], options=options
    )
    table.write(spark.range(10).selectExpr("concat('p', id % 5) p", "CAST(id AS INT) k", "1 v"))
    chosen = table.changelog(where="p = 'p3' AND k > 3")
    assert told(chosen) == [("+I", "p3", 8, 1)]
    assert len(chosen.inputFiles()) == 1


def test_first_row_tells_new_keys_only_and_does_not_rewrite_the_rest(create: Create) -> None:
    table = create("lookup", merge_engine="first-row", num_sorted_run__compaction_trigger="9")
    write(table, *[("+I", number, "first") for number in range(200)])
    old = names(table, "data-*")
    write(table, ("+I", 5, "second"), ("+I", 500, "new"))
    assert told(table.changelog(2)) == [("+I", 500, "new")]
    assert table.read().count() == 201
    assert table.read().where("k = 5").collect()[0].v == "first"
    live = {path.rsplit("/", 1)[-1] for (path,) in table.files().select("file_path").collect()}
    assert live & old


def test_a_producer_that_looks_rows_up_is_fixed_for_engines_that_combine_rows(
    create: Create, spark: SparkSession, tmp_path: Path
) -> None:
    from lakelsm.schema.changes import SetOption

    table = create("lookup", merge_engine="aggregation")
    write(table, ("+I", 1, "a"))
    with pytest.raises(InvalidInputError, match="changelog-producer"):
        Catalog(str(tmp_path), spark).alter_table("db.t", SetOption("changelog-producer", "none"))
