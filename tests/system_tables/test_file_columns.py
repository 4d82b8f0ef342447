"""Texts of columns as in Java; keys and statistics of files with several schemas."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Catalog
from lakelsm.schema_changes import AddColumn, DropColumn, RenameColumn, UpdateColumnType
from lakelsm.system_tables import file_columns
from lakelsm.system_tables.file_columns import cast_texts, joined, object_texts
from lakelsm.types import parse_type, to_arrow


def rows(k: list[int], **columns: list[object]) -> pa.Table:
    given = {"k": k, **columns}
    return pa.table({name: pa.array(each, pa.int32() if name in "kv" else None) for name, each in given.items()})


@pytest.mark.parametrize("at_once", [1, 100])
def test_statistics_follow_columns_that_were_renamed_widened_added_or_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(file_columns, "_MAX_FILES", at_once)
    catalog = Catalog(str(tmp_path))
    options = {"bucket": "1", "write-only": "true", "fields.few.stats-mode": "none"}
    table = catalog.create_table("db.t", "k INT, v INT, gone STRING, few STRING", primary_key=["k"], options=options)
    table.write(rows([1, 2, 3], v=[5, -7, 6], gone=["x", "y", "z"], few=["a", "b", "c"]))
    catalog.alter_table(
        "db.t",
        RenameColumn("v", "w"),
        UpdateColumnType("w", parse_type("BIGINT")),
        DropColumn("gone"),
        AddColumn("new", parse_type("DATE")),
    )
    table.write(pa.table({"k": pa.array([9], pa.int32()), "w": [8], "few": ["d"], "new": pa.array([3], pa.date32())}))
    found = table.inspect.system("files").to_arrow().to_pylist()
    assert [(row["min_key"], row["max_key"], row["schema_id"]) for row in found] == [("[1]", "[3]", 0), ("[9]", "[9]", 1)]
    assert [row["min_value_stats"] for row in found] == [
        "{few=null, k=1, new=null, w=-7}",
        "{few=null, k=9, new=3, w=8}",
    ]
    assert [row["null_value_counts"] for row in found] == ["{few=null, k=0, new=3, w=0}", "{few=null, k=0, new=0, w=0}"]


def column(kind: str, *values: Any) -> pa.Array:
    arrow = to_arrow(parse_type(kind))
    return pa.array(values, pa.int64()).cast(arrow) if pa.types.is_timestamp(arrow) else pa.array(values, arrow)


@pytest.mark.parametrize(
    ("kind", "value", "printed", "cast"),
    [
        ("BOOLEAN", True, "true", "true"),
        ("BIGINT", -5, "-5", "-5"),
        ("STRING", "a, ü", "a, ü", "a, ü"),
        ("DECIMAL(20, 10)", Decimal("0.0000000001"), "0.0000000001", "0.0000000001"),
        ("DOUBLE", -0.0, "-0.0", "-0.0"),
        ("FLOAT", 1e10, "1.0E10", "1.0E10"),
        ("DATE", 20000, "20000", "2024-10-04"),
        ("TIME(3)", 3_723_004, "3723004", "01:02:03.004"),
        ("TIMESTAMP(3)", 60_000, "1970-01-01T00:01", "1970-01-01 00:01:00.000"),
        ("BYTES", b"\xff\x01", "ff01", "\ufffd\x01"),
    ],
)
def test_a_value_is_printed_or_cast_to_a_text(kind: str, value: Any, printed: str, cast: str) -> None:
    data_type, values = parse_type(kind), column(kind, value, None, value)
    assert object_texts(values, data_type).to_pylist() == [printed, None, printed]
    assert cast_texts(values, data_type).to_pylist() == [cast, None, cast]


def test_floats_distinguish_both_zeros_and_nan() -> None:
    texts = object_texts(column("DOUBLE", 0.0, -0.0, float("nan")), parse_type("DOUBLE"))
    assert texts.to_pylist() == ["0.0", "-0.0", "NaN"]


def test_nested_values_have_no_text() -> None:
    assert object_texts(pa.array([[1]]), parse_type("ARRAY<INT>")).to_pylist() == [None]


def test_texts_of_a_row_are_joined_in_brackets_or_as_a_map() -> None:
    texts = [pa.array(["1", None], pa.large_string()), pa.array(["x", "y"], pa.large_string())]
    assert joined(texts, 2, "[]").to_pylist() == ["[1, x]", "[null, y]"]
    assert joined(texts, 2, "{}", ["a", "b"]).to_pylist() == ["{a=1, b=x}", "{a=null, b=y}"]
    assert joined([], 2, "{}").to_pylist() == ["{}", "{}"]
