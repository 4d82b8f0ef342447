"""``lakelsm alter``."""

from __future__ import annotations

import re

import pytest

from lakelsm import Catalog
from lakelsm.cli.main import main
from tests.cli.called import Called


def test_changes_are_made_in_their_order_in_one_schema(called: Called) -> None:
    called.text("create", "id BIGINT, v INT, w STRING", "--primary-key", "id")
    changes = [
        *("--add-column", "n INT COMMENT 'it''s'"),
        *("--rename-column", "v=x", "--column-type", "x=BIGINT", "--column-comment", "x="),
        *("--drop-column", "w", "--move-column", "n first", "--nullable", "n"),
        *("--set", "snapshot.time-retained=2 d", "--set", "write-only=true", "--unset", "write-only"),
        *("--comment", "new"),
    ]
    found = called.json("alter", *changes)["schema"]
    assert (found["id"], found["comment"], found["options"]) == (1, "new", {"snapshot.time-retained": "2 d"})
    columns = [(field["name"], field["type"], field.get("description")) for field in found["fields"]]
    assert columns == [("n", "INT", "it's"), ("id", "BIGINT NOT NULL", None), ("x", "BIGINT", "")]
    assert called.text("alter", "--move-column", "n after id").startswith("db.t: schema 2\nid BIGINT NOT NULL,\nn INT")
    before = called.files()
    assert "'no'" in called.error("alter", "--add-column", "y INT", "--drop-column", "no")
    assert called.files() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "expected at least one change, such as --set KEY=VALUE"),
        (["--add-column", "x INT, y INT"], "--add-column: expected one column"),
        (["--add-column", "x BLAH"], "--add-column: .*BLAH"),
        (["--rename-column", "x"], "--rename-column: expected NAME=NEW"),
        (["--move-column", "x before y"], "--move-column: expected 'NAME first'"),
        (["--set", "a-token-hidden"], "--set: expected KEY=VALUE$"),
    ],
)
def test_a_wrong_change_is_a_wrong_command_line(called: Called, words: list[str], message: str) -> None:
    assert re.search(message, called.usage("alter", *words))


def test_an_option_is_set_on_all_tables_of_a_database(called: Called) -> None:
    catalog = Catalog(str(called.warehouse))
    tables = [catalog.create_table(name, "id INT", primary_key="id") for name in ("d.t", "d.u")]
    assert main(["alter", "--warehouse", str(called.warehouse), "--database", "d", "--set", "write-only=true"]) == 0
    assert [table.schema.options for table in tables] == [{"write-only": "true"}] * 2
