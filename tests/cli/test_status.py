"""``lakelsm status`` and ``lakelsm history``."""

from __future__ import annotations

from tests.cli.called import Called
from tests.maintain.versioned_table import versioned_table


def test_a_status_is_one_screen_or_one_object(called: Called) -> None:
    versioned_table(called.warehouse, 3).tags.create("a")
    text = called.text("status")
    assert text.startswith("Table db.t, snapshot 3\n")
    assert len(text.splitlines()) < 25
    assert "1 tag," in text
    found = called.json("status", "--max-buckets", "1")
    assert (found["level0_files"], found["upkeep"]["snapshots"], len(found["worst_buckets"])) == (3, 3, 1)


def test_the_history_lists_the_operations(called: Called) -> None:
    table = versioned_table(called.warehouse, 2)
    assert called.text("history").startswith("db.t: 2 commits and maintenance runs\n")
    table.tags.create("a")
    table.compact(full=True)
    found = called.json("history")
    operations = [(run["operation"], run["outcome"]) for run in found["runs"]]
    assert sorted(operations) == [("WRITE", "done")] * 2 + [("compact", "done"), ("create_tag", "done")]
    lines = called.text("history", "--limit", "1").splitlines()
    assert lines[0] == "db.t: 1 commit or maintenance run"
    assert lines[1].startswith("started (UTC)") and "compact" in lines[2]
    assert len(lines) == 3
