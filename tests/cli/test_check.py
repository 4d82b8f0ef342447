"""``lakelsm check``: findings have their own exit status."""

from __future__ import annotations

from tests.cli.called import Called
from tests.maintain.versioned_table import versioned_table


def test_a_sound_table_has_no_findings(called: Called) -> None:
    versioned_table(called.warehouse, 3)
    before = called.files()
    found = called.json("check", "--data", "full")
    assert (found["status"], found["ok"], found["findings"], found["rows_read"]) == ("done", True, [], 3)
    assert "no findings in 3 snapshots" in called.text("check")
    assert called.files() == before


def test_an_error_is_reported_with_its_remedy_and_exits_with_5(called: Called) -> None:
    versioned_table(called.warehouse, 2)
    lost = next((called.warehouse / "db.db/t/bucket-0").glob("data-*"))
    lost.unlink()
    found = called.json("check", status=5)
    assert (found["status"], found["ok"]) == ("findings", False)
    assert any(lost.name in finding["thing"] and finding["remedy"] for finding in found["findings"])
    text = called.text("check", "--data", "none", status=5)
    assert lost.name in text


def test_a_deadline_ends_the_check_and_is_reported(called: Called) -> None:
    versioned_table(called.warehouse, 2)
    found = called.json("check", "--deadline", "0")
    assert (found["status"], found["complete"], found["ok"]) == ("deadline", False, False)


def test_a_condition_is_on_partition_columns_only(called: Called) -> None:
    versioned_table(called.warehouse, 1)
    assert "partition columns" in called.error("check", "--where", "v = 'x'")
    assert "invalid choice: 'some'" in called.usage("check", "--data", "some")
