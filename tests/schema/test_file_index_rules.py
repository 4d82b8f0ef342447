"""Which columns can have which index."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.options.file_index_options import BITMAP, BLOOM_FILTER
from lakelsm.schema.evolution import apply_changes
from lakelsm.schema.file_index_rules import can_have_index
from lakelsm.schema.table_schema import create_schema
from lakelsm.schema.validation import validate_existing_table, validate_table
from lakelsm.schema_changes import DropColumn, RenameColumn
from lakelsm.types import parse_type

_COLUMNS = "k INT, s STRING, y BYTES, d DECIMAL(9, 2), o BOOLEAN, m MAP<STRING, INT>"


@pytest.mark.parametrize(
    ("kind", "bloom", "bitmap"),
    [
        ("STRING", True, True),
        ("BYTES", True, False),
        ("BOOLEAN", False, True),
        ("DECIMAL(9, 2)", False, False),
        ("TIMESTAMP(9)", True, True),
        ("ARRAY<INT>", False, False),
    ],
)
def test_types_with_an_index_are_those_of_java(kind: str, bloom: bool, bitmap: bool) -> None:
    data_type = parse_type(kind)
    assert (can_have_index(BLOOM_FILTER, data_type), can_have_index(BITMAP, data_type)) == (bloom, bitmap)


@pytest.mark.parametrize(
    ("kind", "column", "message"),
    [
        (BLOOM_FILTER, "x", "names the column 'x', which the table does not have; it has k, s, y"),
        (BLOOM_FILTER, "x[a]", "names the column 'x', which the table does not have"),
        (BLOOM_FILTER, "o", "names the column 'o' of type BOOLEAN, which cannot have such an index; leave it out"),
        (BITMAP, "y", "names the column 'y' of type BYTES"),
        (BITMAP, "d", r"names the column 'd' of type DECIMAL\(9, 2\)"),
        (BITMAP, "m", "names the column 'm' of type MAP"),
    ],
)
def test_an_index_that_a_column_cannot_have_is_refused_at_creation_by_name(kind: str, column: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=f"option 'file-index.{kind}.columns' {message}"):
        validate_table(create_schema(_COLUMNS, ["k"], (), {f"file-index.{kind}.columns": column}))


def test_an_index_of_a_key_of_a_map_is_refused_at_creation_and_tolerated_on_opening() -> None:
    schema = create_schema(_COLUMNS, ["k"], (), {"file-index.bitmap.columns": "m[a]"})
    with pytest.raises(UnsupportedFeatureError, match="one key of a map"):
        validate_table(schema)
    assert validate_existing_table(schema).file_indexes[0].is_nested


def test_a_column_with_an_index_keeps_it_under_a_new_name_and_cannot_be_dropped() -> None:
    options = {"file-index.bitmap.columns": "k,s", "file-index.bitmap.s.version": "1"}
    schema = create_schema(_COLUMNS, ["k"], (), options)
    renamed = apply_changes(schema, [RenameColumn(("s",), "text")], 0, True)
    assert renamed.options == {"file-index.bitmap.columns": "k,text", "file-index.bitmap.text.version": "1"}
    with pytest.raises(InvalidInputError, match="names the column 's', which the table does not have"):
        apply_changes(schema, [DropColumn(("s",))], 0, True)
