"""Bounds of partition columns: whole values, in Java's order."""

from __future__ import annotations

import math
from datetime import date

import pyarrow as pa

from lakelsm.format.manifest import (
    summarize,
)
from lakelsm.format.row.binary_row import encode_row
from lakelsm.format.row.binary_row_decode import decode_row
from lakelsm.types import parse_type
from tests.format.manifest.manifest_samples import entry


def test_partition_bounds_are_whole_values_and_nulls_are_counted_by_entry() -> None:
    types = [parse_type("STRING"), parse_type("DATE")]
    rows: list[tuple[str | None, date]] = [
        ("b" * 40, date(2024, 1, 2)),
        (None, date(1969, 12, 31)),
        ("b", date(2024, 1, 1)),
    ]
    partitions = [encode_row(row, types) for row in rows]
    entries = [entry(partition=partitions[number]) for number in (0, 1, 1, 2)]
    stats = summarize("m", 1, entries, types).partition_stats
    assert decode_row(stats.min_values, types) == ("b", date(1969, 12, 31))
    assert decode_row(stats.max_values, types) == ("b" * 40, date(2024, 1, 2))
    assert stats.null_counts == (2, 0)


def test_partition_bounds_of_floats_have_javas_order() -> None:
    types = [parse_type("DOUBLE"), parse_type("FLOAT")]
    rows = [(0.0, 1.0), (-0.0, math.nan), (math.nan, -math.inf)]
    entries = [entry(partition=encode_row(row, types)) for row in rows]
    stats = summarize("m", 1, entries, types).partition_stats
    assert repr(decode_row(stats.min_values, types)) == "(-0.0, -inf)"
    assert repr(decode_row(stats.max_values, types)) == "(nan, nan)"


def test_partition_bounds_hold_dates_that_python_has_not() -> None:
    types = [parse_type("DATE")]
    far = pa.scalar(10_000_000, pa.int32()).cast(pa.date32())
    stats = summarize("m", 1, [entry(partition=encode_row([far], types))], types).partition_stats
    assert stats.max_values == encode_row([far], types)


def test_partition_bounds_of_a_column_without_values_are_null() -> None:
    types = [parse_type("INT")]
    stats = summarize("m", 1, [entry(partition=encode_row([None], types))], types).partition_stats
    assert decode_row(stats.min_values, types) == (None,)
    assert stats.null_counts == (1,)
