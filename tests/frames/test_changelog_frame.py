"""A planned incremental read as a DataFrame: its order, what is pushed down to the scans, and its added columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lakelsm import Table
from lakelsm.frames import changelog_frame
from tests.read.tables import create, frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Create five snapshots of the keys 1 and 2 with a looked-up changelog."""
    options = {"changelog-producer": "lookup", "write-only": "false"}
    made = create(spark, tmp_path_factory.mktemp("changes"), "k INT, v STRING", ["k"], options=options)
    for number in range(5):
        made.write(frame(made, [(1, str(number)), (2, str(number))]))
    return made


def change_tuples(changes: DataFrame) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in changes.collect()]


def test_changes_of_many_snapshots_are_in_their_order(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    few = change_tuples(table.changelog(positions=True))
    monkeypatch.setattr(changelog_frame, "_MAX_SCANS", 1)
    many = change_tuples(table.changelog(positions=True))
    for key in (1, 2):
        assert [row for row in many if row[1] == key] == [row for row in few if row[1] == key]
    assert [row[0] for row in few if row[1] == 1] == ["+I", *["-U", "+U"] * 4]
    assert [row[3] for row in few if row[1] == 1] == [2, 4, 4, 6, 6, 8, 8, 10, 10]


def test_filters_and_columns_of_changes_are_pushed_down_to_the_scan(table: Table) -> None:
    plan = table.changelog().where("k = 2").select("rowkind", "k")._jdf.queryExecution().executedPlan().toString()
    assert "EqualTo(k,2)" in plan
    assert "v:string" not in plan[plan.index("ReadSchema") :]
