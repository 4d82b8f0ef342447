"""Periods of automatic tags, and the names of these tags."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.maintain.versions.tag_period import Periods
from lakelsm.options import TableOptions

TIMES = st.datetimes(datetime(1, 2, 1), datetime(9999, 1, 1))
STYLES = ("with_dashes", "without_dashes", "without_dashes_and_spaces")
CHOICES = [
    {"tag.creation-period": period, "tag.period-formatter": style}
    for period in ("daily", "hourly", "two-hours")
    for style in STYLES
] + [{"tag.creation-period-duration": "90 min"}]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "2026-03-04"),
        ({"tag.period-formatter": "without_dashes"}, "20260304"),
        ({"tag.period-formatter": "without_dashes_and_spaces"}, "20260304"),
        ({"tag.creation-period": "hourly"}, "2026-03-04 05"),
        ({"tag.creation-period": "hourly", "tag.period-formatter": "without_dashes"}, "20260304 05"),
        ({"tag.creation-period": "hourly", "tag.period-formatter": "without_dashes_and_spaces"}, "2026030405"),
        ({"tag.creation-period": "two-hours", "tag.period-formatter": "without_dashes"}, "2026-03-04 05"),
        ({"tag.creation-period": "hourly", "tag.creation-period-duration": "10 min"}, "202603040506"),
    ],
)
def test_names_are_those_of_paimon(options: dict[str, str], name: str) -> None:
    assert Periods.of(TableOptions.parse(options)).name(datetime(2026, 3, 4, 5, 6)) == name


@pytest.mark.parametrize("options", CHOICES)
@given(time=TIMES)
def test_the_last_ended_period_and_its_name(options: dict[str, str], time: datetime) -> None:
    periods = Periods.of(TableOptions.parse(options))
    ended = periods.last_ended(time)
    assert timedelta(0) <= time - (ended + periods.length) < periods.length
    assert periods.period_of(periods.name(ended)) == ended


@pytest.mark.parametrize("name", ["", "release-1", "2026-3-4", "2026-03-32", "20260304", "2026-03-04x"])
def test_other_names_have_no_period(name: str) -> None:
    assert Periods.of(TableOptions.parse({})).period_of(name) is None


def test_text_after_a_space_is_ignored_in_names_of_days() -> None:
    assert Periods.of(TableOptions.parse({})).period_of("2026-03-04 again") == datetime(2026, 3, 4)
