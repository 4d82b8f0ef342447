"""``lakelsm tag``: create, replace, rename, delete, expire, list."""

from __future__ import annotations

import pytest

from tests.cli.called import Called
from tests.maintain.versioned_table import values, versioned_table


def test_a_tag_is_created_replaced_renamed_and_deleted(called: Called) -> None:
    table = versioned_table(called.warehouse, 3)
    assert called.planned("tag", "create", "a", "--snapshot", "2")["tag"]["snapshot_id"] == 2
    made = called.json("tag", "create", "a", "--snapshot", "2", "--time-retained", "365 d")
    assert (made["status"], made["tag"]["name"], made["tag"]["time_retained"]) == ("done", "a", 365 * 86400.0)
    assert values(table.at(tag="a")) == ["v1", "v2"]

    called.planned("tag", "replace", "a")
    assert called.json("tag", "replace", "a")["tag"]["snapshot_id"] == 3
    called.planned("tag", "rename", "a", "b")
    assert "tag b renamed from a, of snapshot 3" in called.text("tag", "rename", "a", "b")
    assert [tag["name"] for tag in called.json("tag", "list")["tags"]] == ["b"]
    assert called.planned("tag", "delete", "b")["tags"] == ["b"]
    assert "tags b deleted, with no files" in called.text("tag", "delete", "b")
    assert called.text("tag", "list") == "db.t: no tags\n"


def test_tags_expire_after_their_retention_time(called: Called) -> None:
    table = versioned_table(called.warehouse, 2)
    table.tags.create("kept", 1)
    table.tags.create("past", 2, time_retained=0)
    assert called.planned("tag", "expire")["tags"] == ["past"]
    assert called.json("tag", "expire")["tags"] == ["past"]
    assert called.json("tag", "expire", "--older-than", "1 d")["status"] == "nothing"
    header = called.text("tag", "list").splitlines()[1]
    assert header.split() == ["tag", "snapshot", "committed", "(UTC)", "rows", "created", "retained"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["create", "a"], "tag 'a' already exists"),
        (["create", "a", "--dry-run"], "tag 'a' already exists"),
        (["create", "b", "--snapshot", "9", "--dry-run"], "9"),
        (["replace", "b", "--dry-run"], "'b'"),
        (["rename", "a", "a", "--dry-run"], "tag 'a' already exists"),
        (["delete", "b"], "'b'"),
        (["create", "a/b"], "name: expected the name of a tag as text, without a slash, got 'a/b'"),
    ],
)
def test_an_impossible_request_changes_nothing(called: Called, arguments: list[str], message: str) -> None:
    versioned_table(called.warehouse, 1).tags.create("a")
    before = called.files()
    assert message in called.error("tag", *arguments)
    left = {path for path in called.files() if "/service/" not in path}
    assert left == {path for path in before if "/service/" not in path}


def test_an_existing_one_can_be_kept(called: Called) -> None:
    versioned_table(called.warehouse, 2).tags.create("a", 1)
    assert called.json("tag", "create", "a", "--if-not-exists")["tag"]["snapshot_id"] == 1


def test_a_tag_names_one_snapshot(called: Called) -> None:
    assert "not allowed with" in called.usage("tag", "create", "a", "--snapshot", "1", "--timestamp", "2025-01-01")
    assert "--time-retained: 'long' is not a duration" in called.usage("tag", "create", "a", "--time-retained", "long")
