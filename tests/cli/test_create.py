"""``lakelsm create``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lakelsm import Catalog
from tests.cli.called import Called

JSON = json.dumps(
    {
        "version": 3,
        "id": 7,
        "fields": [{"id": 4, "name": "id", "type": "BIGINT"}, {"name": "p", "type": "STRING", "description": "x"}],
        "primaryKeys": ["id", "p"],
        "partitionKeys": ["p"],
        "options": {"bucket": "2"},
        "comment": "all",
    }
)


@pytest.mark.parametrize("form", ["DDL", "JSON", "file of DDL", "file of JSON"])
def test_a_table_is_created_from_ddl_or_json_and_described(called: Called, tmp_path: Path, form: str) -> None:
    words = ["id BIGINT, p STRING COMMENT 'x'", "--primary-key", "id, p", "--partition-by", "p", "--comment", "all"]
    words += ["--option", "bucket=2"]
    if form.endswith("JSON"):
        words = [JSON]
    if form.startswith("file"):
        (tmp_path / "schema").write_text(words[0])
        words[0] = f"@{tmp_path / 'schema'}"
    text = called.text("create", *words)
    ddl = "id BIGINT NOT NULL,\np STRING NOT NULL COMMENT 'x'\nPRIMARY KEY (id, p)\nPARTITIONED BY (p)\nCOMMENT 'all'"
    assert text == f"db.t: created\n{ddl}\n"
    assert called.text("describe") == f"db.t: schema 0\n{ddl}\n'bucket' = '2'\n"
    described = called.json("describe")["schema"]
    again = called.json("create", json.dumps(described), "--if-not-exists")
    assert (again["status"], again["schema"]) == ("nothing", described)
    assert "already exists: pass --if-not-exists." in called.error("create", *words)


def test_a_table_is_created_from_names_and_types(called: Called) -> None:
    text = called.text("create", '{"id": "BIGINT", "v": "STRING"}', "--primary-key", "id")
    assert text == "db.t: created\nid BIGINT NOT NULL,\nv STRING\nPRIMARY KEY (id)\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["id BLAH", "--primary-key", "id"], "BLAH"),
        (["id INT", "--primary-key", "no"], "no"),
        (["id INT", "--primary-key", "id", "--option", "buckets=1"], "'buckets'"),
        (["{"], "SCHEMA"),
        (['{"primaryKeys": ["id"]}'], "SCHEMA is not the JSON of a schema: expected 'fields', or types"),
        (['{"fields": "id INT"}'], "SCHEMA is not the JSON of a schema"),
        (['{"fields": [], "columns": []}'], "unknown keys columns; allowed are fields, primaryKeys"),
        ([JSON, "--primary-key", "id"], "--primary-key: ['id'] differs from 'primaryKeys' of SCHEMA, ['id', 'p']"),
        (["@/nothing/here", "--primary-key", "id"], "/nothing/here"),
        (['{"fields": [{"name": "id", "type": "INT"}], "options": 5, "primaryKeys": ["id"]}'], "SCHEMA is not the JSON"),
        (['{"fields": [{"name": "id", "type": "INT"}], "primaryKeys": 5}'], "--primary-key: expected a list"),
    ],
)
def test_a_wrong_schema_is_one_line_and_creates_nothing(called: Called, words: list[str], message: str) -> None:
    assert message in called.error("create", *words)
    assert Catalog(str(called.warehouse)).list_tables() == []


def test_one_table_is_created_by_its_name(called: Called) -> None:
    assert "name one table with --warehouse and --table" in called.usage("create", "id INT", "--database", "db")
    assert "name one table" in called.usage("create", "id INT", "--table", "db.u")
    assert "required: SCHEMA" in called.usage("create")
