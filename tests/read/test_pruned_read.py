"""`read(where=…)` opens few files, and never lets a stale row come back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from lakelsm import Table
from tests.read.tables import create, frame, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[Any, ...]
BUCKETS = 4


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Partitions a and b of 100 rows (v = id) on the top level, in 4 buckets; then ids 0 to 9 of a with v = -1."""
    options = {"bucket": str(BUCKETS)}
    made = create(
        spark,
        tmp_path_factory.mktemp("pruned"),
        "id INT, v INT, p STRING",
        ["p", "id"],
        partition_by=["p"],
        options=options,
    )
    made.write(frame(made, [(i, i, p) for p in "ab" for i in range(100)]))
    made.compact(full=True)
    made.write(frame(made, [(i, -1, "a") for i in range(10)]))
    return made


CURRENT = [(i, -1 if p == "a" and i < 10 else i, p) for p in "ab" for i in range(100)]
#: condition, the same in Python, most files that it may open (new: the level-0 files of partition a)
CASES: tuple[tuple[str, Callable[[Row], bool], Callable[[int], int]], ...] = (
    ("p = 'a'", lambda r: r[2] == "a", lambda new: BUCKETS + new),
    ("p = 'b'", lambda r: r[2] == "b", lambda new: BUCKETS),
    ("p = 'c'", lambda r: False, lambda new: 0),
    ("p IN ('b', 'c') AND v < 3", lambda r: r[2] == "b" and r[1] < 3, lambda new: BUCKETS),
    ("p = 'a' AND id = 5", lambda r: r[2] == "a" and r[0] == 5, lambda new: 2),
    ("p = 'a' AND id = 50", lambda r: r[2] == "a" and r[0] == 50, lambda new: 1),
    ("id IN (50, 51)", lambda r: r[0] in (50, 51), lambda new: 4),
    ("id > 1000", lambda r: False, lambda new: 0),
    ("id < 0 OR p = 'x'", lambda r: False, lambda new: 0),
    ("v > 1000", lambda r: False, lambda new: 0),
    ("v = -1", lambda r: r[1] == -1, lambda new: new),
    ("v = 5", lambda r: r[1] == 5, lambda new: 2 * BUCKETS + new),
    ("v = 5 AND p = 'a'", lambda r: False, lambda new: BUCKETS + new),
    ("v IS NULL", lambda r: False, lambda new: 0),
    ("id + 0 = 5", lambda r: r[0] == 5, lambda new: 2 * BUCKETS + new),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_a_condition_opens_few_files_and_finds_its_rows(
    table: Table, case: tuple[str, Callable[[Row], bool], Callable[[int], int]]
) -> None:
    where, holds, most = case
    plan = table.plan(where)
    new = table.plan().files_live - 2 * BUCKETS
    assert plan.files_live == table.plan().files_scanned
    assert plan.files_scanned <= most(new)
    assert rows_of(table.read(where)) == sorted(filter(holds, CURRENT), key=repr)


def test_a_stale_row_stays_hidden_though_the_file_that_hides_it_fails_the_condition(table: Table) -> None:
    """Row (5, 5, a) is in an old file; that it became -1 stands in a file whose statistics exclude 5."""
    plan = table.plan("v BETWEEN 1 AND 9 AND p = 'a'")
    assert plan.merged_files, "the newer files are read too"
    assert rows_of(table.read("v BETWEEN 1 AND 9 AND p = 'a'")) == []


def test_columns_and_a_condition_on_another_column_go_together(table: Table) -> None:
    found = table.read("p = 'b' AND v >= 98", ["id"])
    assert found.columns == ["id"]
    assert rows_of(found) == [(98,), (99,)]


def test_a_deleted_row_stays_hidden_under_any_condition(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made = create(spark, tmp_path_factory.mktemp("deleted"), "id INT, v INT", ["id"])
    made.write(frame(made, [(1, 10), (2, 20), (3, 30)]))
    from pyspark.sql import functions as F

    made.write(frame(made, [(2, None)]).withColumn("op", F.lit("-D")), row_kind="op")
    for where in ("v = 20", "id = 2", "v IS NULL", "id = 2 AND v = 20"):
        assert rows_of(made.read(where)) == [], where
    assert rows_of(made.read("v >= 20")) == [(3, 30)]


def test_with_a_sequence_field_a_newer_file_may_hold_the_older_version(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made = create(
        spark, tmp_path_factory.mktemp("sequence"), "id INT, v INT, s INT", ["id"], options={"sequence.field": "s"}
    )
    made.write(frame(made, [(1, 10, 5), (2, 10, 5)]))
    made.write(frame(made, [(1, 99, 1), (2, 99, 9)]))
    assert rows_of(made.read("v = 99")) == [(2, 99, 9)]
    assert rows_of(made.read("v = 10")) == [(1, 10, 5)]
    assert rows_of(made.read("s = 1")) == []


def test_thousands_of_terms_do_not_overflow_sparks_stack(table: Table) -> None:
    values = [f"(v != {at} OR v IS NULL)" for at in range(2_500) if at != 42]
    found = rows_of(table.read(where=" AND ".join([*values, "v >= 0"])))
    assert found == [(42, 42, "a"), (42, 42, "b")]
    found = rows_of(table.read(where=f"id IN ({', '.join(map(str, range(98, 20_000)))}) AND p = 'a'"))
    assert found == [(98, 98, "a"), (99, 99, "a")]
