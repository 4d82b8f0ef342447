"""Bounds of files as values that conditions can compare."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from lakelsm.plan.file_statistics import _values
from lakelsm.types import DataField, parse_type
from tests.nano_times import times_of_nanos

FIRST, LAST = -62_135_596_800_000_000_000, 253_402_300_799_999_999_999
YEARS = [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999), None, None, None]


@pytest.mark.parametrize(
    ("kind", "bounds", "wanted"),
    [
        ("TIMESTAMP(9)", times_of_nanos([FIRST, LAST, FIRST - 1, LAST + 1, None]), YEARS),
        ("TIMESTAMP(6)", pa.array([FIRST // 1000, LAST // 1000, -(2**63), 2**63 - 1, None], pa.timestamp("us")), YEARS),
        ("TIMESTAMP(3)", pa.array([FIRST // 10**6, -(2**63), 2**63 - 1], pa.timestamp("ms")), [YEARS[0], None, None]),
        ("DATE", pa.array([-719162, 2932896, -719163, 2932897], pa.date32()), [dt.date.min, dt.date.max, None, None]),
        ("TIMESTAMP(9)", times_of_nanos([-1]), [dt.datetime(1969, 12, 31, 23, 59, 59, 999999)]),
    ],
)
def test_bounds_outside_of_pythons_calendar_are_unknown(kind: str, bounds: pa.Array, wanted: list[Any]) -> None:
    assert _values(bounds, DataField(0, "t", parse_type(kind))) == wanted
