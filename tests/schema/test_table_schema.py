"""TableSchema: creation, ids, keys, and schema files of every version."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from lakelsm.errors import CorruptTableError, InvalidInputError
from lakelsm.schema.evolution import apply_changes
from lakelsm.schema.table_schema import TableSchema, column_mapping, create_schema
from lakelsm.schema_changes import AddColumn, DropColumn, RenameColumn
from lakelsm.types import arrow_field, parse_columns, parse_type
from tests import golden_tables


def _flights() -> TableSchema:
    return create_schema(
        "dt STRING, id BIGINT, v DECIMAL(10, 2) COMMENT 'text', r ROW<x INT, y ARRAY<ROW<z INT>>>, w INT",
        primary_key=["dt", "id"],
        partition_by=["dt"],
        options={"bucket": "2"},
        comment="flights",
        now_millis=17,
    )


def test_ids_are_unique_and_the_highest_is_stored() -> None:
    schema = _flights()
    assert [column.id for column in schema.fields] == [0, 1, 2, 3, 7]
    assert schema.highest_field_id == 7
    assert schema.field("r").type.sql() == "ROW<`x` INT, `y` ARRAY<ROW<`z` INT>>>"


def test_key_columns_become_not_null() -> None:
    schema = _flights()
    assert [column.type.nullable for column in schema.fields] == [False, False, True, True, True]


def test_key_columns_become_nullable_with_the_option() -> None:
    schema = create_schema("id INT NOT NULL, v INT", ["id"], options={"primary-key.nullable": "true"})
    assert schema.field("id").type.nullable


def test_keys_are_derived_from_primary_and_partition_keys() -> None:
    schema = _flights()
    assert schema.trimmed_primary_keys == ("id",)
    assert schema.bucket_keys == ("id",)
    assert not schema.cross_partition
    assert [(f.name, f.id) for f in schema.key_fields] == [("_KEY_id", 1073741824)]
    assert create_schema("a INT, b INT", ["a"], ["b"]).cross_partition


def test_columns_can_be_arrow_ddl_or_fields() -> None:
    from_ddl = create_schema("a INT NOT NULL, b STRING", ["a"])
    from_arrow = create_schema(
        pa.schema([pa.field("a", pa.int32()), pa.field("b", pa.large_string())]), ["a"]
    )
    assert from_ddl == from_arrow == create_schema(parse_columns("a INT, b STRING"), ["a"])


def test_keys_in_options_are_the_same_as_arguments() -> None:
    schema = create_schema("a INT, b INT", options={"primary-key": "a, b", "partition": "b"})
    assert (schema.primary_keys, schema.partition_keys, dict(schema.options)) == (("a", "b"), ("b",), {})


def test_a_schema_is_equal_after_json_and_pickle() -> None:
    schema = _flights()
    assert TableSchema.from_json(schema.to_json()) == schema
    assert pickle.loads(pickle.dumps(schema)) == schema


def test_the_schema_file_has_paimons_format() -> None:
    document = json.loads(_flights().to_json())
    assert document["version"] == 3
    assert document["fields"][2] == {"id": 2, "name": "v", "type": "DECIMAL(10, 2)", "description": "text"}
    assert document["fields"][3]["type"]["fields"][1] == {
        "id": 6,
        "name": "y",
        "type": {
            "type": "ARRAY",
            "element": {"type": "ROW", "fields": [{"id": 5, "name": "z", "type": "INT"}]},
        },
    }
    assert (document["highestFieldId"], document["comment"], document["timeMillis"]) == (7, "flights", 17)


def test_arrow_fields_of_columns_carry_nullability_and_field_ids() -> None:
    identity, weight = (arrow_field(_flights().field(name)) for name in ("id", "w"))
    assert not identity.nullable
    assert weight.metadata == {b"PARQUET:field_id": b"7"}


def test_old_schema_versions_get_their_defaults() -> None:
    document = json.loads(create_schema("a INT", ["a"]).to_json())
    first = TableSchema.from_json(json.dumps({**document, "version": 1}))
    assert dict(first.options) == {"bucket": "1", "file.format": "orc"}
    second = TableSchema.from_json(json.dumps({**document, "version": 2}))
    assert dict(second.options) == {"file.format": "orc"}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"id": 0, "fields": [{"id": 0}]}', "not json"])
def test_a_damaged_schema_file_is_named(text: str) -> None:
    with pytest.raises(CorruptTableError, match="schema-7"):
        TableSchema.from_json(text, "schema-7")


@pytest.mark.parametrize(
    ("ddl", "primary", "partition", "reason"),
    [
        ("a INT, a STRING", ["a"], [], "duplicate column a"),
        ("a INT, r ROW<x INT, x INT>", ["a"], [], "duplicate member of column 'r': x"),
        ("a INT", ["b"], [], "primary key: column 'b' does not exist"),
        ("a INT", ["a", "a"], [], "duplicate primary key column a"),
        ("a INT", ["a"], ["b"], "partition: column 'b' does not exist"),
        ("a INT, b INT", ["a"], ["a"], "only partition columns"),
    ],
)
def test_wrong_columns_and_keys_are_refused(
    ddl: str, primary: list[str], partition: list[str], reason: str
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        create_schema(ddl, primary, partition)
    assert reason in str(caught.value)


def test_a_key_given_as_text_is_refused_with_a_remedy() -> None:
    with pytest.raises(InvalidInputError, match=r"Write \['id'\]"):
        create_schema("id INT", "id")


def test_the_error_on_an_unknown_column_lists_the_columns() -> None:
    with pytest.raises(InvalidInputError, match="dt, id, v, r, w"):
        _flights().field("x")


@pytest.mark.parametrize("version", golden_tables.VERSIONS)
def test_schema_files_of_java_are_read_and_written_the_same(version: str, tmp_path: Path) -> None:
    if not golden_tables.available():
        pytest.skip(f"golden tables {version}: {golden_tables.FOLDER} is not present")
    files = sorted(golden_tables.unpack(version, tmp_path).glob("*/schema/schema-*"))
    assert files
    for file in files:
        text = file.read_text()
        schema = TableSchema.from_json(text, str(file))
        assert json.loads(schema.to_json()) == json.loads(text)


def test_old_files_map_to_the_table_by_id() -> None:
    old = create_schema("k INT, v INT, n INT NOT NULL", ["k"], (), {"bucket": "2"})
    new = apply_changes(old, [RenameColumn("v", "w"), DropColumn("n"), AddColumn("n", parse_type("INT"))], 5)
    mapped = {table.name: None if file is None else file.name for table, file in column_mapping(old, new)}
    assert mapped == {"k": "k", "w": "v", "n": None}
