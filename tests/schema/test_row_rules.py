"""Rules for rows that are written. tests/row_refusals.py has the texts, which both engines use."""

from __future__ import annotations

import pytest

from lakelsm.options import TableOptions
from lakelsm.schema.row_rules import OnlyNull, is_assignable, longest_value, names_of_table, untouched_columns
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.types import ArrayType, parse_type


def schema_of(columns: str, **options: str) -> TableSchema:
    given = {key.replace("_", "-"): value for key, value in options.items()}
    return create_schema(columns, ["k"], [], {"bucket": "1", **given}, None, 0)


@pytest.mark.parametrize(
    ("source", "target", "fits"),
    [
        ("TINYINT", "BIGINT", True),
        ("BIGINT", "INT", False),
        ("SMALLINT", "FLOAT", True),
        ("INT", "FLOAT", False),
        ("INT", "DOUBLE", True),
        ("BIGINT", "DOUBLE", False),
        ("FLOAT", "DOUBLE", True),
        ("DOUBLE", "FLOAT", False),
        ("INT", "DECIMAL(12, 2)", True),
        ("INT", "DECIMAL(11, 2)", False),
        ("DOUBLE", "DECIMAL(38, 2)", False),
        ("DECIMAL(5, 1)", "DECIMAL(9, 2)", True),
        ("DECIMAL(9, 2)", "DECIMAL(9, 3)", False),
        ("DATE", "TIMESTAMP(3)", True),
        ("TIMESTAMP(3)", "DATE", False),
        ("TIMESTAMP(9)", "TIMESTAMP(0)", True),
        ("TIMESTAMP(6)", "TIMESTAMP(6) WITH LOCAL TIME ZONE", False),
        ("INT", "TIME(3)", True),
        ("BIGINT", "TIME(3)", False),
        ("TIME(0)", "INT", False),
        ("CHAR(3)", "VARCHAR(1)", True),
        ("STRING", "BYTES", False),
        ("ARRAY<INT>", "ARRAY<BIGINT>", True),
        ("MAP<STRING, SMALLINT>", "MULTISET<STRING>", True),
        ("MAP<STRING, BIGINT>", "MULTISET<STRING>", False),
        ("ROW<A INT, `É` INT>", "ROW<a BIGINT, `é` INT>", True),
        ("ROW<a INT>", "ROW<b INT>", False),
        ("ROW<a INT>", "ROW<a INT, b INT>", False),
        ("ROW<a INT>", "INT", False),
    ],
)
def test_a_type_fits_if_every_value_of_it_fits(source: str, target: str, fits: bool) -> None:
    assert is_assignable(parse_type(source), parse_type(target)) is fits


def test_null_fits_every_type_at_any_depth() -> None:
    assert is_assignable(OnlyNull(), parse_type("ROW<a INT>"))
    assert is_assignable(ArrayType(OnlyNull()), parse_type("ARRAY<INT>"))
    assert not is_assignable(ArrayType(OnlyNull()), parse_type("INT"))


def test_names_of_frames_match_in_any_case() -> None:
    schema = schema_of("k INT, `Vé` INT")
    assert names_of_table(["VÉ", "K", "Op"], schema, "oP") == (["Vé", "k", "Op"], "Op")
    assert names_of_table(["k"], schema, "none") == (["k"], "none")


def test_only_partial_update_may_lack_columns_that_are_nullable() -> None:
    columns = "k INT, v INT, n INT NOT NULL"
    for engine, left_out in (("partial-update", ["v"]), ("deduplicate", [])):
        schema = schema_of(columns, merge_engine=engine)
        assert untouched_columns(["k"], schema, TableOptions.parse(dict(schema.options))) == left_out


def test_texts_and_bytes_have_a_maximum_length_unless_unbounded() -> None:
    assert [longest_value(parse_type(text)) for text in ("CHAR(2)", "VARBINARY(7)", "STRING", "BYTES", "INT")] == [
        *(2, 7, None, None, None)
    ]
