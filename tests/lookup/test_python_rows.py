"""Keys and rows as Python values."""

from __future__ import annotations

from datetime import date, datetime

import pyarrow as pa
import pytest

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.lookup.python_rows import key_row, python_rows
from lakelsm.types import arrow_field, parse_columns, to_arrow


@pytest.mark.parametrize(
    ("kind", "value"), [("INT", 7), ("TIMESTAMP(3)", datetime(2026, 1, 2)), ("TIMESTAMP(9)", bytes(10))]
)
def test_a_stored_key_comes_back_as_it_was(kind: str, value: object) -> None:
    fields = parse_columns(f"k {kind}, b STRING")
    stored = pa.array([value], to_arrow(fields[0].type))
    row = key_row((stored.to_pylist()[0], "x"), fields)
    assert row.equals(pa.table({"k": stored, "b": ["x"]}))


def test_rows_have_the_columns_asked_for_as_users_get_them() -> None:
    fields = parse_columns("d DATE, n INT")
    rows = pa.table({"n": [1, 2], "d": [date(2026, 1, 2), None]}, pa.schema([arrow_field(each) for each in fields[::-1]]))
    assert python_rows(rows, fields) == [(date(2026, 1, 2), 1), (None, 2)]
    assert python_rows(rows, fields[1:]) == [(1,), (2,)]
    assert python_rows(rows, ()) == [(), ()]


def test_a_time_that_python_does_not_have_is_refused() -> None:
    fields = parse_columns("d DATE")
    with pytest.raises(UnsupportedFeatureError, match=r"a row has a time that Python does not have .*in Arrow"):
        python_rows(pa.table({"d": pa.array([9_999_999], pa.date32())}), fields)
