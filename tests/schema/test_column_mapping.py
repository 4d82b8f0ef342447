"""How the columns of an old file map to the table's columns."""

from __future__ import annotations

from lakelsm.schema.column_mapping import column_mapping
from lakelsm.schema.evolution import apply_changes
from lakelsm.schema.table_schema import create_schema
from lakelsm.schema_changes import AddColumn, DropColumn, RenameColumn
from lakelsm.types import parse_type


def test_old_files_map_to_the_table_by_id() -> None:
    old = create_schema("k INT, v INT, n INT NOT NULL", ["k"], (), {"bucket": "2"})
    new = apply_changes(old, [RenameColumn("v", "w"), DropColumn("n"), AddColumn("n", parse_type("INT"))], 5)
    mapped = {table.name: None if file is None else file.name for table, file in column_mapping(old, new)}
    assert mapped == {"k": "k", "w": "v", "n": None}
