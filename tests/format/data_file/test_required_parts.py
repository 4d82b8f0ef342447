"""NOT NULL within nested columns: NULL rows are written, and a NULL in a required part is refused."""

from __future__ import annotations

import io
import re
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.format.data_file.required_parts import filled_parts, requires_parts
from lakelsm.types import arrow_field, parse_columns

SCHEMA = pa.schema(
    arrow_field(field)
    for field in parse_columns(
        "k INT NOT NULL, r ROW<x INT NOT NULL, q ROW<z STRING NOT NULL> NOT NULL, y STRING>, "
        "a ARRAY<ROW<p INT NOT NULL>>, m MAP<STRING, ROW<p BIGINT NOT NULL> NOT NULL>, "
        "l ARRAY<ARRAY<INT NOT NULL> NOT NULL>, c MULTISET<STRING>, plain ARRAY<ROW<p INT>>"
    )
)
ROW = {
    "k": 1,
    "r": {"x": 1, "q": {"z": "a"}, "y": None},
    "a": [{"p": 1}, None],
    "m": [("a", {"p": 5})],
    "l": [[1, 2], []],
    "c": [("a", 1)],
    "plain": [None, {"p": None}],
}
EMPTY: dict[str, Any] = {"k": 2, "r": None, "a": [], "m": [], "l": [], "c": [], "plain": []}
NONE = {**dict.fromkeys(ROW), "k": 3}


def filled(table: pa.Table) -> pa.Table:
    columns = [filled_parts(column, field) for column, field in zip(table.columns, SCHEMA)]
    made = pa.Table.from_arrays(columns, schema=SCHEMA)
    made.validate(full=True)
    return made


@pytest.mark.parametrize("first", range(4))
def test_null_rows_with_required_parts_are_written_and_read_back(first: int) -> None:
    table = pa.Table.from_pylist([NONE, ROW, EMPTY, NONE, ROW], SCHEMA).slice(first, 2)
    file = io.BytesIO()
    pq.write_table(filled(table), file)
    read = pq.read_table(file)
    assert read.to_pylist() == table.to_pylist()
    # A compaction does the same: it reads what Parquet returns.
    assert filled(read.cast(SCHEMA)).to_pylist() == table.to_pylist()


@pytest.mark.parametrize(
    ("column", "value", "path"),
    [
        ("k", None, "k"),
        ("r", {"x": None, "q": {"z": "a"}}, "r.x"),
        ("r", {"x": 1, "q": None}, "r.q"),
        ("r", {"x": 1, "q": {"z": None}}, "r.q.z"),
        ("a", [None, {"p": None}], "a.element.p"),
        ("m", [("a", None)], "m.value"),
        ("m", [("a", {"p": None})], "m.value.p"),
        ("l", [[1], None], "l.element"),
        ("l", [[1, None]], "l.element.element"),
        ("c", [("a", None)], "c.value"),
    ],
)
def test_a_null_in_a_required_part_is_refused_by_its_path(column: str, value: Any, path: str) -> None:
    field = SCHEMA.field(column)
    rows = pa.chunked_array([pa.array([ROW[column], value], field.type)])
    with pytest.raises(InvalidInputError, match=re.escape(f"column '{path}': it is NOT NULL")):
        filled_parts(rows, field)


def test_columns_without_required_parts_are_not_copied() -> None:
    column = pa.chunked_array([pa.array([ROW["plain"]], SCHEMA.field("plain").type)])
    assert not requires_parts(column.type)
    assert filled_parts(column, SCHEMA.field("plain")) is column
