"""``lakelsm partitions``: list, drop, expire, mark-done."""

from __future__ import annotations

import json

from tests.cli.called import Called
from tests.maintain.partitions.partitioned_table import fill, left, partitioned

OLD = ["2020-01-01", "2020-01-02", "2020-01-03"]


def test_partitions_are_listed(called: Called) -> None:
    fill(partitioned(called.warehouse), "a", "b")
    found = called.json("partitions", "list", "--where", "dt = 'b'")["partitions"]
    assert [(each["partition"], each["rows"], each["files"]) for each in found] == [("dt=b", 1, 1)]
    lines = called.text("partitions", "list").splitlines()
    assert [line.split()[0] for line in lines] == ["db.t:", "partition", "dt=a", "dt=b"]


def test_partitions_are_dropped(called: Called) -> None:
    table = partitioned(called.warehouse)
    fill(table, "a", "b")
    assert called.planned("partitions", "drop", "--where", "dt = 'a'")["partitions"] == ["dt=a"]
    found = called.json("partitions", "drop", "--where", "dt = 'a'", "--commit-user", "nightly")
    assert (found["status"], found["partitions"], found["snapshot_id"]) == ("done", ["dt=a"], 2)
    assert left(table) == ["b"]
    assert called.json("partitions", "drop", "--where", "dt = 'a'")["status"] == "nothing"
    assert "--where" in called.usage("partitions", "drop")
    assert "partition columns" in called.error("partitions", "drop", "--where", "v = 'x'")


def test_partitions_expire(called: Called) -> None:
    table = partitioned(called.warehouse, **{"partition.timestamp-formatter": "yyyy-MM-dd"})
    fill(table, *OLD, "9999-01-01", "never")
    assert called.planned("partitions", "expire", "--older-than", "90 d")["partitions"] == [f"dt={day}" for day in OLD]
    text = called.text("partitions", "expire", "--older-than", "90 d")
    assert text.startswith("db.t: 3 partitions dropped\n  partitions dt=2020-01-01, dt=2020-01-02, dt=2020-01-03\n")
    assert "1 partition with values that are not times, such as dt=never" in text
    assert left(table) == ["9999-01-01", "never"]
    assert "partition.expiration-time" in called.error("partitions", "expire")


def test_a_deadline_stops_between_commits(called: Called) -> None:
    options = {"partition.timestamp-formatter": "yyyy-MM-dd", "partition.expiration-batch-size": 1}
    table = partitioned(called.warehouse, **options)
    fill(table, *OLD)
    found = called.json("partitions", "expire", "--older-than", "1 d", "--deadline", "0")
    assert (found["status"], found["complete"]) == ("deadline", False)
    assert (found["partitions"], found["waiting"]) == (["dt=2020-01-01"], 2)
    assert left(table) == OLD[1:]
    found = called.json("partitions", "expire", "--older-than", "1 d", "--deadline", "1 h")
    assert (found["status"], found["complete"], left(table)) == ("done", True, [])


def test_partitions_are_marked_as_done(called: Called) -> None:
    fill(partitioned(called.warehouse), "a", "b")
    assert called.planned("partitions", "mark-done", "--where", "dt = 'a'")["partitions"] == ["dt=a"]
    assert called.json("partitions", "mark-done", "--where", "dt = 'a'")["partitions"] == ["dt=a"]
    success_file = called.warehouse / "db.db/t/dt=a/_SUCCESS"
    assert set(json.loads(success_file.read_text())) == {"creationTime", "modificationTime"}
    assert not (called.warehouse / "db.db/t/dt=b/_SUCCESS").exists()
