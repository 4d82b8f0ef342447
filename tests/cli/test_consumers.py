"""``lakelsm consumers``: list, record, delete, expire."""

from __future__ import annotations

from tests.cli.called import Called
from tests.maintain.versioned_table import versioned_table


def test_consumers_are_recorded_listed_and_deleted(called: Called) -> None:
    versioned_table(called.warehouse, 3)
    called.planned("consumers", "record", "etl", "--next-snapshot", "2")
    assert called.json("consumers", "record", "etl", "--next-snapshot", "2")["next_snapshot_id"] == 2
    (found,) = called.json("consumers", "list")["consumers"]
    assert (found["name"], found["next_snapshot_id"]) == ("etl", 2)
    assert called.text("consumers", "list").splitlines()[2].startswith("etl       2")
    called.planned("consumers", "delete", "etl")
    assert called.text("consumers", "delete", "etl") == "db.t: consumer etl deleted\n"
    assert called.text("consumers", "list") == "db.t: no consumers\n"


def test_inactive_consumers_expire(called: Called) -> None:
    versioned_table(called.warehouse, 1).consumers.record("etl", 1)
    assert called.json("consumers", "expire", "--older-than", "1 d")["status"] == "nothing"
    assert called.planned("consumers", "expire", "--older-than", "0")["consumers"] == ["etl"]
    assert called.json("consumers", "expire", "--older-than", "0")["consumers"] == ["etl"]
    assert "consumer.expiration-time" in called.error("consumers", "expire")


def test_an_impossible_request_is_one_line(called: Called) -> None:
    versioned_table(called.warehouse, 1)
    assert "--next-snapshot: consumer" in called.error("consumers", "record", "etl", "--next-snapshot", "9", "--dry-run")
    assert "consumer 'etl' does not exist" in called.error("consumers", "delete", "etl", "--dry-run")
    assert "--next-snapshot" in called.usage("consumers", "record", "etl")
