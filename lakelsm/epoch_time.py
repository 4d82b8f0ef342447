"""Conversion of times in files, in milliseconds since 1970, to datetimes, which have the years 1 to 9999."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from lakelsm.errors import CorruptTableError

_UTC_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
#: The first and the last millisecond of a datetime.
FIRST_MILLIS, LAST_MILLIS = -62_135_596_800_000, 253_402_300_799_999


def utc_time(millis: int, source: str) -> datetime:
    """Return a time in UTC. Raises CorruptTableError with the ``source`` for a year outside 1 to 9999."""
    try:
        return _UTC_EPOCH + timedelta(milliseconds=millis)
    except OverflowError as error:
        raise CorruptTableError(
            f"{source} is damaged: the time {millis} (milliseconds) is outside the years 1 to 9999. Restore its file."
        ) from error


def wall_time(millis: int, source: str) -> datetime:
    """Return the time of a wall clock, without a zone. Raises like `utc_time`."""
    return utc_time(millis, source).replace(tzinfo=None)


def bound_time(millis: int) -> datetime:
    """Return a bound in UTC; one outside the years 1 to 9999 becomes their first or last time."""
    if millis < FIRST_MILLIS:
        return datetime.min.replace(tzinfo=timezone.utc)
    return utc_time(millis, "A bound") if millis <= LAST_MILLIS else datetime.max.replace(tzinfo=timezone.utc)
