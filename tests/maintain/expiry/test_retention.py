"""The number and choice of the snapshots that expiry keeps: Paimon's rules of numbers, ages, consumers and limits."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.maintain.expiry.retention import (
    Retention,
    changelog_retention,
    first_kept,
    outlives_snapshots,
    requested_retention,
    snapshot_retention,
)
from lakelsm.options import TableOptions

HOUR = 3_600_000


def options(**values: str) -> TableOptions:
    keys = {key.replace("__", ".").replace("_", "-"): value for key, value in values.items()}
    return TableOptions.parse({"bucket": "1", **keys})


def kept(earliest: int, latest: int, consumers: dict[str, int] | None = None, **values: int) -> int:
    """Return the oldest id that is kept, if each snapshot counts as new until a time equal to its id."""
    retention = Retention(**{"min_count": 1, "max_count": 1000, "older_than": 0, "limit": 1000, **values})
    return first_kept(retention, earliest, latest, consumers or {}, lambda number: number).first


@pytest.mark.parametrize(
    "limits, first",
    [
        ({"older_than": 1000}, 20),  # One snapshot always stays.
        ({"older_than": 1000, "min_count": 3}, 18),
        ({"older_than": 1000, "min_count": 30}, 1),
        ({"older_than": 7}, 7),
        ({"older_than": 7, "min_count": 3}, 7),
        ({"older_than": 0}, 1),
        ({"max_count": 5, "older_than": 0}, 16),
        ({"max_count": 5, "min_count": 5, "older_than": 1000}, 16),
        ({"older_than": 1000, "limit": 4}, 5),
        ({"max_count": 5, "older_than": 0, "limit": 4}, 5),
        ({"older_than": 1000, "consumers": {"a": 9, "b": 12}}, 9),
        ({"older_than": 1000, "consumers": {"a": 50}}, 20),
    ],
)
def test_the_oldest_snapshot_that_is_kept(limits: dict[str, int], first: int) -> None:
    assert kept(1, 20, **limits) == first


def test_what_keeps_snapshots_is_reported() -> None:
    retention = Retention(min_count=1, max_count=5, older_than=0, limit=3)
    held = first_kept(retention, 1, 20, {"etl": 9}, lambda number: number).held_by
    assert held == ("the limit of 3 a run",)
    wide = Retention(min_count=1, max_count=5, older_than=0, limit=100)
    assert first_kept(wide, 1, 20, {"etl": 9, "b": 12}, lambda number: number).held_by == (
        "consumer etl, which reads snapshot 9 next",
    )
    assert first_kept(wide, 1, 20, {}, lambda number: number).held_by == ()


def test_a_deleted_snapshot_keeps_no_other() -> None:
    retention = Retention(min_count=1, max_count=1000, older_than=8, limit=1000)
    assert first_kept(retention, 1, 20, {}, lambda number: None if number < 12 else number).first == 12


def test_options_define_the_retention() -> None:
    now = 10 * HOUR
    usual = Retention(min_count=10, max_count=2147483647, older_than=9 * HOUR, limit=50)
    assert snapshot_retention(options(), now) == usual
    assert changelog_retention(options(), now) == snapshot_retention(options(), now)
    assert not outlives_snapshots(options())
    longer = options(changelog__time_retained="2 h")
    assert outlives_snapshots(longer)
    assert changelog_retention(longer, now).older_than == 8 * HOUR
    assert outlives_snapshots(options(changelog__num_retained__min="11"))
    assert outlives_snapshots(
        options(snapshot__num_retained__max="20", changelog__num_retained__max="21")
    )
    assert not outlives_snapshots(options(changelog__time_retained="1 min", changelog__num_retained__min="2"))


def test_arguments_of_a_call_replace_the_options() -> None:
    given, now = options(snapshot__num_retained__max="20"), 10 * HOUR

    def requested(**values: int) -> tuple[int, int, int, int]:
        found = requested_retention(given, now, **values)
        return found.min_count, found.max_count, found.older_than, found.limit

    assert requested() == (10, 20, 9 * HOUR, 50)
    assert requested(retain_last=3) == (3, 3, 9 * HOUR, 50), "without other arguments, all others expire"
    assert requested(retain_last=3, older_than=7) == (3, 20, 7, 50)
    assert requested(retain_last=30, older_than=7) == (30, 30, 7, 50)
    assert requested(retain_max=5) == (5, 5, 9 * HOUR, 50)
    assert requested(older_than=7, max_deletes=2) == (10, 20, 7, 2)
    with pytest.raises(InvalidInputError, match="retain_max: 3 is less than retain_last, which is 4"):
        requested(retain_max=3, retain_last=4)


def test_options_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"option 'snapshot\.num-retained\.max': 3 is less than"):
        snapshot_retention(options(snapshot__num_retained__max="3"), 0)
    with pytest.raises(InvalidInputError, match=r"changelog\.num-retained\.max': 3"):
        changelog_retention(options(changelog__num_retained__max="3"), 0)
