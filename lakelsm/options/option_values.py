"""Parsing of option texts as Paimon does: whole numbers, sizes, durations, periods, booleans, lists and maps.

Every parser raises ValueError with the reason; `Option.parse` adds the key, the value and the remedy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_INT_LIMIT = 2**31
#: An offset from UTC, with or without a name of UTC before it.
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")
#: Names of files beside the zones: the machine's own zone, and zones with leap seconds.
_NO_ZONE = re.compile(r"localtime|posixrules|Factory|(?:posix|right)/.*", re.DOTALL)
_LARGEST_OFFSET = timedelta(hours=18)
_LONG_LIMIT = 2**63

_SIZE_UNITS = {
    1: ("", "b", "bytes"),
    2**10: ("k", "kb", "kibibytes"),
    2**20: ("m", "mb", "mebibytes"),
    2**30: ("g", "gb", "gibibytes"),
    2**40: ("t", "tb", "tebibytes"),
}
# Nanoseconds in a unit: a duration without a unit is in milliseconds.
_DURATION_UNITS = {
    86_400_000_000_000: ("d", "day", "days"),
    3_600_000_000_000: ("h", "hour", "hours"),
    60_000_000_000: ("m", "min", "minute", "minutes"),
    1_000_000_000: ("s", "sec", "secs", "second", "seconds"),
    1_000_000: ("", "ms", "milli", "millis", "millisecond", "milliseconds"),
    1_000: ("µs", "micro", "micros", "microsecond", "microseconds"),
    1: ("ns", "nano", "nanos", "nanosecond", "nanoseconds"),
}
_PERIODS = "write 'yyyy-MM-dd HH:mm->yyyy-MM-dd HH:mm', the earlier time first, several joined by ','"
_AMOUNT = re.compile(r"([0-9]+)\s*(\D*)")


def parse_boolean(text: str) -> bool:
    """'true' or 'false' in any case."""
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise ValueError("it must be 'true' or 'false'")
    return lowered == "true"


def parse_int(text: str) -> int:
    """A whole number of 32 bits."""
    return _whole(text, _INT_LIMIT)


def parse_long(text: str) -> int:
    """A whole number of 64 bits."""
    return _whole(text, _LONG_LIMIT)


def parse_double(text: str) -> float:
    """A finite decimal number."""
    try:
        value = float(text)
    except ValueError:
        raise ValueError("it must be a number") from None
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError("it must be a finite number")
    return value


def parse_size(text: str) -> int:
    """A size such as '128 mb' in bytes; units are powers of 1024, no unit means bytes."""
    return _amount(text, _SIZE_UNITS, "a size such as '128 mb' (b, kb, mb, gb, tb)")


def parse_duration(text: str) -> int:
    """A duration such as '1 h' in milliseconds, rounded down; no unit means milliseconds."""
    millis = _amount(text, _DURATION_UNITS, "a duration such as '10 s' (d, h, min, s, ms)") // 1_000_000
    if millis >= _LONG_LIMIT:  # Other engines cannot open a table with it.
        raise ValueError("it must be milliseconds that fit a whole number of 64 bits")
    return millis


def parse_text(text: str) -> str:
    """The text, unchanged."""
    return text


def parse_names(text: str) -> tuple[str, ...]:
    """Comma-separated column names, trimmed; empty names at the end are dropped, as Java's split does."""
    names = [name.strip() for name in text.split(",")]
    while names and not names[-1]:
        names.pop()
    return tuple(names)


def parse_stats_mode(text: str) -> str:
    """A statistics mode in lower case: 'none', 'counts', 'full' or 'truncate(<length>)' (docs/format.md 7.1)."""
    lowered = text.strip().lower()
    if lowered in ("none", "counts", "full"):
        return lowered
    match = re.fullmatch(r"truncate\(\s*([0-9]{1,9})\s*\)", lowered)
    if match is None or int(match.group(1)) < 1:
        raise ValueError("it must be 'none', 'counts', 'full' or 'truncate(<length of 1 or more>)'")
    return f"truncate({int(match.group(1))})"


def parse_periods(text: str) -> tuple[tuple[int, int], ...]:
    """Periods of a local clock, 'yyyy-MM-dd HH:mm->yyyy-MM-dd HH:mm' joined by ',': first and last milliseconds.

    They count from 1970 as the clock shows them; the last ones are within the periods.
    """
    periods = []
    for period in text.split(",") if text.strip() else ():
        times = [_wall_clock(time) for time in period.split("->")]
        if len(times) != 2 or times[0] > times[1]:
            raise ValueError(f"'{period.strip()}' is no period: {_PERIODS}")
        periods.append((times[0], times[1]))
    return tuple(periods)


def _wall_clock(text: str) -> int:
    """Milliseconds since 1970 of a minute that a clock shows."""
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}", text.strip()) is None:
        raise ValueError(f"'{text.strip()}' is no minute: {_PERIODS}")
    try:
        shown = datetime.strptime(text.strip(), "%Y-%m-%d %H:%M").replace(tzinfo=timezone.utc)
    except ValueError:
        raise ValueError(f"the calendar has no '{text.strip()}'") from None
    return int(shown.timestamp()) * 1000


def _whole(text: str, limit: int) -> int:
    if re.fullmatch(r"[+-]?[0-9]+", text.strip()) is None:
        raise ValueError("it must be a whole number")
    value = int(text)
    if not -limit <= value < limit:
        raise ValueError(f"it must be a whole number of {limit.bit_length()} bits")
    return value


def _amount(text: str, units: Mapping[int, tuple[str, ...]], wanted: str) -> int:
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"it must be {wanted}")
    unit = match.group(2).strip().lower()
    for factor, names in units.items():
        if unit in names:
            value = int(match.group(1)) * factor
            if int(match.group(1)) >= _LONG_LIMIT or (units is _SIZE_UNITS and value >= _LONG_LIMIT):
                raise ValueError("it must fit a whole number of 64 bits")
            return value
    raise ValueError(f"the unit '{unit}' is unknown; it must be {wanted}")


def parse_zone(text: str) -> tzinfo:
    """A time zone by its name ('Europe/Paris'), or as an offset from UTC ('GMT-08:00')."""
    name = text.strip()
    if name in ("Z", "UTC", "GMT", "UT"):
        return timezone.utc
    offset = _OFFSET.fullmatch(name)
    try:
        if _NO_ZONE.fullmatch(name) is not None:
            raise ValueError("no zone of the database")
        if offset is None:
            return ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise ValueError("it must be a time zone as 'Europe/Paris' or 'GMT-08:00'") from None
    sign, hours, minutes, seconds = offset.groups(default="0")
    ahead = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds))
    if ahead > _LARGEST_OFFSET or int(minutes) > 59 or int(seconds) > 59:
        raise ValueError("it must be within 18 hours of UTC")
    return timezone(-ahead if sign == "-" else ahead)
