"""Parsers of the texts of options, with Paimon's rules: numbers, sizes, durations, periods, booleans, names, zones.

Each parser raises ValueError with the text and the reason; `Option.parse` adds the key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_INT_LIMIT = 2**31
#: An offset from UTC, optionally after a name of UTC.
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")
#: Files in the directory of zones that are refused: the machine's own zone, and zones with leap seconds.
_REFUSED_ZONE = re.compile(r"localtime|posixrules|Factory|(?:posix|right)/.*", re.DOTALL)
_LARGEST_OFFSET = timedelta(hours=18)
_LONG_LIMIT = 2**63
#: A text of so many characters is not parsed: its number is too large, and Python refuses thousands of digits.
_MANY_DIGITS = 1000

_SIZE_UNITS = {
    1: ("", "b", "bytes"),
    2**10: ("k", "kb", "kibibytes"),
    2**20: ("m", "mb", "mebibytes"),
    2**30: ("g", "gb", "gibibytes"),
    2**40: ("t", "tb", "tebibytes"),
}
# Nanoseconds per unit. A duration without a unit is in milliseconds.
_DURATION_UNITS = {
    86_400_000_000_000: ("d", "day", "days"),
    3_600_000_000_000: ("h", "hour", "hours"),
    60_000_000_000: ("m", "min", "minute", "minutes"),
    1_000_000_000: ("s", "sec", "secs", "second", "seconds"),
    1_000_000: ("", "ms", "milli", "millis", "millisecond", "milliseconds"),
    1_000: ("µs", "micro", "micros", "microsecond", "microseconds"),
    1: ("ns", "nano", "nanos", "nanosecond", "nanoseconds"),
}
_PERIODS = "Use 'yyyy-MM-dd HH:mm->yyyy-MM-dd HH:mm', the earlier time first, several joined by ','"
_AMOUNT = re.compile(r"([0-9]+)\s*(\D*)")


def parse_boolean(text: str) -> bool:
    """Parse 'true' or 'false', in any case."""
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise ValueError(f"{text!r} is not 'true' or 'false'")
    return lowered == "true"


def parse_int(text: str) -> int:
    """Parse a whole number of 32 bits."""
    return _whole(text, _INT_LIMIT)


def parse_long(text: str) -> int:
    """Parse a whole number of 64 bits."""
    return _whole(text, _LONG_LIMIT)


def parse_double(text: str) -> float:
    """Parse a finite decimal number."""
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError(f"{text!r} is not a finite number")
    return value


def parse_size(text: str) -> int:
    """Parse a size such as '128 mb' to bytes. Units are powers of 1024; a size without a unit is in bytes."""
    return _amount(text, _SIZE_UNITS, "a size. Use, for example, '128 mb' (b, kb, mb, gb, tb)")


def parse_duration(text: str) -> int:
    """Parse a duration such as '1 h' to milliseconds, rounded down; one without a unit is in milliseconds."""
    millis = _amount(text, _DURATION_UNITS, "a duration. Use, for example, '10 s' (d, h, min, s, ms)") // 1_000_000
    if millis >= _LONG_LIMIT:  # Other engines cannot open a table with such an option.
        raise ValueError(f"the milliseconds of {text!r} do not fit 64 bits")
    return millis


def parse_text(text: str) -> str:
    """Return the text unchanged."""
    return text


def parse_names(text: str) -> tuple[str, ...]:
    """Parse column names with commas between them; empty names at the end are dropped, as by Java's split."""
    names = [name.strip() for name in text.split(",")]
    while names and not names[-1]:
        names.pop()
    return tuple(names)


def parse_stats_mode(text: str) -> str:
    """Parse a statistics mode: 'none', 'counts', 'full' or 'truncate(<length>)' (docs/format.md 7.1), in any case."""
    lowered = text.strip().lower()
    if lowered in ("none", "counts", "full"):
        return lowered
    match = re.fullmatch(r"truncate\(\s*([0-9]{1,9})\s*\)", lowered)
    if match is None or int(match.group(1)) < 1:
        raise ValueError(f"{text!r} is not 'none', 'counts', 'full' or 'truncate(<length of 1 or more>)'")
    return f"truncate({int(match.group(1))})"


def parse_periods(text: str) -> tuple[tuple[int, int], ...]:
    """Parse periods of a local clock, 'yyyy-MM-dd HH:mm->yyyy-MM-dd HH:mm' joined by ','.

    Returns the first and the last millisecond of each (inclusive), counted from 1970 on the local clock.
    """
    periods = []
    for period in text.split(",") if text.strip() else ():
        times = [_wall_clock(time) for time in period.split("->")]
        if len(times) != 2 or times[0] > times[1]:
            raise ValueError(f"{period.strip()!r} is not a period. {_PERIODS}")
        periods.append((times[0], times[1]))
    return tuple(periods)


def _wall_clock(text: str) -> int:
    """Return the milliseconds from 1970 to a minute of a local clock."""
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}", text.strip()) is None:
        raise ValueError(f"{text.strip()!r} is not a minute. {_PERIODS}")
    try:
        shown = datetime.strptime(text.strip(), "%Y-%m-%d %H:%M").replace(tzinfo=timezone.utc)
    except ValueError:
        raise ValueError(f"{text.strip()!r} does not exist in the calendar") from None
    return int(shown.timestamp()) * 1000


def _whole(text: str, limit: int) -> int:
    if re.fullmatch(r"[+-]?[0-9]+", text.strip()) is None:
        raise ValueError(f"{text!r} is not a whole number")
    value = int(text) if len(text) < _MANY_DIGITS else limit
    if not -limit <= value < limit:
        raise ValueError(f"{text!r} does not fit {limit.bit_length()} bits")
    return value


def _amount(text: str, units: Mapping[int, tuple[str, ...]], wanted: str) -> int:
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not {wanted}")
    unit = match.group(2).strip().lower()
    for factor, names in units.items():
        if unit in names:
            number = int(match.group(1)) if len(text) < _MANY_DIGITS else _LONG_LIMIT
            value = number * factor
            if number >= _LONG_LIMIT or (units is _SIZE_UNITS and value >= _LONG_LIMIT):
                raise ValueError(f"{text!r} does not fit 64 bits")
            return value
    raise ValueError(f"{text!r} has the unknown unit '{unit}' and is not {wanted}")


def parse_zone(text: str) -> tzinfo:
    """Parse a time zone: a name ('Europe/Paris') or an offset from UTC ('GMT-08:00')."""
    name = text.strip()
    if name in ("Z", "UTC", "GMT", "UT"):
        return timezone.utc
    offset = _OFFSET.fullmatch(name)
    try:
        if _REFUSED_ZONE.fullmatch(name) is not None:
            raise ValueError("not a zone of the database")
        if offset is None:
            return ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise ValueError(f"{text!r} is not a time zone. Use, for example, 'Europe/Paris' or 'GMT-08:00'") from None
    sign, hours, minutes, seconds = offset.groups(default="0")
    ahead = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds))
    if ahead > _LARGEST_OFFSET or int(minutes) > 59 or int(seconds) > 59:
        raise ValueError(f"{text!r} is not within 18 hours of UTC")
    return timezone(-ahead if sign == "-" else ahead)
