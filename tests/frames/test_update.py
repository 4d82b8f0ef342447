"""Updates: rows that match get new values, the others and all other columns stay; what would be lost is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakelsm.errors import InvalidInputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakelsm import Table

COLUMNS = "k INT, n INT, v STRING NOT NULL, d DECIMAL(5, 2), s INT, a ARRAY<INT>"


@pytest.fixture
def create(spark: SparkSession, tmp_path: Path) -> Callable[..., Table]:
    def table(options: dict[str, str] | None = None) -> Table:
        from lakelsm import Catalog

        given = {"bucket": "1", "write-only": "true", **(options or {})}
        made = Catalog(str(tmp_path), spark).create_table("db.t", COLUMNS, primary_key=["k"], options=given)
        values = [(1, 10, "a", 1, 1, [1, 2]), (2, 20, "b", 2, 2, None), (3, None, "c", 3, None, [])]
        made.write(spark.createDataFrame(values, "k INT, n INT, v STRING, d INT, s INT, a ARRAY<INT>").selectExpr(
            "k", "n", "v", "CAST(d AS DECIMAL(5, 2)) AS d", "s", "a"
        ))
        return made

    return table


def read(table: Table, *columns: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in table.read(columns=["k", *columns]).collect())


def test_rows_that_match_get_new_values_of_the_row_as_it_was_and_all_else_stays(create: Callable[..., Table]) -> None:
    table = create()
    set_values = {"N": "n + d * 1.5", "v": "concat(v, n)", "d": "NULL", "a": "array_append(a, k)"}
    result = table.update(set_values, "K = 1 OR n > 100 OR n IS NULL AND k < 3")
    assert (result.matched_rows, result.rows) == (1, 1)
    found = read(table, "n", "v", "d", "s", "a")
    assert found[0] == (1, 11, "a10", None, 1, [1, 2, 1]) and found[1][1:3] == (20, "b") and found[2][2] == "c"
    assert [row.operation for row in table.inspect.snapshots().to_spark().collect()] == ["WRITE", "UPDATE"]
    nothing = table.update({"v": "'x'"}, "n > 100 AND v = NULL")
    assert (nothing.matched_rows, nothing.snapshot_id) == (0, None) and read(table, "n", "v", "d", "s", "a") == found
    deleted = table.delete("n > 15")
    assert deleted.matched_rows == 1 and [key for (key,) in read(table)] == [1, 3]
    first = table.update({"n": "n + 1"}, "k = 1", commit_user="u", batch_id=1)
    again = table.update({"n": "n + 1"}, "k = 1", commit_user="u", batch_id=1)
    assert first.matched_rows == 1 and again.already_committed and again.matched_rows is None
    assert read(table, "n") == [(1, 12), (3, None)]


@pytest.mark.parametrize(
    ("options", "cases"),
    [
        (
            {},
            [
                ({"n": "n * 1000000000000L"}, "'n' a number that INT has no place for"),
                ({"n": "n + 2147483647"}, "overflow"),
                ({"d": "1000"}, r"'d' a number that DECIMAL\(5, 2\) has no place for"),
                ({"v": "NULL"}, "column 'v', which is NOT NULL, NULL"),
                ({"n": "v"}, "'n' .INT. a value of type string: cast it to int"),
                ({"n": "w + 1"}, r"set\['n'\] = 'w \+ 1' is wrong.*`w`"),
                ({"n": "n +"}, r"set\['n'\] = 'n \+' is wrong"),
                ({"n": "max(n)"}, r"set\['n'\] = 'max"),
                ({"n": "explode(a)"}, r"set\['n'\] = 'explode"),
                ({"n": "*"}, r"set\['n'\] = '\*' "),
            ],
        ),
        (
            {"sequence.field": "s"},
            [({"s": "s - 1"}, "older than it is by its sequence 's'"), ({"n": "0", "s": "NULL"}, "older than it is")],
        ),
        (
            {"sequence.field": "s", "sequence.field.sort-order": "descending"},
            [({"s": "s + 1"}, "older than it is by its sequence 's'"), ({"s": "NULL"}, "older than it is")],
        ),
        ({"merge-engine": "partial-update"}, [({"n": "NULL"}, "'n' NULL, and with 'merge-engine'")]),
        (
            {"merge-engine": "partial-update", "fields.s.sequence-group": "n"},
            [({"n": "n + 1"}, "has no sequence 's'"), ({"s": "s - 1"}, "older than it is by its sequence 's'")],
        ),
    ],
)
def test_a_value_that_would_not_become_the_rows_is_refused_by_name(
    create: Callable[..., Table], options: dict[str, str], cases: list[tuple[dict[str, str], str]]
) -> None:
    table = create(options)
    for values, told in cases:
        with pytest.raises(InvalidInputError, match=told):
            table.update(values, "k > 0")
    assert table._store().snapshots.latest_id() == 1


@pytest.mark.parametrize(
    ("options", "values", "expected"),
    [
        ({"sequence.field": "s"}, {"n": "n + 1", "s": "s + 0"}, [(1, 11, 1), (2, 21, 2)]),
        ({"sequence.field": "s", "sequence.field.sort-order": "descending"}, {"s": "0"}, [(1, 10, 0), (2, 20, 0)]),
        ({"merge-engine": "partial-update"}, {"n": "-n"}, [(1, -10, 1), (2, -20, 2)]),
        (
            {"merge-engine": "partial-update", "fields.s.sequence-group": "n"},
            {"n": "NULL", "s": "s + k"},
            [(1, None, 2), (2, None, 4)],
        ),
    ],
)
def test_an_update_wins_where_sequences_decide(
    create: Callable[..., Table], options: dict[str, str], values: dict[str, str], expected: list[tuple[object, ...]]
) -> None:
    table = create(options)
    assert table.update(values, "k < 3").matched_rows == 2
    assert read(table, "n", "s")[:2] == expected


def test_with_deletion_vectors_rows_that_wait_in_level_0_match_as_they_are(create: Callable[..., Table]) -> None:
    table = create({"deletion-vectors.enabled": "true"})
    assert table.read().isEmpty() and table.count().rows == 0
    assert table.update({"n": "n + 1"}, "n >= 10").matched_rows == 2
    assert table.update({"v": "'z'"}, "n = 21").matched_rows == 1 and table.delete("n = 11").matched_rows == 1
    table.compact(full=True)
    assert read(table, "n", "v") == [(2, 21, "z"), (3, None, "c")] and table.count().how == "metadata"


def test_an_update_whose_rows_others_change_before_it_commits_is_worked_out_again(
    monkeypatch: pytest.MonkeyPatch, spark: SparkSession, create: Callable[..., Table]
) -> None:
    from lakelsm.write.batch_write import BatchWriter

    table, left = create(), ["once"]

    def step(name: str) -> None:
        if name == "data-files-written" and left:
            left.pop()
            with monkeypatch.context() as undone:
                undone.setattr("lakelsm.table.table.BatchWriter", BatchWriter)
                table.update({"n": "n + 100"}, "k = 2")
                table.delete("k = 1")

    with monkeypatch.context() as patched:
        patched.setattr("lakelsm.table.table.BatchWriter", lambda writer, store: BatchWriter(writer, store, step))
        assert table.update({"n": "n + 1"}, "n >= 10").matched_rows == 1
    assert read(table, "n") == [(2, 121), (3, None)]
