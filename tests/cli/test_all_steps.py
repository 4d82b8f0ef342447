"""``lakelsm all``: steps run in their order, each with its status, under one deadline."""

from __future__ import annotations

import pytest

from tests.cli.called import Called
from tests.cli.test_orphans import leave_orphans
from tests.maintain.partitions.partitioned_table import fill, left, partitioned
from tests.maintain.versioned_table import values, versioned_table

RETAINED = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2"}
ORDER = ["tags", "consumers", "partitions", "compact", "expire", "orphans", "check"]


def statuses(found: dict[str, object]) -> dict[str, str]:
    steps = found["steps"]
    assert isinstance(steps, list)
    return {step["step"]: step["status"] for step in steps}


def test_each_step_runs_and_is_reported(called: Called) -> None:
    table = versioned_table(called.warehouse, 6, **RETAINED, **{"consumer.expiration-time": "1 h"})
    table.tags.create("past", 1, time_retained=0)
    (orphan,) = leave_orphans(called, 1)
    found = called.json("all")
    assert list(statuses(found)) == ORDER
    assert statuses(found) == {
        "tags": "done", "consumers": "nothing", "partitions": "nothing", "compact": "done", "expire": "done",
        "orphans": "done", "check": "done",
    }
    assert found["status"] == "done"
    assert table.tags.list() == [] and not orphan.exists()
    assert values(table) == [f"v{number}" for number in range(1, 7)]
    assert len(list((called.warehouse / "db.db/t/snapshot").glob("snapshot-*"))) == 2
    text = called.text("all")
    assert [line[1 : line.index("]")] for line in text.splitlines() if line.startswith("[")] == ORDER


def test_a_dry_run_plans_each_step_and_changes_no_byte(called: Called) -> None:
    versioned_table(called.warehouse, 6, **RETAINED).tags.create("past", 1, time_retained=0)
    leave_orphans(called, 1)
    found = called.planned("all")
    assert {name for name, status in statuses(found).items() if status == "planned"} == {
        "tags", "compact", "expire", "orphans"
    }


def test_old_partitions_are_dropped_before_the_compaction(called: Called) -> None:
    options = {"partition.expiration-time": "90 d", "partition.timestamp-formatter": "yyyy-MM-dd"}
    table = partitioned(called.warehouse, **options)
    fill(table, "2020-01-01", "9999-01-01")
    assert statuses(called.json("all"))["partitions"] == "done"
    assert left(table) == ["9999-01-01"]


def test_a_failed_step_does_not_stop_the_others(called: Called) -> None:
    versioned_table(called.warehouse, 6, **RETAINED)
    lost = next((called.warehouse / "db.db/t/bucket-0").glob("data-*"))
    lost.unlink()
    found = called.json("all", "--data", "none", status=5)
    assert statuses(found) | {"tags": "", "consumers": "", "partitions": "", "orphans": ""} == {
        "tags": "", "consumers": "", "partitions": "", "compact": "failed", "expire": "done", "orphans": "",
        "check": "findings",
    }
    (failed,) = (step for step in found["steps"] if step["step"] == "compact")
    assert lost.name in failed["error"] and failed["exit_status"] == 5
    assert found["status"] == "failed"


def test_findings_exit_with_5(called: Called) -> None:
    versioned_table(called.warehouse, 2)
    next((called.warehouse / "db.db/t/bucket-0").glob("data-*")).unlink()
    assert called.json("all", "--steps", "check,tags", status=5)["status"] == "findings"


def test_only_named_steps_run_in_their_order(called: Called) -> None:
    versioned_table(called.warehouse, 1)
    assert list(statuses(called.json("all", "--steps", "check, tags"))) == ["tags", "check"]
    assert "--steps: expected 'tags'," in called.usage("all", "--steps", "tags,vacuum")
    found = called.json("all", "--steps", "tags,consumers", "--distinct-exit-status", status=3)
    assert found["status"] == "nothing"


def test_no_step_starts_after_the_deadline(called: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    versioned_table(called.warehouse, 3)
    before = called.files()
    found = called.json("all", "--deadline", "0")
    assert set(statuses(found).values()) == {"deadline"}
    assert (found["status"], called.files()) == ("deadline", before)
