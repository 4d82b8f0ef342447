"""``lakelsm analyze``."""

from __future__ import annotations

from tests.cli.called import Called
from tests.maintain.versioned_table import versioned_table


def test_statistics_are_written_except_by_a_dry_run(called: Called) -> None:
    table = versioned_table(called.warehouse, 2)
    planned = called.planned("analyze", "--columns", "v, id")
    assert (planned["columns"], planned["rows"], planned["snapshot_id"]) == (["id", "v"], 2, None)
    found = called.json("analyze", "--columns", "v")
    assert (found["status"], found["columns"], found["snapshot_id"]) == ("done", ["v"], 3)
    assert table.inspect.system("statistics").to_arrow().num_rows == 1
    assert called.json("analyze", "--rows-alone")["columns"] == []
    assert "2 rows" in called.text("analyze")


def test_a_table_without_rows_has_nothing_to_analyze(called: Called) -> None:
    versioned_table(called.warehouse, 0)
    assert called.json("analyze")["status"] == "nothing"
    assert called.text("analyze") == "db.t: no snapshot to analyze\n"


def test_an_unknown_column_is_refused(called: Called) -> None:
    versioned_table(called.warehouse, 1)
    assert "column 'x' does not exist" in called.error("analyze", "--columns", "x")
    assert "not allowed with" in called.usage("analyze", "--columns", "v", "--rows-alone")
