"""Texts of dates and times become the values that they represent (more cases in test_arrow_casts.py)."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.local.time_texts import TimeTextError, times_of_text
from lakelsm.types import AtomicType

_ZONES = st.integers(-18 * 60, 18 * 60).map(lambda minutes: dt.timezone(dt.timedelta(minutes=minutes)))
_TIMES = st.datetimes(dt.datetime(2, 1, 1), dt.datetime(9998, 1, 1))


@given(st.lists(st.none() | _TIMES), _ZONES, st.sampled_from("T "))
def test_times_of_any_zone_are_parsed_from_their_text(
    times: list[dt.datetime | None], zone: dt.timezone, sep: str
) -> None:
    texts = pa.array([time and time.isoformat(sep) for time in times], pa.string())
    assert times_of_text(texts, AtomicType("TIMESTAMP", precision=6)).to_pylist() == times
    zoned = [time and time.replace(tzinfo=zone) for time in times]
    texts = pa.array([time and time.isoformat(sep) for time in zoned], pa.string())
    assert times_of_text(texts, AtomicType("TIMESTAMP_LTZ", precision=6)).to_pylist() == zoned


@pytest.mark.parametrize("text", ["10:00:00.5.5", "10:00.5", "10:00:00.", "1:00", "10:00Z", "10:00:00.0123456789"])
def test_other_texts_are_not_times(text: str) -> None:
    with pytest.raises(TimeTextError):
        times_of_text(pa.array(["2026-01-01 10:00", f"2026-01-01 {text}"]), AtomicType("TIMESTAMP", precision=3))
