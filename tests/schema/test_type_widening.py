"""Which changes of a column's type keep every value."""

from __future__ import annotations

import pytest

from lakelsm.schema.type_widening import can_widen
from lakelsm.types import parse_type


@pytest.mark.parametrize(
    ("old", "new", "possible"),
    [
        ("INT", "BIGINT NOT NULL", True),
        ("TINYINT", "INT", True),
        ("BIGINT", "INT", False),
        ("BIGINT", "DOUBLE", True),
        ("DECIMAL(10, 2)", "DOUBLE", True),
        ("DOUBLE", "FLOAT", False),
        ("INT", "DECIMAL(12, 2)", True),
        ("INT", "DECIMAL(11, 2)", False),
        ("DECIMAL(10, 2)", "DECIMAL(12, 3)", True),
        ("DECIMAL(10, 2)", "DECIMAL(10, 3)", False),
        ("CHAR(3)", "STRING", True),
        ("STRING", "VARCHAR(9)", False),
        ("CHAR(3)", "CHAR(5)", False),
        ("BINARY(3)", "BYTES", True),
        ("TIMESTAMP(3)", "TIMESTAMP(6)", True),
        ("TIMESTAMP(6)", "TIMESTAMP(3)", False),
        ("TIMESTAMP(6)", "TIMESTAMP_LTZ(6)", False),
        ("TIMESTAMP(6)", "DATE", False),
        ("INT", "STRING", False),
        ("ARRAY<INT>", "ARRAY<BIGINT>", True),
        ("ARRAY<INT>", "INT", False),
        ("MAP<INT, INT>", "MAP<INT, STRING>", False),
        ("BOOLEAN", "BOOLEAN", True),
    ],
)
def test_only_changes_that_keep_every_value_are_widening(old: str, new: str, possible: bool) -> None:
    assert can_widen(parse_type(old), parse_type(new)) is possible
