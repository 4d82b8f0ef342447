"""Deletes: what matches when they commit is gone, what others changed meanwhile is judged anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakelsm.errors import CommitConflictError, InvalidInputError
from tests.spark_frames import frame_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakelsm import CommitResult, Table


@pytest.fixture
def create(spark: SparkSession, tmp_path: Path) -> Callable[..., Table]:
    def table(bucket: str = "1", **options: str) -> Table:
        from lakelsm import Catalog

        given = {name.replace("_", "-"): text for name, text in options.items()}
        return Catalog(str(tmp_path), spark).create_table(
            "db.t", "k INT, v STRING", primary_key=["k"], options={"bucket": bucket, "write-only": "true", **given}
        )

    return table


def rows(spark: SparkSession, *values: tuple[int, str]) -> DataFrame:
    return frame_of(spark, values, "k INT, v STRING")


def read(table: Table) -> dict[int, str]:
    return {row.k: row.v for row in table.read().collect()}


def delete(
    monkeypatch: pytest.MonkeyPatch,
    table: Table,
    where: str,
    at: str,
    meanwhile: Callable[[], Any],
    times: int = 1,
    steps: list[str] | None = None,
) -> CommitResult:
    """Delete while others come first, after a step of the delete; ``steps`` takes all of them down."""
    from lakelsm.write.batch_write import BatchWriter

    left = [times]

    def step(name: str) -> None:
        if steps is not None:
            steps.append(name)
        if name == at and left[0]:
            left[0] -= 1
            with monkeypatch.context() as undone:
                undone.setattr("lakelsm.table.BatchWriter", BatchWriter)
                meanwhile()

    with monkeypatch.context() as patched:
        patched.setattr("lakelsm.table.BatchWriter", lambda writer, store: BatchWriter(writer, store, step))
        return table.delete(where)


@pytest.mark.parametrize("bucket", ["1", "-1"])
def test_a_row_that_stops_or_begins_to_match_before_the_commit_is_judged_as_it_is_then(
    monkeypatch: pytest.MonkeyPatch, spark: SparkSession, create: Callable[..., Table], bucket: str
) -> None:
    table = create(bucket)
    table.write(rows(spark, (1, "old"), (2, "old"), (3, "new"), (4, "old")))
    rival = rows(spark, (2, "new"), (3, "old"), (5, "old"))
    for at in ("data-files-written", "delta-list-written"):
        result = delete(monkeypatch, table, "v = 'old'", at, lambda: table.write(rival))
        assert result.rows == 4 and read(table) == {2: "new"}
        table.write(rows(spark, (1, "old"), (2, "old"), (3, "new"), (4, "old")))
    files = {row.file_path.rsplit("/", 1)[1] for row in table.files().collect()}
    assert {path.name for path in Path(table._opened.paths.root).rglob("data-*")} == files


def test_a_delete_after_which_others_come_and_one_of_other_keys_are_not_redone(
    monkeypatch: pytest.MonkeyPatch, spark: SparkSession, create: Callable[..., Table]
) -> None:
    table = create()
    table.write(rows(spark, (1, "old"), (2, "old")))
    count = [0]

    def other() -> None:
        count[0] += 1
        table.write(rows(spark, (7, "old"), (8, "old")))

    # Their sequence numbers meet ours once, so the batch is worked out twice; what was not there when read stays.
    delete(monkeypatch, table, "k < 3", "data-files-written", other, times=5)
    assert count == [2] and read(table) == {7: "old", 8: "old"}
    delete(monkeypatch, table, "k = 7", "snapshot-published", lambda: table.write(rows(spark, (7, "after"))))
    assert read(table) == {7: "after", 8: "old"}


def test_others_that_keep_writing_keys_between_those_of_a_delete_do_not_hold_it_up(
    monkeypatch: pytest.MonkeyPatch, spark: SparkSession, create: Callable[..., Table]
) -> None:
    table = create()
    table.write(rows(spark, (1, "a"), (5, "a")))
    others = rows(spark, (0, "b"), (3, "b"), (9, "b"))
    steps: list[str] = []
    delete(monkeypatch, table, "v = 'a'", "delta-list-written", lambda: table.write(others), times=3, steps=steps)
    # Their sequence numbers meet ours, once.
    assert steps.count("data-files-written") == 2 and steps.count("snapshot-published") == 1
    assert read(table) == {0: "b", 3: "b", 9: "b"}


def test_a_delete_of_nothing_commits_nothing_and_one_that_others_always_overtake_ends_typed(
    monkeypatch: pytest.MonkeyPatch, spark: SparkSession, create: Callable[..., Table]
) -> None:
    table = create()
    assert table.delete("k = 1").snapshot_id is None
    table.write(rows(spark, (1, "a")))
    assert table.delete("k = 2").snapshot_id is None and table.snapshots().count() == 1
    with pytest.raises(InvalidInputError, match="kk"):
        table.delete("kk = 2")
    monkeypatch.setattr("lakelsm.write.batch_write._MAX_REDO", 2)
    with pytest.raises(CommitConflictError, match="2 times in a row"):
        delete(
            monkeypatch, table, "k = 1", "data-files-written", lambda: table.write(rows(spark, (1, "b"))), times=9
        )
    assert read(table) == {1: "b"}


def test_the_same_delete_again_is_a_no_op_that_says_so(spark: SparkSession, create: Callable[..., Table]) -> None:
    table = create()
    table.write(rows(spark, (1, "a"), (2, "b")), commit_user="u", batch_id=1)
    first = table.delete("k = 1", commit_user="u", batch_id=2)
    table.write(rows(spark, (1, "back")), commit_user="u", batch_id=3)
    again = table.delete("k = 1", commit_user="u", batch_id=2)
    assert (again.snapshot_id, again.already_committed) == (first.snapshot_id, True)
    assert read(table) == {1: "back", 2: "b"}


def test_a_delete_in_a_table_with_row_kinds_and_partitions_removes_what_matches(
    spark: SparkSession, tmp_path: Path
) -> None:
    from lakelsm import Catalog

    columns = "dt STRING, k INT, v STRING, op STRING"
    table = Catalog(str(tmp_path), spark).create_table(
        "db.t",
        columns,
        primary_key=["dt", "k"],
        partition_by=["dt"],
        options={"bucket": "2", "rowkind.field": "op", "write-only": "true"},
    )
    values = [(dt, k, "v", "+I") for dt in ("a", "b") for k in range(4)]
    table.write(spark.createDataFrame(values, columns))
    assert table.delete("dt = 'a' AND k > 1 AND op = '+I'").rows == 2
    table.compact(full=True)
    assert {(row.dt, row.k) for row in table.read().collect()} == {("a", 0), ("a", 1), *(("b", k) for k in range(4))}


def test_a_delete_that_no_sequence_group_would_take_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    from lakelsm import Catalog

    options = {
        "bucket": "1",
        "merge-engine": "partial-update",
        "fields.s.sequence-group": "v",
        "partial-update.remove-record-on-sequence-group": "s",
        "write-only": "true",
    }
    columns = "k INT, v STRING, s INT"
    table = Catalog(str(tmp_path), spark).create_table("db.t", columns, primary_key=["k"], options=options)
    table.write(spark.createDataFrame([(1, "a", 1), (2, "b", None)], columns))
    with pytest.raises(InvalidInputError, match=r"no sequence in any group of 'partial-update\.remove-record"):
        table.delete("k > 0")
    assert table.delete("s = 1").matched_rows == 1 and read(table) == {2: "b"}


def test_rows_of_the_keys_in_a_frame_are_gone(spark: SparkSession, create: Callable[..., Table]) -> None:
    table = create()
    table.write(rows(spark, (1, "a"), (2, "b"), (3, "c")))
    keys = frame_of(spark, ((2,), (2,), (9,)), "K INT")
    assert table.delete(keys=keys).matched_rows == 1
    assert read(table) == {1: "a", 3: "c"}
    with pytest.raises(InvalidInputError, match="keys must have the columns of the primary key, k, and no"):
        table.delete(keys=rows(spark, (1, "a")))
    with pytest.raises(InvalidInputError, match="key column 'k' is NULL in a row"):
        table.delete(keys=frame_of(spark, ((None,),), "k INT"))
