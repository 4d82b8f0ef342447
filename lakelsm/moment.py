"""Points in time that callers pass: one grammar and one rule of time zones for every call, engine and command.

A text without a zone is in the time zone of the table (option `lakelsm.time-zone`), else of its catalog, else in UTC. A
text may end with an offset or the name of a zone. A datetime with a tzinfo is exact; one without is in this machine's
local time, as in Python. The time zone of a Spark session is never used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo

from lakelsm.epoch_time import FIRST_MILLIS, LAST_MILLIS
from lakelsm.errors import InvalidInputError
from lakelsm.options.option_values import parse_zone
from lakelsm.secret_values import shown_text

#: How a text begins that is meant as a time.
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
#: A day after year 1 began, in epoch millis: before it no zone has a calendar.
_FIRST_MOMENT = FIRST_MILLIS + 86_400_000


def is_wrong_time(text: str) -> bool:
    """Whether a text is meant as a time and is none, such as '2026-02-30'."""
    if _DAY.match(text) is None:
        return False
    try:
        Moment.of_text(text)
    except ValueError:
        return True
    return False


@dataclass(frozen=True)
class Moment:
    """A point in time: what a clock of ``zone`` shows (None: of the table's zone). ``given`` is for messages."""

    given: str
    wall: datetime
    zone: tzinfo | None

    @staticmethod
    def of_text(text: str) -> Moment:
        """Parse a text. Raises ValueError for one that is no time."""
        found = _TEXT.fullmatch(text.strip())
        if found is None or (found["offset"] and found["zone"]):
            raise ValueError(f"{shown_text(text)!r} is no time")
        micros = (found["fraction"] or "").ljust(6, "0")[:6]
        wall = datetime.fromisoformat(f"{found['day']}T{found['minute'] or '00:00'}:{found['second'] or '00'}.{micros}")
        name = found["offset"] or found["zone"]
        return Moment(text, wall, None if name is None else parse_zone(name))

    @staticmethod
    def of_datetime(value: datetime) -> Moment:
        """Take a datetime of any class. Raises ValueError where no instant is known for it."""
        # A plain one: pandas' own refuses what Python's has, and warns of nanoseconds.
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
        except Exception as error:  # noqa: BLE001 (a tzinfo is the caller's code; the system's calendar has an end too)
            raise ValueError(f"{value!r} has no known offset from UTC ({type(error).__name__})") from None
        return Moment(str(value), plain.replace(tzinfo=None), timezone(offset))

    def millis(self, zone: tzinfo) -> int:
        """Milliseconds since 1970, rounded down; ``zone`` is that of a wall clock without its own.

        A time that the clock shows twice is the earlier one; one that it skips is as much later as the clock is put
        forward. Raises InvalidInputError for an instant outside of the years 1 to 9999.
        """
        ahead = self.wall.replace(tzinfo=zone if self.zone is None else self.zone, fold=0).utcoffset()
        found = (self.wall - _EPOCH - (ahead or timedelta(0))) // timedelta(milliseconds=1)
        if not FIRST_MILLIS <= found <= LAST_MILLIS:
            raise InvalidInputError(f"{self.given} is outside of the years 1 to 9999 in UTC: pass a time within them.")
        return found

    def __str__(self) -> str:
        return self.given


@dataclass(frozen=True)
class Age:
    """How old something may be: ``seconds`` before now, or a ``moment``, never both."""

    seconds: float | None = None
    moment: Moment | None = None

    def bound(self, now: int, zone: tzinfo) -> int:
        """The moment in epoch millis, as ``now`` is; ``zone`` is that of texts without one."""
        if self.moment is not None:
            return self.moment.millis(zone)
        return max(now - int((self.seconds or 0) * 1000), _FIRST_MOMENT)
