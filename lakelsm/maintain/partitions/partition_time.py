"""The time in a partition's values, as Paimon's `PartitionTimeExtractor` reads it.

``partition.timestamp-pattern`` builds a text from the values, and ``partition.timestamp-formatter`` is its format.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from lakelsm.environment import Environment
from lakelsm.epoch_time import bound_time
from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.format.partition_path import partition_text
from lakelsm.format.row.binary_row import decode_rows
from lakelsm.options.partition_timestamps import DAY_FIELDS, parse_timestamp_formatter, pattern_pieces
from lakelsm.snapshots.table_store import TableStore

#: 'yyyy-MM-dd' with or without ' HH:mm:ss.SSS'. Lenient: numbers have any width, and month 13 is the next January.
_DEFAULT = re.compile(
    r"(?P<year>-?[0-9]{1,10})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})"
    r"( (?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2}):(?P<second>[0-9]{1,2})(\.(?P<fraction>[0-9]{1,9}))?)?"
)
_DAY_MILLIS = 86_400_000


@dataclass(frozen=True)
class PartitionTimes:
    """Reads times from the texts of partition values. ``keys`` are the names of the partition columns."""

    keys: Sequence[str]
    pattern: str | None
    formatter: str | None

    def millis(self, texts: Sequence[str | None]) -> int | None:
        """Return a partition's time in milliseconds from 1970, both on one wall clock; None if the values are no time."""
        text = self._text(texts)
        if text is None:
            return None
        found = (_DEFAULT if self.formatter is None else _expression(self.formatter)).fullmatch(text)
        if found is None:
            return None
        parts = {name: value for name, value in found.groupdict().items() if value is not None}
        short_year = self.formatter is not None and len(parts.get("year", "")) == 2 and "yyy" not in self.formatter
        return _millis_of(parts, lenient=self.formatter is None, short_year=short_year)

    def _text(self, texts: Sequence[str | None]) -> str | None:
        """Return the text of a time; None if a column is NULL. Raises InvalidInputError for an unknown column."""
        if self.pattern is None:
            return texts[0]
        by_name = dict(zip(self.keys, texts))
        pieces, unknown = pattern_pieces(self.pattern, self.keys)
        if unknown is not None and "$" not in (self.formatter or ""):
            raise InvalidInputError(
                f"option 'partition.timestamp-pattern' = '{self.pattern}': {unknown} is not a partition column, so no "
                f"partition has a time. Alter the option; the partition columns are {', '.join(self.keys)}."
            )
        replaced = [by_name[piece] if index % 2 else piece for index, piece in enumerate(pieces)]
        known = [piece for piece in replaced if piece is not None]
        return "".join(known) if len(known) == len(replaced) else None


def partition_texts(store: TableStore, partitions: Sequence[bytes]) -> Iterator[Sequence[str | None]]:
    """Yield the values of each partition as text. Dates are like '2025-12-31', whatever the directories are called."""
    types = store.partition_types
    columns = decode_rows(list(partitions), types)
    for index in range(len(partitions)):
        values = [column[index] for column in columns]
        yield [partition_text(v, kind, False, "") if v.is_valid else None for v, kind in zip(values, types)]


def on_partitions_clock(store: TableStore, bound: int, environment: Environment) -> int:
    """Return a bound by the clock of the partitions' times, in milliseconds as if it were UTC.

    Values have no zone. They are in the table's time zone, or in local time without one, as in Paimon.
    """
    if store.time_zone is None:
        return environment.local_wall_clock(bound)
    ahead = bound_time(bound).astimezone(store.time_zone).utcoffset() or timedelta(0)
    return bound + ahead // timedelta(milliseconds=1)


def _expression(formatter: str) -> re.Pattern[str]:
    """Return the regular expression of a formatter. Raises UnsupportedFeatureError for unsupported parts."""
    try:
        return parse_timestamp_formatter(formatter)
    except ValueError as reason:
        raise UnsupportedFeatureError(f"option 'partition.timestamp-formatter' = '{formatter}': {reason}") from None


def _millis_of(parts: dict[str, str], *, lenient: bool, short_year: bool) -> int | None:
    if not parts.keys() >= DAY_FIELDS:
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
