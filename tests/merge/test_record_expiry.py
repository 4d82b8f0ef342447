"""Rows expire by the time in a column."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.merge.record_expiry import RecordExpiry
from lakelsm.options import TableOptions
from lakelsm.types.nano_timestamps import with_nanoseconds

NOW = 1_700_000_000
TIMES = [NOW - 11, NOW - 10, NOW, None]


def stamps(unit: str, zone: str | None = None) -> pa.Array:
    values = [None if time is None else dt.datetime.fromtimestamp(time, dt.timezone.utc) for time in TIMES]
    return pa.array([value and value.replace(tzinfo=None) for value in values], pa.timestamp(unit, zone))


@pytest.mark.parametrize(
    "column",
    [
        pa.array(TIMES, pa.int32()),
        pa.array(TIMES, pa.int64()),
        pa.array([time and time * 1000 + 999 for time in TIMES], pa.int64()),
        stamps("ms"),
        stamps("us"),
        with_nanoseconds(stamps("ms")),
        stamps("us", "UTC"),
    ],
    ids=["INT", "BIGINT seconds", "BIGINT milliseconds", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)", "TIMESTAMP_LTZ"],
)
def test_rows_older_than_the_expire_time_expire_and_those_without_a_time_do_not(column: pa.Array) -> None:
    rows = pa.table({"t": column, "id": pa.array(range(4))})
    kept = RecordExpiry("t", 10).unexpired(rows, NOW * 1000 + 999)
    assert kept.column("id").to_pylist() == [1, 2, 3]


def test_a_table_where_nothing_expires_is_the_same_table() -> None:
    rows = pa.table({"t": pa.array([5], pa.int32())})
    assert RecordExpiry("t", 10).unexpired(rows, 0) is rows


def test_the_expiry_of_a_table_comes_from_its_options() -> None:
    assert RecordExpiry.of(TableOptions.parse({})) is None
    options = {"record-level.expire-time": "1 h", "record-level.time-field": "t"}
    assert RecordExpiry.of(TableOptions.parse(options)) == RecordExpiry("t", 3600)
    with pytest.raises(InvalidInputError, match=r"record-level\.time-field"):
        RecordExpiry.of(TableOptions.parse({"record-level.expire-time": "1 h"}))
