"""Times in milliseconds since 1970 are exact, and years outside the calendar raise a typed error."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from lakelsm.epoch_time import utc_time, wall_time
from lakelsm.errors import CorruptTableError


@pytest.mark.parametrize(
    ("millis", "time"),
    [
        (0, datetime(1970, 1, 1)),
        (-1, datetime(1969, 12, 31, 23, 59, 59, 999_000)),
        (253_402_300_799_999, datetime(9999, 12, 31, 23, 59, 59, 999_000)),
        (-62_135_596_800_000, datetime(1, 1, 1)),
    ],
)
def test_a_time_is_exact_to_the_millisecond(millis: int, time: datetime) -> None:
    assert wall_time(millis, "it") == time and utc_time(millis, "it") == time.replace(tzinfo=timezone.utc)


@pytest.mark.parametrize("millis", [253_402_300_800_000, -62_135_596_800_001, 2**63 - 1, -(2**63)])
def test_a_time_outside_the_calendar_is_damage_of_its_source(millis: int) -> None:
    with pytest.raises(CorruptTableError, match=f"Snapshot 3 is damaged: the time {millis} .* outside the years"):
        utc_time(millis, "Snapshot 3")
