"""``lakelsm rollback``."""

from __future__ import annotations

import pytest

from lakelsm.cli.main import main
from tests.cli.called import Called
from tests.maintain.versioned_table import values, versioned_table


@pytest.mark.parametrize("to", [["--snapshot", "2"], ["--tag", "two"]])
def test_a_table_is_rolled_back(called: Called, to: list[str]) -> None:
    table = versioned_table(called.warehouse, 4)
    table.tags.create("two", 2)
    planned = called.planned("rollback", *to)
    assert (planned["snapshot_id"], planned["snapshots"]) == (2, [3, 4])
    assert values(table) == ["v1", "v2", "v3", "v4"]
    found = called.json("rollback", *to)
    assert (found["status"], found["snapshot_id"], found["files"]) == ("done", 2, planned["files"])
    assert values(table) == ["v1", "v2"]
    assert called.json("rollback", *to)["status"] == "nothing"


def test_a_time_before_all_snapshots_is_refused(called: Called) -> None:
    versioned_table(called.warehouse, 2)
    assert "db.t" in called.error("rollback", "--timestamp", "2001-01-01 00:00:00")
    assert "snapshots" in called.text("rollback", "--snapshot", "1")


@pytest.mark.parametrize("to", [[], ["--snapshot", "1", "--tag", "a"], ["--snapshot", "0"]])
def test_exactly_one_target_is_named(called: Called, to: list[str]) -> None:
    assert "error" in called.usage("rollback", *to)


def test_an_id_is_for_one_table_and_a_tag_for_several(called: Called) -> None:
    assert "name one table" in called.usage("rollback", "--snapshot", "1", "--table", "db.u")
    table = versioned_table(called.warehouse, 2)
    table.tags.create("a", 1)
    everything = ["rollback", "--warehouse", str(called.warehouse), "--database", "db", "--tag", "a"]
    with pytest.raises(SystemExit):
        main(everything)
    assert main([*everything, "--force"]) == 0
    assert table.inspect.snapshots().to_arrow()["snapshot_id"].to_pylist() == [1]
