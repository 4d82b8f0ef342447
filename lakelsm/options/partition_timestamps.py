"""Parsers of ``partition.timestamp-pattern`` and ``partition.timestamp-formatter``, which have Java's syntax."""

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
#: The fields that a date needs.
DAY_FIELDS = frozenset({"year", "month", "day"})
#: The parts of a formatter: a quoted text, a run of one letter, or any other character.
_PART = re.compile(r"'(?P<quoted>(?:[^']|'')*)'|(?P<field>([A-Za-z])\3*)|(?P<other>.)", re.DOTALL)
#: Characters that Java's formatters reserve for optional parts and future use.
_RESERVED = "[]{}#'"
#: A reference to a column in a pattern.
_REFERENCE = re.compile(r"\$\w+")


class PatternPieces(NamedTuple):
    """A pattern as text and names of partition columns in turn; ``unknown``: a reference to no partition column."""

    pieces: Sequence[str]
    unknown: str | None


def pattern_pieces(pattern: str, keys: Sequence[str]) -> PatternPieces:
    """Split a pattern at its references to the columns ``keys``; longer names match first ($dt1 before $dt)."""
    names = sorted(keys, key=len, reverse=True)
    pieces = re.split("\\$(" + "|".join(map(re.escape, names)) + ")", pattern) if names else [pattern]
    unknown = next((found[0] for found in map(_REFERENCE.search, pieces[::2]) if found is not None), None)
    return PatternPieces(pieces, unknown)


def parse_timestamp_formatter(text: str) -> re.Pattern[str]:
    """Return a formatter as a regular expression with one group per field. Raises ValueError for unsupported parts."""
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
                raise _unsupported(letters)
            seen.add(name)
            expression += f"(?P<{name}>{digits})"
        elif other in _RESERVED:
            raise _unsupported(other)
        else:
            expression += re.escape(other)
    return re.compile(expression)


def _unsupported(part: str) -> ValueError:
    return ValueError(
        f"{part!r} is not supported. Use numbers with y, u, M, d, H, m, s and S, each once, or expire partitions by "
        "'update-time'."
    )
