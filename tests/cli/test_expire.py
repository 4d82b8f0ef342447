"""``lakelsm expire``: expired snapshots, reports and deadlines."""

from __future__ import annotations

import pytest

from lakelsm.maintain.expiry import snapshot_expiry
from tests.cli.called import Called
from tests.maintain.versioned_table import values, versioned_table


def test_snapshots_expire_as_requested_and_rows_remain(called: Called) -> None:
    table = versioned_table(called.warehouse, 5)
    table.tags.create("kept", 2)
    planned = called.planned("expire", "--retain-last", "2")
    done = called.json("expire", "--retain-last", "2")
    assert (done["status"], done["snapshots"], done["earliest_snapshot_id"], done["complete"]) == ("done", 3, 4, True)
    assert {**done, "status": "planned", "dry_run": True, "seconds": 0} == {**planned, "seconds": 0}
    assert values(table) == ["v1", "v2", "v3", "v4", "v5"]
    assert values(table.at(tag="kept")) == ["v1", "v2"]


def test_without_old_snapshots_there_is_nothing_to_do(called: Called) -> None:
    versioned_table(called.warehouse, 3)
    assert called.json("expire")["status"] == "nothing"
    assert called.json("expire", "--distinct-exit-status", status=3)["snapshots"] == 0
    assert "no snapshots expired" in called.text("expire", "--older-than", "7 days")


def test_the_text_names_what_keeps_older_snapshots(called: Called) -> None:
    versioned_table(called.warehouse, 4).consumers.record("etl", 2)
    text = called.text("expire", "--retain-last", "1")
    assert text.startswith("db.t: 1 snapshot expired")
    assert "  earliest   snapshot 2" in text
    assert "  held by    consumer etl, which reads snapshot 2 next" in text


def test_a_deadline_stops_between_groups_of_snapshots(
    called: Called, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = versioned_table(called.warehouse, 8)
    monkeypatch.setattr(snapshot_expiry, "_SLICE", 3)
    first = called.json("expire", "--retain-last", "1", "--deadline", "0")
    assert (first["status"], first["snapshots"], first["complete"]) == ("deadline", 3, False)
    assert first["earliest_snapshot_id"] == 4
    assert first["held_by"] == ["the deadline"]
    assert table.inspect.history(1).to_arrow()["outcome"].to_pylist() == ["partial"]
    rest = called.json("expire", "--retain-last", "1", "--deadline", "1 h")
    assert (rest["status"], rest["snapshots"], rest["complete"], rest["held_by"]) == ("done", 4, True, [])
    assert table.inspect.history(1).to_arrow()["outcome"].to_pylist() == ["done"]
    assert values(table) == [f"v{number}" for number in range(1, 9)]


def test_the_limit_of_a_run_also_applies_with_a_deadline(called: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    versioned_table(called.warehouse, 8)
    monkeypatch.setattr(snapshot_expiry, "_SLICE", 2)
    found = called.json("expire", "--retain-last", "1", "--max-deletes", "5", "--deadline", "1 h")
    assert (found["snapshots"], found["complete"], found["held_by"]) == (5, True, ["the limit of 5 a run"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--retain-last", "0"], "--retain-last: 0 is less than 1"),
        (["--older-than", "-1"], "--older-than: '-1' is not a duration"),
        (["--older-than", "soon"], "--older-than: 'soon' is not a duration"),
        (["--deadline", "-1"], "--deadline: '-1' is not a duration"),
        (["--max-deletes", "x"], "--max-deletes: expected a whole number, got 'x'"),
    ],
)
def test_a_wrong_command_line_is_named(called: Called, arguments: list[str], message: str) -> None:
    assert message in called.usage("expire", *arguments)


def test_an_error_of_the_method_is_one_line(called: Called) -> None:
    versioned_table(called.warehouse, 1)
    output = called.error("expire", "--retain-last", "2", "--retain-max", "1")
    assert "--retain-max: 1 is less than --retain-last" in output
