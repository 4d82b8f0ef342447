"""The schema changes for a frame depend on types only."""

from __future__ import annotations

import re

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.schema.evolution import apply_changes
from lakelsm.schema.row_rules import OnlyNull, is_assignable
from lakelsm.schema.schema_merge import FrameColumn, merge_changes
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.types import ArrayType, parse_type
from tests.typed_values import TYPED_VALUES

TYPES = sorted({typed.sql for typed in TYPED_VALUES} | {"DECIMAL(10, 0)", "DECIMAL(38, 38)", "TIMESTAMP(9)", "TIME(0)"})


def schema_of(own: str) -> TableSchema:
    return create_schema(f"id INT, dt DATE, v {own}", ["id", "dt"], ["dt"], {"bucket": "1"})


def merged(own: str, given: str, *, safe_casts: bool = True) -> str:
    """Return the type of the table's column after the merge."""
    schema = schema_of(own)
    changes = merge_changes(schema, [FrameColumn("V", parse_type(given))], safe_casts=safe_casts)
    after = apply_changes(schema, changes, 0) if changes else schema
    assert after.field_names == schema.field_names
    return after.field("v").type.sql()


@pytest.mark.parametrize(
    ("own", "given", "after"),
    [
        ("INT NOT NULL", "BIGINT", "BIGINT NOT NULL"),
        ("BIGINT", "INT", "BIGINT"),
        ("TINYINT", "FLOAT", "FLOAT"),
        ("INT", "FLOAT", "INT"),  # A FLOAT cannot hold every INT: values are cast if they fit.
        ("BIGINT", "DOUBLE", "BIGINT"),
        ("INT", "DECIMAL(12, 2)", "DECIMAL(12, 2)"),
        ("INT", "DECIMAL(11, 2)", "INT"),
        ("DECIMAL(10, 2)", "DECIMAL(12, 2)", "DECIMAL(12, 2)"),
        ("DECIMAL(10, 2)", "DECIMAL(11, 4)", "DECIMAL(10, 2)"),
        ("DECIMAL(10, 2)", "DOUBLE", "DECIMAL(10, 2)"),
        ("VARCHAR(3)", "STRING", "VARCHAR(3)"),
        ("VARCHAR(3)", "VARCHAR(5)", "VARCHAR(5)"),
        ("CHAR(3)", "VARCHAR(5)", "VARCHAR(5)"),
        ("VARBINARY(3)", "BINARY(5)", "VARBINARY(5)"),
        ("VARBINARY(5)", "BINARY(3)", "VARBINARY(5)"),
        ("TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(6)"),
        ("TIMESTAMP(6)", "DATE", "TIMESTAMP(6)"),
        ("DATE", "TIMESTAMP(6)", "DATE"),
        ("TIME(0)", "TIME(3)", "TIME(0)"),  # Java Paimon cannot read the table after such a change.
        ("ARRAY<INT NOT NULL>", "ARRAY<BIGINT>", "ARRAY<BIGINT NOT NULL>"),
        ("MAP<STRING, INT>", "MAP<STRING, BIGINT>", "MAP<STRING, BIGINT>"),
        ("MAP<INT, INT>", "MAP<BIGINT, INT>", "MAP<INT, INT>"),
        ("MULTISET<INT>", "MAP<BIGINT, INT>", "MULTISET<INT>"),
        ("ROW<a INT, b INT>", "ROW<A INT, b BIGINT, c STRING NOT NULL, d INT>",
         "ROW<`a` INT, `b` BIGINT, `c` STRING, `d` INT>"),
        ("ROW<a INT, b INT>", "ROW<x DATE, y INT, a INT, z TIMESTAMP(0), b INT>",
         "ROW<`x` DATE, `y` INT, `a` INT, `z` TIMESTAMP(6), `b` INT>"),
        ("ARRAY<ROW<a INT>>", "ARRAY<ROW<a INT, b MAP<INT, INT>>>", "ARRAY<ROW<`a` INT, `b` MAP<INT NOT NULL, INT>>>"),
    ],
)  # fmt: skip
def test_a_type_is_widened_if_no_old_value_changes(own: str, given: str, after: str) -> None:
    assert parse_type(merged(own, given)).sql() == parse_type(after).sql()


def test_every_pair_of_types_keeps_old_values_and_needs_only_one_merge() -> None:
    """Afterwards strict casts accept each value, times keep their digits, and no type is narrower."""
    for own in TYPES:
        for given in TYPES:
            try:
                after = merged(own, given, safe_casts=False)
            except InvalidInputError as error:
                assert not is_assignable(parse_type(given), parse_type(own)) and "in the frame and" in str(error)
                continue
            assert all(is_assignable(parse_type(one), parse_type(after)) for one in (own, given))
            assert merged(after, given, safe_casts=False) == after == merged(after, own, safe_casts=False)


@pytest.mark.parametrize(
    ("own", "given", "safe_casts", "message"),
    [
        ("INT", "STRING", True, "column 'v' is STRING in the frame and INT in the table, and a column of type"),
        ("STRING", "INT", True, "column 'v' is INT in the frame and STRING in the table"),
        ("BIGINT", "DOUBLE", False, "column 'v' is DOUBLE in the frame and BIGINT in the table"),
        ("DATE", "STRING", False, "column 'v' is STRING in the frame and DATE in the table"),
        ("ARRAY<INT>", "INT", True, "column 'v' is INT in the frame and ARRAY<INT> in the table"),
        ("ARRAY<INT>", "ARRAY<STRING>", True, "column 'v.element' is STRING in the frame and INT in the table"),
        ("MAP<INT, INT>", "MAP<STRING, INT>", True, "column 'v' is STRING in the frame and INT in the table"),
        ("ROW<a INT, b INT>", "ROW<b INT, a INT, c INT>", True, "a ROW needs its members in the table's order"),
        ("ROW<a INT, b INT>", "ROW<a INT, c INT>", True, "a ROW needs its members in the table's order"),
        ("ROW<a INT>", "ROW<a INT, A INT>", True, "a ROW needs its members in the table's order, each once"),
    ],
)
def test_a_column_that_cannot_be_reconciled_is_refused_with_both_types(
    own: str, given: str, safe_casts: bool, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        merged(own, given, safe_casts=safe_casts)


def test_new_columns_are_last_and_nullable_and_key_columns_do_not_change() -> None:
    schema = schema_of("INT")
    given = [
        FrameColumn("Op", parse_type("STRING")),
        FrameColumn("w", parse_type("TIMESTAMP(0) NOT NULL"), "a comment"),
        FrameColumn("ID", parse_type("BIGINT")),
        FrameColumn("v", OnlyNull()),
    ]
    (change,) = merge_changes(schema, given, "op")
    after = apply_changes(schema, [change], 0)
    assert (after.fields[-1].name, after.fields[-1].type.sql()) == ("w", "TIMESTAMP(6)")
    assert after.fields[-1].description == "a comment" and after.field("id") == schema.field("id")
    for column in ("id", "dt"):
        with pytest.raises(InvalidInputError, match=f"'{column}' is STRING .* the type of a key column cannot change"):
            merge_changes(schema, [FrameColumn(column, parse_type("STRING"))], safe_casts=False)
    for unknown in (OnlyNull(), ArrayType(OnlyNull())):
        with pytest.raises(InvalidInputError, match="column 'x': all values are NULL, so that the type is unknown"):
            merge_changes(schema, [FrameColumn("x", unknown)])
    with pytest.raises(InvalidInputError, match="column X, x occurs more than once in the frame"):
        merge_changes(schema, [FrameColumn("x", parse_type("INT")), FrameColumn("X", parse_type("INT"))])
