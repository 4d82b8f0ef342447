"""System tables of schemas, options and the functions of columns."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from lakelsm import Catalog
from lakelsm.maintain.system_tables.schema_tables import AGGREGATION_FIELDS, OPTIONS, SCHEMAS
from lakelsm.maintain.system_tables.system_table import SystemTable, TableState
from lakelsm.schema_changes import AddColumn, UpdateComment
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import parse_type
from tests.maintain.system_tables.states import AT_UTC

OPTION_TEXTS = {
    "bucket": "1",
    "merge-engine": "aggregation",
    "fields.v.aggregate-function": "sum",
    "fields.v.ignore-retract": "true",
}


def rows(tmp_path: Path, system: SystemTable) -> pa.Table:
    catalog = Catalog(str(tmp_path))
    catalog.create_table("db.t", "k INT, v BIGINT COMMENT 'ü'", primary_key=["k"], options=OPTION_TEXTS)
    catalog.alter_table("db.t", AddColumn("r", parse_type("ROW<a INT>")), UpdateComment("told"))
    return system.rows(TableState(TableStore.open(str(tmp_path / "db.db" / "t")), None, AT_UTC))


def test_each_schema_has_its_columns_keys_and_options_as_flat_json(tmp_path: Path) -> None:
    first, second = rows(tmp_path, SCHEMAS).to_pylist()
    assert first["fields"] == (
        '[{"id":0,"name":"k","type":"INT NOT NULL"},{"id":1,"name":"v","type":"BIGINT","description":"ü"}]'
    )
    assert (first["schema_id"], first["partition_keys"], first["primary_keys"]) == (0, "[]", '["k"]')
    assert json.loads(first["options"]) == OPTION_TEXTS and ": " not in first["options"]
    assert (first["comment"], second["comment"], second["schema_id"]) == (None, "told", 1)


def test_options_are_those_of_the_newest_schema(tmp_path: Path) -> None:
    found = rows(tmp_path, OPTIONS).to_pylist()
    assert {row["key"]: row["value"] for row in found} == OPTION_TEXTS


def test_each_column_has_the_options_that_name_it(tmp_path: Path) -> None:
    key, value, _ = rows(tmp_path, AGGREGATION_FIELDS).to_pylist()
    assert key == {
        "field_name": "k", "field_type": "INT NOT NULL", "function": "[]", "function_options": "[]", "comment": None,
    }
    assert (value["function"], value["comment"]) == ("[sum, true]", "ü")
    assert value["function_options"] == "[fields.v.aggregate-function, fields.v.ignore-retract]"


def test_a_secret_that_another_engine_put_among_the_options_is_not_shown(tmp_path: Path) -> None:
    store = Catalog(str(tmp_path)).create_table("db.t", "k INT", primary_key=["k"])._opened
    stored = {**store.schema.options, "s3.secret-key": "hunter2", "bucket-key": "k", "bucket": "1"}
    path = store.paths.schema_file(0)
    store.file_io.write(path, store.schema.with_options(stored).to_json().encode())
    state = TableState(TableStore.open(store.paths.root), None, AT_UTC)
    shown = {row["key"]: row["value"] for row in OPTIONS.rows(state).to_pylist()}
    assert (shown["s3.secret-key"], shown["bucket-key"]) == ("…", "k")
    assert "hunter2" not in str(SCHEMAS.rows(state).to_pylist()) + repr(state.store) + repr(state.store.schema)
