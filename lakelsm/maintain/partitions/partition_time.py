"""The time that a partition's values tell, as Paimon's `PartitionTimeExtractor` reads it.

``partition.timestamp-pattern`` makes one text of the values, ``partition.timestamp-formatter`` says how it is written.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError

#: 'yyyy-MM-dd' with or without ' HH:mm:ss.SSS', numbers of any width, read leniently: month 13 is the next year's first.
_DEFAULT = re.compile(
    r"(?P<year>-?[0-9]{1,10})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})"
    r"( (?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2}):(?P<second>[0-9]{1,2})(\.(?P<fraction>[0-9]{1,9}))?)?"
)
_FIELDS = {
    "y": "year",
    "u": "year",
    "M": "month",
    "d": "day",
    "H": "hour",
    "m": "minute",
    "s": "second",
    "S": "fraction",
}
_YEARS = {1: "[0-9]{1,10}", 2: "[0-9]{2}", 3: "[0-9]{3,10}", 4: "[0-9]{4}"}
#: The parts of a formatter: a quoted text, a run of one letter, or any other character.
_PART = re.compile(r"'(?P<quoted>(?:[^']|'')*)'|(?P<field>([A-Za-z])\3*)|(?P<other>.)", re.DOTALL)
#: Characters that Java's formatters keep for optional parts and for later.
_RESERVED = "[]{}#'"
#: What names a column in a pattern.
_NAMED = re.compile(r"\$\w+")
_DAY_MILLIS = 86_400_000


@dataclass(frozen=True)
class PartitionTimes:
    """Reads times from the texts of partition columns; ``keys`` are their names."""

    keys: Sequence[str]
    pattern: str | None
    formatter: str | None

    def millis(self, texts: Sequence[str | None]) -> int | None:
        """Milliseconds from 1970 to a partition's time, both on one wall clock; None where the values tell none."""
        text = self._text(texts)
        if text is None:
            return None
        found = (_DEFAULT if self.formatter is None else _compiled(self.formatter)).fullmatch(text)
        if found is None:
            return None
        parts = {name: value for name, value in found.groupdict().items() if value is not None}
        short_year = self.formatter is not None and len(parts.get("year", "")) == 2 and "yyy" not in self.formatter
        return _millis_of(parts, lenient=self.formatter is None, short_year=short_year)

    def _text(self, texts: Sequence[str | None]) -> str | None:
        """The text of a time; None where one of its columns is NULL. Raises InvalidInputError for an unknown column."""
        if self.pattern is None:
            return texts[0]
        # The longer name first: $dt is no part of $dt1.
        names = sorted(self.keys, key=len, reverse=True)
        by_name = dict(zip(self.keys, texts))
        pieces = re.split("\\$(" + "|".join(map(re.escape, names)) + ")", self.pattern)
        unknown = next((found[0] for found in map(_NAMED.search, pieces[::2]) if found is not None), None)
        if unknown is not None and "$" not in (self.formatter or ""):
            raise InvalidInputError(
                f"option 'partition.timestamp-pattern' = '{self.pattern}': {unknown} is no partition column; they are "
                + ", ".join(self.keys) + ". Alter the option: no partition would ever expire."
            )
        replaced = [by_name[piece] if place % 2 else piece for place, piece in enumerate(pieces)]
        known = [piece for piece in replaced if piece is not None]
        return "".join(known) if len(known) == len(replaced) else None


def _compiled(formatter: str) -> re.Pattern[str]:
    """The expression that a formatter means. Raises UnsupportedFeatureError for parts that lakelsm does not read."""
    expression, seen = "", set()
    for part in _PART.finditer(formatter):
        quoted, letters, other = part["quoted"], part["field"], part["other"]
        if quoted is not None:
            expression += re.escape(quoted.replace("''", "'") or "'")
        elif letters is not None:
            name, width = _FIELDS.get(letters[0]), len(letters)
            widths = _YEARS if name == "year" else {1: "[0-9]{1,2}", 2: "[0-9]{2}"}
            digits = f"[0-9]{{{width}}}" if name == "fraction" and width <= 9 else widths.get(width)
            if name is None or digits is None or name in seen:
                raise _unread(formatter, letters)
            seen.add(name)
            expression += f"(?P<{name}>{digits})"
        elif other in _RESERVED:
            raise _unread(formatter, other)
        else:
            expression += re.escape(other)
    return re.compile(expression)


def _unread(formatter: str, part: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"option 'partition.timestamp-formatter' = '{formatter}': lakelsm does not read {part!r} there. Write numbers "
        "with y, u, M, d, H, m, s and S, each once, or expire partitions by 'update-time'."
    )


def _millis_of(parts: dict[str, str], *, lenient: bool, short_year: bool) -> int | None:
    if not {"year", "month", "day"} <= parts.keys():
        return None
    numbers = {name: int(value) for name, value in parts.items() if name != "fraction"}
    year = numbers["year"] + (2000 if short_year else 0)
    month, day = numbers["month"], numbers["day"]
    hour, minute, second = (numbers.get(name, 0) for name in ("hour", "minute", "second"))
    if not lenient:
        midnight = (hour, minute, second) == (24, 0, 0)
        if not (1 <= month <= 12 and 1 <= day <= 31 and (hour <= 23 or midnight) and minute <= 59 and second <= 59):
            return None
        day = min(day, monthrange(2000 + year % 400, month)[1])
    months = np.datetime64((year - 1970) * 12 + month - 1, "M")
    days = int(months.astype("datetime64[D]").astype(np.int64)) + day - 1
    fraction = int(parts.get("fraction", "0").ljust(3, "0")[:3])
    return days * _DAY_MILLIS + ((hour * 60 + minute) * 60 + second) * 1000 + fraction
