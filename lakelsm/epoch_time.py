"""Times that files tell in milliseconds since 1970, as datetimes: Python's end with the years 1 and 9999."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from lakelsm.errors import CorruptTableError

_UTC_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


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
