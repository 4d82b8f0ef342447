"""`read(where=…)` opens few files, and never makes a hidden row visible."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakelsm import Table
from tests.engines import TableEngine, each_case, in_order

Row = tuple[Any, ...]
BUCKETS = 4


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Partitions a and b of 100 rows (v = id) on the top level, in 4 buckets; then ids 0 to 9 of a with v = -1."""
    local, warehouse = TableEngine("local"), tmp_path_factory.mktemp("pruned")
    made = local.create(warehouse, "id INT, v INT, p STRING", ["p", "id"], ["p"], {"bucket": str(BUCKETS)})
    local.write(made, [(i, i, p) for p in "ab" for i in range(100)])
    local.compact(made, full=True)
    local.write(made, [(i, -1, "a") for i in range(10)])
    return warehouse / "db.db" / "t"


@pytest.fixture
def table(engine: TableEngine, location: Path) -> Table:
    """The same table, opened."""
    return engine.opened(location)


CURRENT = [(i, -1 if p == "a" and i < 10 else i, p) for p in "ab" for i in range(100)]
#: condition, the same in Python, maximum number of files that it may open (new: the level-0 files of partition a)
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


#: Conditions that only Spark understands completely.
OF_SPARK = ("id + 0 = 5",)
BY_WHERE = {where: (holds, max_files) for where, holds, max_files in CASES}


@each_case("where", [where for where in BY_WHERE if where not in OF_SPARK], ["v = 5", "p = 'a' AND id = 5", *OF_SPARK])
def test_a_condition_opens_few_files_and_finds_its_rows(engine: TableEngine, table: Table, where: str) -> None:
    holds, max_files = BY_WHERE[where]
    plan = table.explain(where)
    new = table.explain().files_live - 2 * BUCKETS
    assert plan.files_live == table.explain().files_scanned
    assert plan.files_scanned <= max_files(new)
    assert engine.rows(table, where) == in_order(list(filter(holds, CURRENT)))


def test_a_hidden_row_stays_hidden_although_the_file_that_hides_it_fails_the_condition(
    engine: TableEngine, table: Table
) -> None:
    """Row (5, 5, a) is in an old file; its new version with -1 is in a file whose statistics exclude 5."""
    plan = table.explain("v BETWEEN 1 AND 9 AND p = 'a'")
    assert plan.merged_files, "the newer files are read too"
    assert engine.rows(table, "v BETWEEN 1 AND 9 AND p = 'a'") == []


def test_columns_and_a_condition_on_another_column_are_combined(engine: TableEngine, table: Table) -> None:
    where = "p = 'b' AND v >= 98"
    assert engine.columns(table, where=where, columns=["id"]) == ["id"]
    assert engine.rows(table, where, ["id"]) == [(98,), (99,)]


def test_a_deleted_row_stays_hidden_under_any_condition(engine: TableEngine, tmp_path: Path) -> None:
    made = engine.create(tmp_path, "id INT, v INT", ["id"])
    engine.write(made, [(1, 10), (2, 20), (3, 30)])
    engine.write(made, [("-D", 2, None)], "op")
    for where in ("v = 20", "id = 2", "v IS NULL", "id = 2 AND v = 20"):
        assert engine.rows(made, where) == [], where
    assert engine.rows(made, "v >= 20") == [(3, 30)]


def test_with_a_sequence_field_a_newer_file_may_contain_the_older_version(local: TableEngine, tmp_path: Path) -> None:
    made = local.create(tmp_path, "id INT, v INT, s INT", ["id"], options={"sequence.field": "s"})
    local.write(made, [(1, 10, 5), (2, 10, 5)])
    local.write(made, [(1, 99, 1), (2, 99, 9)])
    assert local.rows(made, "v = 99") == [(2, 99, 9)]
    assert local.rows(made, "v = 10") == [(1, 10, 5)]
    assert local.rows(made, "s = 1") == []


def test_thousands_of_terms_do_not_overflow_a_stack(engine: TableEngine, table: Table) -> None:
    # Spark's stack allows more than a thousand nested ANDs, but not 1,500.
    values = [f"(v != {at} OR v IS NULL)" for at in range(1_600) if at != 42]
    found = engine.rows(table, " AND ".join([*values, "v >= 0"]))
    assert found == [(42, 42, "a"), (42, 42, "b")]
    found = engine.rows(table, f"id IN ({', '.join(map(str, range(98, 4_000)))}) AND p = 'a'")
    assert found == [(98, 98, "a"), (99, 99, "a")]
