"""What ``partition.timestamp-pattern`` and ``partition.timestamp-formatter`` mean: Java's texts, taken apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

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
#: Without these a text has no day.
DAY_FIELDS = frozenset({"year", "month", "day"})
#: The parts of a formatter: a quoted text, a run of one letter, or any other character.
_PART = re.compile(r"'(?P<quoted>(?:[^']|'')*)'|(?P<field>([A-Za-z])\3*)|(?P<other>.)", re.DOTALL)
#: Characters that Java's formatters keep for optional parts and for later.
_RESERVED = "[]{}#'"
#: What names a column in a pattern.
_NAMED = re.compile(r"\$\w+")


class PatternPieces(NamedTuple):
    """A pattern in pieces: text and names of partition columns by turns; ``unknown`` is what names no such column."""

    pieces: Sequence[str]
    unknown: str | None


def pattern_pieces(pattern: str, keys: Sequence[str]) -> PatternPieces:
    """The pieces of a pattern for partition columns of these names; the longer name first: $dt is no part of $dt1."""
    names = sorted(keys, key=len, reverse=True)
    pieces = re.split("\\$(" + "|".join(map(re.escape, names)) + ")", pattern) if names else [pattern]
    return PatternPieces(pieces, next((found[0] for found in map(_NAMED.search, pieces[::2]) if found is not None), None))


def parse_timestamp_formatter(text: str) -> re.Pattern[str]:
    """The expression of a formatter, a group for each field. Raises ValueError for parts that lakelsm does not read."""
    expression, seen = "", set()
    for part in _PART.finditer(text):
        quoted, letters, other = part["quoted"], part["field"], part["other"]
        if quoted is not None:
            expression += re.escape(quoted.replace("''", "'") or "'")
        elif letters is not None:
            name, width = _FIELDS.get(letters[0]), len(letters)
            widths = _YEARS if name == "year" else {1: "[0-9]{1,2}", 2: "[0-9]{2}"}
            digits = f"[0-9]{{{width}}}" if name == "fraction" and width <= 9 else widths.get(width)
            if name is None or digits is None or name in seen:
                raise _unread(letters)
            seen.add(name)
            expression += f"(?P<{name}>{digits})"
        elif other in _RESERVED:
            raise _unread(other)
        else:
            expression += re.escape(other)
    return re.compile(expression)


def _unread(part: str) -> ValueError:
    return ValueError(
        f"lakelsm does not read {part!r} there. Write numbers with y, u, M, d, H, m, s and S, each once, or expire "
        "partitions by 'update-time'."
    )
