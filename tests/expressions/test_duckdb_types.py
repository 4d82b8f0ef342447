"""Types and literals as DuckDB has them."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pytest

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.expressions.duckdb_types import expression_type, identifier, literal, text_literal, type_text
from lakelsm.types import parse_type
from tests.sql.local.bound import table_of


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("CHAR(3)", "VARCHAR"),
        ("VARBINARY(3)", "BLOB"),
        ("TIME(3)", "INTEGER"),
        ("DECIMAL(38, 18)", "DECIMAL(38, 18)"),
        ("TIMESTAMP(3)", "TIMESTAMP"),
        ("TIMESTAMP(9)", "TIMESTAMP_NS"),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", "TIMESTAMPTZ"),
        ("ARRAY<MAP<STRING, INT>>", "MAP(VARCHAR, INTEGER)[]"),
        ("MULTISET<INT>", "MAP(INTEGER, INTEGER)"),
        ('ROW<`a"b` INT>', 'STRUCT("a""b" INTEGER)'),
    ],
)
def test_types(kind: str, text: str) -> None:
    assert type_text(parse_type(kind)) == text


def test_a_type_that_duckdb_lacks_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"TIMESTAMP\(9\) WITH LOCAL TIME ZONE"):
        type_text(parse_type("TIMESTAMP(9) WITH LOCAL TIME ZONE"))


def test_names_and_texts_are_quoted() -> None:
    assert identifier('a"; DROP') == '"a""; DROP"'
    assert text_literal("it's \\") == "'it''s \\'"
    assert text_literal("a\0'b") == "('a' || chr(0) || '''b')"
    assert literal(b"\x00\xff", parse_type("BYTES")) == "from_hex('00ff')"


def test_columns_of_all_types_pass_through_unchanged() -> None:
    columns = {
        "y": pa.array([-128, None], pa.int8()),
        "l": pa.array([2**63 - 1, None], pa.int64()),
        "f": pa.array([1.5, None], pa.float32()),
        "p": pa.array([Decimal("-1.50"), None], pa.decimal128(38, 2)),
        "t": pa.array(["a\0\U0001f600", None]),
        "b": pa.array([b"\x00\xff", None]),
        "d": pa.array([date(1, 1, 1), date(9999, 12, 31)]),
        "m": pa.array([datetime(1, 1, 1), None], pa.timestamp("us")),
        "n": pa.array([1, None], pa.timestamp("ns")),
        "z": pa.array([datetime(2024, 1, 1, tzinfo=timezone.utc), None], pa.timestamp("us", "UTC")),
        "a": pa.array([[1, None], None], pa.list_(pa.int32())),
        "k": pa.array([[("x", 1)], None], pa.map_(pa.string(), pa.int32())),
        "r": pa.array([{"q": 1, "s": None}, None], pa.struct([("q", pa.int32()), ("s", pa.string())])),
    }
    rows = pa.table(columns)
    assert table_of("SELECT * FROM t", rows).to_pylist() == rows.to_pylist()


def test_nested_types_that_differ_in_lengths_or_null_are_one_type() -> None:
    texts = ["ARRAY<CHAR(2) NOT NULL>", "ARRAY<STRING>", "MAP<STRING NOT NULL, INT>", "MAP<VARCHAR(9), INT NOT NULL>"]
    one, other, third, fourth = (expression_type(parse_type(text)) for text in texts)
    assert (one, third) == (other, fourth)
    row = expression_type(parse_type("ROW<a ARRAY<TIME(3)>, b ROW<c TIMESTAMP(3)>>"))
    assert row == expression_type(parse_type("ROW<a ARRAY<INT>, b ROW<c TIMESTAMP(6)>>"))
