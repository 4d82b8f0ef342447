"""Times in files, in milliseconds since 1970, as datetimes: Python's end with the years 1 and 9999."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from lakelsm.errors import CorruptTableError

_UTC_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
#: The first and the last millisecond that a datetime can show.
FIRST_MILLIS, LAST_MILLIS = -62_135_596_800_000, 253_402_300_799_999


def utc_time(millis: int, source: str) -> datetime:
    """A time in UTC. Raises CorruptTableError, which names the ``source``, for a year that no calendar has."""
    try:
        return _UTC_EPOCH + timedelta(milliseconds=millis)
    except OverflowError as error:
        raise CorruptTableError(
            f"{source} has {millis} as a time in milliseconds, which is outside the years 1 to 9999: restore its file."
        ) from error


def wall_time(millis: int, source: str) -> datetime:
    """A wall clock's time, without a zone. Raises as `utc_time`."""
    return utc_time(millis, source).replace(tzinfo=None)


def bound_time(millis: int) -> datetime:
    """A bound in UTC; one that lies outside of the years 1 to 9999 is the first or the last time of these."""
    if millis < FIRST_MILLIS:
        return datetime.min.replace(tzinfo=timezone.utc)
    return utc_time(millis, "A bound") if millis <= LAST_MILLIS else datetime.max.replace(tzinfo=timezone.utc)
