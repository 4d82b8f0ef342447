"""Rows in the form for users."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.local.output_rows import as_pandas, output_rows, output_schema
from lakelsm.types import DataField, parse_type
from tests.nano_times import times_of_nanos

FIELDS = (DataField(0, "t", parse_type("TIMESTAMP(9) NOT NULL")), DataField(1, "n", parse_type("INT")))


def test_nanoseconds_are_arrow_timestamps() -> None:
    stored = pa.table({"n": pa.array([1], pa.int32()), "t": times_of_nanos([1_000_000_001])})
    found = output_rows(stored, output_schema(FIELDS))
    assert found.schema == pa.schema([pa.field("t", pa.timestamp("ns"), False), ("n", pa.int32())])
    assert found.column("t").cast(pa.int64()).to_pylist() == [1_000_000_001]
    assert output_schema(FIELDS, all_nullable=True).field("t").nullable


def test_a_time_outside_the_range_of_nanoseconds_is_refused_with_its_column() -> None:
    stored = pa.table({"n": pa.array([1], pa.int32()), "t": times_of_nanos([10**20])})
    with pytest.raises(UnsupportedFeatureError, match="column 't': a timestamp is outside the years 1678 to 2261"):
        output_rows(stored, output_schema(FIELDS))


def test_values_that_pandas_cannot_hold_are_refused() -> None:
    days = pa.table({"d": pa.array([10_000_000], pa.int32()).cast(pa.date32())})
    with pytest.raises(UnsupportedFeatureError, match="pandas cannot hold the rows"):
        as_pandas(days)
