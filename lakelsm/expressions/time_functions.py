"""Functions of dates and times in DuckDB's SQL whose patterns or units are literals, and intervals."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlglot import exp

from lakelsm.expressions.decimal_arithmetic import BIGINT, with_value
from lakelsm.expressions.duckdb_casts import TIMESTAMP, TIMESTAMP_LTZ, DuckExpression, cast, failure, given_text, text_of
from lakelsm.expressions.duckdb_functions import DATE, Call, accepted, fixed
from lakelsm.expressions.duckdb_types import text_literal
from lakelsm.predicate.expression import INT, STRING, Expression, Value

#: Months and microseconds of the units of an interval.
_MONTHS = {"YEAR": 12, "MONTH": 1}
_SECOND = 1_000_000
_MICROSECONDS = {
    "WEEK": 7 * 86_400 * _SECOND,
    "DAY": 86_400 * _SECOND,
    "HOUR": 3_600 * _SECOND,
    "MINUTE": 60 * _SECOND,
    "SECOND": _SECOND,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}
_NUMBER = re.compile(r"\s*([+-]?)\s*(\d{1,9}(?:\.\d{1,6})?)\s*")
_PARTS = re.compile(r"(?i)([+-]?\s*\d{1,9}(?:\.\d{1,6})?)\s+([a-z]+)\s*")
_UNITS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    "QUARTER": "quarter",
    **dict.fromkeys(("MONTH", "MM", "MON"), "month"),
    "WEEK": "week",
}
_TIME_UNITS = {
    **dict.fromkeys(("DAY", "DD"), "day"),
    **{unit: unit.lower() for unit in ("HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")},
}
_MONTH_NAMES = [
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
]
_DAY_NAMES = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


@dataclass(frozen=True)
class Interval:
    """The length of an interval literal: months, or microseconds. ``has_time``: a unit is shorter than a day."""

    months: int
    micros: int
    has_time: bool

    def negated(self) -> Interval:
        """Return the interval backwards."""
        return Interval(-self.months, -self.micros, self.has_time)

    @staticmethod
    def total(parts: Sequence[Interval | None]) -> Interval | None:
        """Return the sum; None for one that is not known, and for one of months and other units."""
        known = [part for part in parts if part is not None]
        months, micros = sum(part.months for part in known), sum(part.micros for part in known)
        is_mixed = len({part.is_months for part in known}) != 1
        if len(known) < len(parts) or is_mixed:
            return None
        return Interval(months, micros, any(part.has_time for part in known))

    @property
    def is_months(self) -> bool:
        """Whether it has months only."""
        return not self.has_time and bool(self.months) and not self.micros


def interval(node: Any) -> Interval | None:
    """Return the length of an interval literal; None for another node, and for what Spark refuses."""
    if isinstance(node, exp.Paren):
        return interval(node.this)
    if isinstance(node, exp.Add):  # INTERVAL 1 DAY 2 HOURS
        return Interval.total([interval(node.this), interval(node.expression)])
    if not isinstance(node, exp.Interval) or not isinstance(node.this, exp.Literal):
        return None
    text, unit = str(node.this.this), node.args.get("unit")
    if unit is not None:
        return _of_unit(text, str(unit.name)) if isinstance(unit, exp.Var) else None
    found = list(_PARTS.finditer(text.strip()))
    if not found or "".join(each[0] for each in found) != text.strip():
        return None
    return Interval.total([_of_unit(each[1], each[2]) for each in found])


def _of_unit(number: str, unit: str) -> Interval | None:
    matched, name = _NUMBER.fullmatch(number), unit.upper().removesuffix("S")
    if matched is None:
        return None
    value, is_whole = Decimal(matched[1] + matched[2]), "." not in number
    if name in _MONTHS and is_whole and value:
        return Interval(int(value) * _MONTHS[name], 0, False)
    if name not in _MICROSECONDS or not (is_whole or name == "SECOND"):
        return None
    return Interval(0, int(value * _MICROSECONDS[name]), name not in ("WEEK", "DAY"))


def moved(time: Expression, step: Interval) -> Expression | None:
    """Return a date or time plus an interval. A date plus hours is a time with a time zone."""
    text = text_of(time)
    months = f"to_months({step.months})"
    if time.type == DATE and not step.has_time:
        days = step.micros // _MICROSECONDS["DAY"]
        return DuckExpression(DATE, f"CAST({text} + {months} AS DATE)" if step.months else f"({text} + ({days}))")
    if time.type in (DATE, TIMESTAMP_LTZ):
        plain = cast(time, TIMESTAMP)
        found = None if plain is None else moved(plain, step)
        return None if found is None else cast(found, TIMESTAMP_LTZ)
    if time.type != TIMESTAMP:
        return None
    return DuckExpression(TIMESTAMP, f"({text} + {months if step.months else f'to_microseconds({step.micros})'})")


def _truncated(arguments: Sequence[Expression]) -> Expression | None:
    """Bind trunc(date, unit): NULL for another unit."""
    name = given_text(arguments[1]) if len(arguments) == 2 else None
    date = accepted(arguments[0], "d") if arguments else None
    if name is None or date is None:
        return None
    unit = _UNITS.get(name.upper())
    if unit is None:
        return Value(DATE, None)
    return DuckExpression(DATE, f"CAST(date_trunc('{unit}', {text_of(date)}) AS DATE)")


def _truncated_time(arguments: Sequence[Expression]) -> Expression | None:
    """Bind date_trunc(unit, time): a time with a time zone, NULL for another unit."""
    name = given_text(arguments[0]) if len(arguments) == 2 else None
    given = accepted(arguments[1], "t") if name is not None else None
    time = None if given is None else cast(given, TIMESTAMP)
    if name is None or time is None:
        return None
    unit = {**_UNITS, **_TIME_UNITS}.get(name.upper())
    if unit is None:
        return Value(TIMESTAMP_LTZ, None)
    return cast(DuckExpression(TIMESTAMP, f"date_trunc('{unit}', {text_of(time)})"), TIMESTAMP_LTZ)


def _time(arguments: Sequence[Expression]) -> Expression | None:
    """Bind to_timestamp(text, date or time)."""
    is_known = len(arguments) == 1 and arguments[0].type.root in ("DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "VARCHAR")
    return cast(arguments[0], TIMESTAMP_LTZ) if is_known else None


def _unix_time(arguments: Sequence[Expression]) -> Expression | None:
    """Bind unix_timestamp(date or time): whole seconds since 1970, without those after the point."""
    given = accepted(arguments[0], "t") if len(arguments) == 1 else None
    time = None if given is None else cast(given, TIMESTAMP)
    return None if time is None else DuckExpression(BIGINT, f"(epoch_us({text_of(time)}) // {_SECOND})")


def _of_unix_time(arguments: Sequence[Expression]) -> Expression | None:
    """Bind from_unixtime(seconds [, pattern]): a text in UTC."""
    time = _times_of(_SECOND)(arguments[:1])
    return None if time is None else _formatted([time, *(arguments[1:] or [Value(STRING, "yyyy-MM-dd HH:mm:ss")])])


def _times_of(micros: int) -> Call:
    """Return the maker of timestamp_seconds and its like, for a unit of so many microseconds."""
    time = fixed(f"make_timestamp({{0}} * {micros})", "b", TIMESTAMP)

    def call(arguments: Sequence[Expression]) -> Expression | None:
        found = time(arguments)
        return None if found is None else cast(found, TIMESTAMP_LTZ)

    return call


_FIELDS = {
    "M": "month({x})",
    "d": "day({x})",
    "H": "hour({x})",
    "h": "((hour({x}) + 11) % 12 + 1)",
    "m": "minute({x})",
    "s": "second({x})",
}
#: Parts of a pattern of date_format, as expressions of a time ``x``; the year is from 1 to 9999.
_FORMATS = {
    "y": "CAST(year({x}) AS VARCHAR)",
    "yy": "lpad(CAST(year({x}) % 100 AS VARCHAR), 2, '0')",
    "yyyy": "lpad(CAST(year({x}) AS VARCHAR), 4, '0')",
    "MMM": f"{[name[:3] for name in _MONTH_NAMES]}[month({{x}})]",
    "MMMM": f"{_MONTH_NAMES}[month({{x}})]",
    **dict.fromkeys(("E", "EE", "EEE"), f"{[name[:3] for name in _DAY_NAMES]}[isodow({{x}})]"),
    "EEEE": f"{_DAY_NAMES}[isodow({{x}})]",
    "a": "CASE WHEN hour({x}) < 12 THEN 'AM' ELSE 'PM' END",
    **{letter: f"CAST({field} AS VARCHAR)" for letter, field in _FIELDS.items()},
    **{letter * 2: f"lpad(CAST({field} AS VARCHAR), 2, '0')" for letter, field in _FIELDS.items()},
    **{
        "S" * digits: f"lpad(CAST((microsecond({{x}}) % {_SECOND}) // {10 ** (6 - digits)} AS VARCHAR), {digits}, '0')"
        for digits in range(1, 7)
    },
}
_PATTERN = re.compile(r"'((?:[^']|'')*)'|(([A-Za-z])\3*)|([^A-Za-z'#{}\[\]]+)")


def _formatted(arguments: Sequence[Expression]) -> Expression | None:
    """Bind date_format(time, pattern) for patterns of fields that Spark writes the same in all locales."""
    if len(arguments) != 2:
        return None
    given, parts = accepted(arguments[0], "t"), _parts_of(given_text(arguments[1]) or "")
    time = None if given is None else cast(given, TIMESTAMP)
    if time is None or parts is None:
        return None
    texts = " || ".join(text_literal(text) if letters is None else _FORMATS[letters] for letters, text in parts)
    failed = failure("date_format of a year after 9999 or before 1", STRING)
    body = f"CASE WHEN {{x}} IS NULL THEN NULL WHEN year({{x}}) NOT BETWEEN 1 AND 9999 THEN {failed} ELSE {texts} END"
    return DuckExpression(STRING, with_value(body, text_of(time)))


def _parts_of(pattern: str) -> list[tuple[str | None, str]] | None:
    """Return the fields of a pattern and the texts between them; None for one that is not supported."""
    found: list[tuple[str | None, str]] = []
    position = 0
    for each in _PATTERN.finditer(pattern):
        if each.start() != position or (each[2] is not None and each[2] not in _FORMATS):
            return None
        position = each.end()
        quoted = None if each[1] is None else each[1].replace("''", "'") or "'"
        found.append((each[2], quoted if quoted is not None else each[4] or ""))
    return found if position == len(pattern) and found and not any("{" in text for _, text in found) else None


def _parsed_date(arguments: Sequence[Expression]) -> Expression | None:
    """Bind to_date(text [, pattern]) for patterns of yyyy, MM and dd."""
    if len(arguments) == 1:
        found = accepted(arguments[0], "d")
        return cast(arguments[0], DATE) if found is None and arguments[0].type == STRING else found
    if len(arguments) != 2:
        return None
    text, parts = accepted(arguments[0], "s"), _parts_of(given_text(arguments[1]) or "")
    if text is None or parts is None or sorted(each for each, _ in parts if each is not None) != ["MM", "dd", "yyyy"]:
        return None
    widths = {"yyyy": "([0-9]{4})", "MM": "([0-9]{2})", "dd": "([0-9]{2})"}
    regex = text_literal("".join(re.escape(literal) if name is None else widths[name] for name, literal in parts))
    order = [name for name, _ in parts if name is not None]
    joined = " || '-' || ".join(f"regexp_extract({{x}}, {regex}, {order.index(name) + 1})" for name in widths)
    matches = f"{{x}} IS NULL OR regexp_full_match({{x}}, {regex})"
    failed = failure("to_date", DATE)
    body = f"CASE WHEN {matches} THEN CAST({joined} AS DATE) ELSE {failed} END"
    return DuckExpression(DATE, with_value(body, text_of(text)))


TIME_FUNCTIONS: Mapping[str, Call] = {
    "trunc": _truncated,
    "date_trunc": _truncated_time,
    "date_format": _formatted,
    "to_timestamp": _time,
    "unix_timestamp": _unix_time,
    "from_unixtime": _of_unix_time,
    "timestamp_seconds": _times_of(_SECOND),
    "timestamp_millis": _times_of(1000),
    "timestamp_micros": _times_of(1),
    "to_date": _parsed_date,
    "unix_date": fixed("CAST({0} - DATE '1970-01-01' AS INTEGER)", "d", INT),
    "to_timestamp_ntz": lambda arguments: cast(arguments[0], TIMESTAMP)
    if len(arguments) == 1 and arguments[0].type == STRING
    else None,
}
