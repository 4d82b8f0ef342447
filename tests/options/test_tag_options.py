"""The length of the periods of automatic tags."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.options import TableOptions


@pytest.mark.parametrize(
    ("options", "hours"),
    [
        ({}, 24),
        ({"tag.creation-period": "hourly"}, 1),
        ({"tag.creation-period": "two-hours"}, 2),
        ({"tag.creation-period": "hourly", "tag.creation-period-duration": "90 min"}, 1.5),
    ],
)
def test_a_duration_precedes_a_named_period(options: dict[str, str], hours: float) -> None:
    assert TableOptions.parse(options).tag_period_millis == hours * 3_600_000


def test_a_period_has_at_least_a_minute_because_names_have_no_seconds() -> None:
    with pytest.raises(InvalidInputError, match=r"tag\.creation-period-duration"):
        TableOptions.parse({"tag.creation-period-duration": "59 s"})
