"""Bounds of partition columns: full values, in Java's order."""

from __future__ import annotations

import math
from datetime import date

import pyarrow as pa
import pytest

from lakelsm.format.manifest.data_file_meta import EMPTY_STATS
from lakelsm.format.manifest.partition_stats import comparable, partition_stats
from lakelsm.format.row.binary_row import EMPTY_ROW, encode_row
from lakelsm.format.row.binary_row_decode import decode_row
from lakelsm.types import parse_type


def test_partition_bounds_are_not_truncated_and_nulls_are_counted_by_entry() -> None:
    types = [parse_type("STRING"), parse_type("DATE")]
    rows: list[tuple[str | None, date]] = [
        ("b" * 40, date(2024, 1, 2)),
        (None, date(1969, 12, 31)),
        ("b", date(2024, 1, 1)),
    ]
    partitions = [encode_row(row, types) for row in rows]
    stats = partition_stats([partitions[number] for number in (0, 1, 1, 2)], types)
    assert decode_row(stats.min_values, types) == ("b", date(1969, 12, 31))
    assert decode_row(stats.max_values, types) == ("b" * 40, date(2024, 1, 2))
    assert stats.null_counts == (2, 0)


def test_partition_bounds_of_floats_have_javas_order() -> None:
    types = [parse_type("DOUBLE"), parse_type("FLOAT")]
    rows = [(0.0, 1.0), (-0.0, math.nan), (math.nan, -math.inf)]
    stats = partition_stats([encode_row(row, types) for row in rows], types)
    assert repr(decode_row(stats.min_values, types)) == "(-0.0, -inf)"
    assert repr(decode_row(stats.max_values, types)) == "(nan, nan)"


def test_partition_bounds_may_be_dates_outside_pythons_calendar() -> None:
    types = [parse_type("DATE")]
    far = pa.scalar(10_000_000, pa.int32()).cast(pa.date32())
    stats = partition_stats([encode_row([far], types)], types)
    assert stats.max_values == encode_row([far], types)


def test_partition_bounds_of_a_column_without_values_are_null() -> None:
    types = [parse_type("INT")]
    stats = partition_stats([encode_row([None], types)], types)
    assert decode_row(stats.min_values, types) == (None,)
    assert stats.null_counts == (1,)


def test_a_table_without_partitions_has_empty_bounds() -> None:
    assert partition_stats([EMPTY_ROW] * 3, []) == EMPTY_STATS


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_floats_compare_as_java_compares_them(kind: pa.DataType) -> None:
    ascending = [-math.inf, -1.5, -5e-324 if kind == pa.float64() else -1e-45, -0.0, 0.0, 2.0, math.inf, math.nan]
    ranks = comparable(pa.array([*ascending, None], kind)).to_pylist()
    assert ranks[:-1] == sorted(set(ranks[:-1])) and ranks[-1] is None


def test_times_compare_as_integers_and_texts_as_texts() -> None:
    assert comparable(pa.array([date(1970, 1, 3)])).to_pylist() == [2]
    assert comparable(pa.array([7, None], pa.timestamp("us"))).to_pylist() == [7, None]
    texts = pa.array(["b", "a"])
    assert comparable(texts) is texts
