"""Points in time as arguments: one grammar and one rule for time zones in all calls, engines and commands.

A text may end with an offset or the name of a zone. A text without a zone is in the time zone of the table (option
`lakelsm.time-zone`), else of its catalog, else in UTC. A datetime with a tzinfo is exact; one without it is in this
machine's local time, as in Python. The time zone of a Spark session is never used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo

from lakelsm.epoch_time import FIRST_MILLIS, LAST_MILLIS
from lakelsm.errors import InvalidInputError
from lakelsm.options.option_values import parse_zone
from lakelsm.secret_values import shown_text

#: The beginning of a text that is meant as a time.
_DAY = re.compile(r"\d{4}-\d{1,2}-\d{1,2}(?!\d)")
#: The forms of a point in time; they complete 'Use …'.
MOMENT_FORMS = (
    "a datetime, or a text such as '2025-01-31 08:00:00', with or without an offset or a time zone ('+09:00', 'Z', "
    "'Asia/Tokyo')"
)

_TEXT = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[ T](?P<minute>[0-9]{2}:[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{1,9}))?)?"
    r"(?P<offset>Z|[+-][0-9]{2}(?::?[0-9]{2}(?::?[0-9]{2})?)?)?)?"
    r"(?:[ ]+(?P<zone>[^\s]+))?"
)
_EPOCH = datetime(1970, 1, 1)
#: The second day of year 1 in epoch millis: before it, not all zones have a calendar.
_FIRST_MOMENT = FIRST_MILLIS + 86_400_000


def is_invalid_time(text: str) -> bool:
    """Return whether a text is meant as a time, but is not valid, such as '2026-02-30'."""
    if _DAY.match(text) is None:
        return False
    try:
        Moment.of_text(text)
    except ValueError:
        return True
    return False


@dataclass(frozen=True)
class Moment:
    """A point in time: the time on a clock of ``zone`` (None: the table's zone). Messages show ``given``."""

    given: str
    wall: datetime
    zone: tzinfo | None

    @staticmethod
    def of_text(text: str) -> Moment:
        """Parse a text. Raises ValueError if it is not a time."""
        found = _TEXT.fullmatch(text.strip())
        if found is None or (found["offset"] and found["zone"]):
            raise ValueError(f"{shown_text(text)!r} is not a time")
        micros = (found["fraction"] or "").ljust(6, "0")[:6]
        wall = datetime.fromisoformat(f"{found['day']}T{found['minute'] or '00:00'}:{found['second'] or '00'}.{micros}")
        name = found["offset"] or found["zone"]
        return Moment(text, wall, None if name is None else parse_zone(name))

    @staticmethod
    def of_datetime(value: datetime) -> Moment:
        """Convert a datetime of any class. Raises ValueError if its offset from UTC is unknown."""
        # A plain datetime: the class of pandas refuses values that Python accepts, and warns of nanoseconds.
        plain = datetime(
            value.year,
            value.month,
            value.day,
            value.hour,
            value.minute,
            value.second,
            value.microsecond,
            value.tzinfo,
            fold=value.fold,
        )
        try:
            if plain.utcoffset() is None:
                plain = plain.replace(tzinfo=None).astimezone()
            offset = plain.utcoffset() or timedelta(0)
        except Exception as error:  # noqa: BLE001 (a tzinfo is the caller's code; the system's calendar also has an end)
            raise ValueError(f"{value!r} has no known offset from UTC ({type(error).__name__})") from None
        return Moment(str(value), plain.replace(tzinfo=None), timezone(offset))

    def millis(self, zone: tzinfo) -> int:
        """Return the milliseconds since 1970, rounded down; ``zone`` applies if the time has no zone itself.

        A time that the clock shows twice is the earlier one. A time that the clock skips is later by the skipped
        interval. Raises InvalidInputError for an instant outside the years 1 to 9999.
        """
        offset = self.wall.replace(tzinfo=zone if self.zone is None else self.zone, fold=0).utcoffset()
        found = (self.wall - _EPOCH - (offset or timedelta(0))) // timedelta(milliseconds=1)
        if not FIRST_MILLIS <= found <= LAST_MILLIS:
            raise InvalidInputError(f"{self.given} is outside the years 1 to 9999 in UTC.")
        return found

    def __str__(self) -> str:
        return self.given


@dataclass(frozen=True)
class Age:
    """The maximum age of something: ``seconds`` before now, or a ``moment``, never both."""

    seconds: float | None = None
    moment: Moment | None = None

    def bound(self, now: int, zone: tzinfo) -> int:
        """Return the bound in epoch millis, like ``now``; ``zone`` applies to texts without a zone."""
        if self.moment is not None:
            return self.moment.millis(zone)
        return max(now - int((self.seconds or 0) * 1000), _FIRST_MOMENT)
