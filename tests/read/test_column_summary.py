"""Summaries of columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from lakelsm.read.column_summary import ColumnSummary, RowSummary, SummaryTask
from lakelsm.types import parse_columns, parse_type, to_arrow


def summed(kind: str, *parts: list[Any]) -> ColumnSummary:
    """Return the summary of a column from parts, each summarized by its own task."""
    columns = parse_columns(f"c {kind}")
    whole = RowSummary(columns)
    for part in parts:
        batch = pa.record_batch([pa.array(part, to_arrow(columns[0].type))], ["c"])

        def scan(unit: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
            yield unit

        for task_result in SummaryTask(scan, columns, 0)([batch]):
            whole.merge(task_result)
    assert whole.rows == sum(map(len, parts))
    return whole.summaries[0]


@pytest.mark.parametrize(
    ("kind", "parts", "bounds"),
    [
        ("INT", ([5, None], [-7, 6]), [-7, 6]),
        ("BOOLEAN", ([True], [False]), [False, True]),
        ("DATE", ([3], [1, 2]), None),
        ("DECIMAL(20, 2)", ([1, 5], [-3]), None),
        ("TIMESTAMP(9)", ([b"\x80" + b"\0" * 9], [b"\x80" + b"\0" * 8 + b"\1"]), None),
        ("DOUBLE", ([float("nan"), 1.5], [-2.5]), None),
        ("TIME(3)", ([7], [9]), None),
    ],
)
def test_bounds_are_those_of_all_parts(kind: str, parts: tuple[list[Any], ...], bounds: list[Any] | None) -> None:
    found = summed(kind, *parts)
    assert found.bounds is not None and found.bounds.type == to_arrow(parse_type(kind))
    everything = [value for part in parts for value in part if value is not None]
    if kind == "DOUBLE":
        assert repr(found.bounds.to_pylist()) == "[-2.5, nan]"
    else:
        expected = pa.array([min(everything), max(everything)], found.bounds.type)
        assert found.bounds.equals(expected) and found.bounds.to_pylist() == (bounds or expected.to_pylist())
    assert found.distinct.estimate() == len(set(map(repr, everything)))


def test_texts_have_lengths_in_characters_and_bytes_in_bytes_but_no_bounds() -> None:
    text, binary = summed("STRING", ["üü", None], ["abc"]), summed("BYTES", ["üü".encode(), None])
    assert (text.length, text.longest, text.nulls, text.bounds) == (5, 3, 1, None)
    assert (binary.length, binary.longest, binary.nulls, binary.bounds) == (4, 4, 1, None)


def test_nulls_alone_have_no_bounds_and_no_lengths() -> None:
    found = summed("INT", [None], [None, None])
    assert (found.nulls, found.bounds, found.distinct.estimate()) == (3, None, 0)
