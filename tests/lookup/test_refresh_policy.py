"""When lookups refresh by themselves."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.lookup.refresh_policy import RefreshPolicy
from lakelsm.options import TableOptions
from lakelsm.surroundings import Surroundings

PERIODS = "lookup.refresh.time-periods-blacklist"


def at(shown: str, offset: int = 0) -> Surroundings:
    """Surroundings whose local clock, ``offset`` seconds ahead of UTC, shows a time."""
    millis = int(datetime.fromisoformat(shown).replace(tzinfo=timezone.utc).timestamp() * 1000) - offset * 1000
    return Surroundings(clock=lambda: millis, local_offset=lambda _: offset)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 10.0),
        ({"continuous.discovery-interval": "3 s"}, 3.0),
        ({"continuous.discovery-interval": "3 s", "lookup.continuous.discovery-interval": "5 min"}, 300.0),
        ({"lookup.continuous.discovery-interval": "0 s"}, 0.0),
    ],
)
def test_the_interval_is_lookups_own_or_else_that_of_streams(options: dict[str, str], expected: float) -> None:
    assert RefreshPolicy.of(TableOptions.parse(options)).interval == expected


@pytest.mark.parametrize("offset", [0, 7200, -34200])
@pytest.mark.parametrize(
    ("shown", "quiet"),
    [
        ("2026-01-01 00:59:59.999", False),
        ("2026-01-01 01:00:00", True),
        ("2026-01-01 02:00:00", True),
        ("2026-01-01 02:00:00.001", False),
        ("2026-02-01 12:00:30", True),
        ("2026-03-01 12:00", False),
    ],
)
def test_periods_are_of_the_local_clock_and_have_their_ends(shown: str, quiet: bool, offset: int) -> None:
    periods = "2026-01-01 01:00->2026-01-01 02:00, 2026-02-01 12:00 -> 2026-02-01 13:00"
    policy = RefreshPolicy.of(TableOptions.parse({PERIODS: periods}))
    assert policy.is_quiet(at(shown, offset)) is quiet


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "2026-01-01 01:00",
        "2026-01-01 01:00->",
        "2026-01-01 02:00->2026-01-01 01:00",
        "2026-01-01 01:00->2026-01-01 02:00->2026-01-01 03:00",
        "2026-02-30 01:00->2026-03-01 02:00",
        "2026-01-01 24:00->2026-01-02 02:00",
        "2026-01-01 01:00:00->2026-01-01 02:00:00",
        "2026-01-01 01:00->2026-01-01 02:00,",
    ],
)
def test_malformed_periods_are_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"^option '{PERIODS}' cannot be "):
        TableOptions.parse({PERIODS: text})


def test_blank_periods_are_none() -> None:
    assert not RefreshPolicy.of(TableOptions.parse({PERIODS: " "})).is_quiet(at("2026-01-01 00:00"))
