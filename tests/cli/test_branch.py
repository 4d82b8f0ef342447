"""``lakelsm branch``: create, rename, fast-forward, delete, list; and verbs on a branch."""

from __future__ import annotations

import pytest

from tests.cli.called import Called
from tests.maintain.versioned_table import rows, values, versioned_table


def test_a_branch_is_created_written_fast_forwarded_and_deleted(called: Called) -> None:
    table = versioned_table(called.warehouse, 2)
    table.tags.create("one", 1)
    called.planned("branch", "create", "b", "--tag", "one")
    assert called.json("branch", "create", "b", "--tag", "one")["status"] == "done"
    table.branches.open("b").write(rows((9, "v9")))
    (branch,) = called.json("branch", "list")["branches"]
    assert (branch["name"], branch["snapshot_id"]) == ("b", 2)
    called.planned("branch", "rename", "b", "c")
    assert "branch b renamed to c" in called.text("branch", "rename", "b", "c")
    planned = called.planned("branch", "fast-forward", "c")
    done = called.json("branch", "fast-forward", "c")
    assert (done["snapshot_id"], done["snapshots_added"]) == (2, 1)
    assert {**done, "status": "planned", "dry_run": True} == planned
    assert values(table) == ["v1", "v9"]
    called.planned("branch", "delete", "c")
    assert called.json("branch", "delete", "c")["branch"] == "c"
    assert called.text("branch", "list") == "db.t: no branches\n"


def test_a_verb_works_on_a_branch(called: Called) -> None:
    table = versioned_table(called.warehouse, 2)
    table.branches.create("b")
    table.branches.open("b").write(rows((1, "of b")))
    assert called.json("status", "--branch", "b")["table"] == "db.t$branch_b"
    called.json("tag", "create", "a", "--branch", "b")
    assert [tag.name for tag in table.branches.open("b").tags.list()] == ["a"] and table.tags.list() == []
    assert "is a branch" in called.error("branch", "create", "c", "--branch", "b")
    assert "branch 'none' does not exist" in called.error("status", "--branch", "none")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["create", "b"], "branch 'b' already exists"),
        (["create", "b", "--dry-run"], "branch 'b' already exists"),
        (["create", "c", "--tag", "none", "--dry-run"], "'none'"),
        (["create", "main"], "main"),
        (["delete", "c", "--dry-run"], "branch 'c' does not exist"),
        (["rename", "b", "b", "--dry-run"], "branch 'b' already exists"),
        (["fast-forward", "b", "--dry-run"], "has no snapshot"),
    ],
)
def test_an_impossible_request_is_one_line(called: Called, arguments: list[str], message: str) -> None:
    versioned_table(called.warehouse, 1).branches.create("b")
    assert message in called.error("branch", *arguments)


def test_an_existing_one_can_be_kept(called: Called) -> None:
    versioned_table(called.warehouse, 1).branches.create("b")
    assert called.json("branch", "create", "b", "--ignore-if-exists")["status"] == "done"
