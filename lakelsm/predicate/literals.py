"""Comparison of a column with a literal of SQL text, by the type of the column.

A literal is used only if Spark's coercion of `column op literal` is known to compare the same two values, with and
without ANSI mode. All other comparisons become `Unknown`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Context, Decimal, InvalidOperation
from math import isfinite
from typing import Any

from lakelsm.predicate.predicate import (
    Compare,
    Constant,
    In,
    IsNotNull,
    IsNull,
    Predicate,
    Unknown,
    all_of,
    any_of,
    negate,
)
from lakelsm.types import (
    INTEGER_BITS,
    INTEGER_ROOTS,
    MAX_DECIMAL_DIGITS,
    AtomicType,
    DataField,
    DataType,
    has_nanoseconds,
)


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal. `kind` is null, boolean, integer, decimal, double, string, binary, date, timestamp (with the session's
    type and zone), timestamp_ntz or timestamp_ltz. The `value` of a date or timestamp is its text.
    """

    kind: str
    value: Any = None


@dataclass(frozen=True, slots=True)
class _Coerced:
    """A value of the column's Python type. `blur`: Spark may compare a value that differs by at most this interval.
    `floored`: Spark compares the column's times rounded down to microseconds.
    """

    value: Any
    blur: timedelta | None = None
    floored: bool = False


_REALS = ("FLOAT", "DOUBLE")
_EXACT = Context(prec=2 * MAX_DECIMAL_DIGITS)
# More than any step of a zone's clock: Samoa skipped a whole day.
_ZONE_STEP = timedelta(hours=25)
_MICROSECOND = timedelta(microseconds=1)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIMESTAMP = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}:\d{2})(?:\.(\d{1,6}))?)?(Z|[+-]\d{2}:\d{2})?"
)
_UTC_NAMES = frozenset(["UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z"])


def number_literal(text: str) -> Literal | None:
    """Parse a number of SQL, with or without a sign; None if no type of Spark can hold it."""
    if re.fullmatch(r"-?\d{1,400}", text):  # Python parses at most 4,300 digits.
        return Literal("integer", int(text))
    try:
        if re.fullmatch(r"-?\d*\.\d*", text):
            return Literal("decimal", Decimal(text))
        if re.fullmatch(r"-?(\d+(\.\d*)?|\.\d+)[eE][+-]?\d+", text):
            return Literal("double", float(text)) if isfinite(float(text)) else None
    except InvalidOperation:
        return None
    return None


def compare(field: DataField, op: str, literal: Literal, session_zone: str | None) -> Predicate:
    """Return the predicate `column op literal`; op is one of = != < <= > >=."""
    if literal.kind == "null":
        return Constant(None)
    coerced = _coerce(field.type, literal, session_zone)
    if coerced is None:
        return Unknown(f"{field.name} {op} a literal of kind {literal.kind}")
    if coerced.blur is not None:
        return _compare_blurred(field.name, op, coerced)
    if coerced.floored:
        return _compare_floored(field.name, op, coerced.value)
    if op in ("=", "!=") and not _fits(field.type, coerced.value):
        # No value of the type is equal: FALSE, or NULL if the column is NULL.
        never = all_of([IsNull(field.name), Constant(None)])
        return never if op == "=" else negate(never)
    return Compare(field.name, op, coerced.value)


def null_safe_equal(field: DataField, literal: Literal, session_zone: str | None) -> Predicate:
    """Return the predicate `column <=> literal`: like `=`, but TRUE or FALSE if one side is NULL."""
    if literal.kind == "null":
        return IsNull(field.name)
    equal = compare(field, "=", literal, session_zone)
    # A literal that is not supported does not exclude NULL: it may be cast to NULL.
    return equal if isinstance(equal, Unknown) else all_of([IsNotNull(field.name), equal])


def is_in(field: DataField, literals: Sequence[Literal], session_zone: str | None) -> Predicate:
    """Return `column IN (literals)`; Unknown if one literal is, because Spark chooses one type for all of them."""
    found: Predicate
    values: list[Any] = []
    ranges: list[Predicate] = []
    for literal in literals:
        if literal.kind == "null":
            continue
        coerced = _coerce(field.type, literal, session_zone)
        # In a list, Spark may compare a timestamp and a text as texts.
        as_text = literal.kind == "string" and field.type.root.startswith("TIMESTAMP")
        if coerced is None or coerced.blur is not None or as_text:
            return Unknown(f"{field.name} IN a list with a literal of kind {literal.kind}")
        if coerced.floored:
            ranges.append(_compare_floored(field.name, "=", coerced.value))
        elif _fits(field.type, coerced.value):
            values.append(coerced.value)
    if ranges:
        found = any_of(ranges)
    elif values:
        found = In(field.name, tuple(dict.fromkeys(values)))
    else:
        found = all_of([IsNull(field.name), Constant(None)])
    if any(literal.kind == "null" for literal in literals):
        return any_of([found, Constant(None)])
    return found


def time_value(literal: Literal, session_zone: str | None) -> tuple[DataType, date | datetime] | None:
    """Return the type and the value of a date or time literal; None if the value depends on the session.

    The value of a time WITH LOCAL TIME ZONE is in UTC. None is also returned for other literals.
    """
    kind = literal.kind
    if kind == "date":
        day = _day(literal.value)
        return None if day is None else (AtomicType("DATE"), day)
    data_type = AtomicType("TIMESTAMP" if kind == "timestamp_ntz" else "TIMESTAMP_LTZ")
    to_value = _local_timestamp if kind == "timestamp_ntz" else _instant
    found = to_value(data_type, literal, session_zone)
    return None if found is None else (data_type, found.value)


def compares_directly(one: DataType, other: DataType) -> bool:
    """Return whether Spark compares the values of two columns without a lossy or session-dependent cast."""
    if not isinstance(one, AtomicType) or not isinstance(other, AtomicType):
        return False
    if one.root in INTEGER_ROOTS and other.root in INTEGER_ROOTS:
        return True
    if one.root != other.root or one.root in ("CHAR", "TIME") or has_nanoseconds(one) or has_nanoseconds(other):
        return one.root in _REALS and other.root in _REALS
    return one.root != "DECIMAL" or one.scale == other.scale


def _compare_floored(column: str, op: str, value: datetime) -> Predicate:
    """Return the comparison of times rounded down to microseconds, as ranges of the exact times."""
    try:
        after = value + _MICROSECOND
    except OverflowError:
        return Unknown(f"{column} {op} a time at the end of the calendar")
    if op in ("<", ">="):
        return Compare(column, op, value)
    if op in ("<=", ">"):
        return Compare(column, "<" if op == "<=" else ">=", after)
    equal = all_of([Compare(column, ">=", value), Compare(column, "<", after)])
    return equal if op == "=" else negate(equal)


def _compare_blurred(column: str, op: str, coerced: _Coerced) -> Predicate:
    blur = coerced.blur or timedelta()
    try:
        low, high = coerced.value - blur, coerced.value + blur
    except OverflowError:
        return Unknown(f"{column} {op} a time at the end of the calendar")
    parts: list[Predicate] = []
    if op in (">", ">=", "="):
        parts.append(Compare(column, ">=", low))
    if op in ("<", "<=", "="):
        parts.append(Compare(column, "<=", high))
    return all_of([*parts, Unknown(f"{column} {op} a time in the session's zone")])


def _coerce(data_type: DataType, literal: Literal, session_zone: str | None) -> _Coerced | None:
    if not isinstance(data_type, AtomicType):
        return None
    root, kind, value = data_type.root, literal.kind, literal.value
    if root in INTEGER_BITS or root == "DECIMAL":
        number = _exact_number(data_type, literal)
        return None if number is None else _Coerced(number)
    if root in ("FLOAT", "DOUBLE"):
        real = _real(root, literal)
        return None if real is None else _Coerced(real)
    if root == "TIMESTAMP":
        return _local_timestamp(data_type, literal, session_zone)
    if root == "TIMESTAMP_LTZ":
        return _instant(data_type, literal, session_zone)
    if root == "DATE":
        day = _day(value) if kind in ("string", "date") else None
        return None if day is None else _Coerced(day)
    wanted = {"BOOLEAN": "boolean", "VARCHAR": "string", "BINARY": "binary", "VARBINARY": "binary"}
    # CHAR is excluded: whether a comparison pads with blanks depends on the reader.
    return _Coerced(value) if wanted.get(root) == kind else None


def _exact_number(data_type: AtomicType, literal: Literal) -> int | Decimal | None:
    """Return the number, as an int if it is whole and the column is an integer, else as a Decimal.

    None if the common type of column and literal cannot hold both exactly.
    """
    if literal.kind == "integer" and data_type.root in INTEGER_BITS:
        # Beyond 64 bits, Spark folds the comparison to TRUE or FALSE, also for NULL.
        return literal.value if -(1 << 63) <= literal.value < 1 << 63 else None
    if literal.kind == "double":
        # An integer column is cast to double, which is exact up to 32 bits.
        if INTEGER_BITS.get(data_type.root, 64) > 32:
            return None
        number = Decimal(literal.value)
    elif literal.kind in ("integer", "decimal"):
        number = Decimal(literal.value)
        scale, whole = _digits(number)
        if literal.kind == "integer":  # It counts as INT or BIGINT, not by its own digits.
            whole = 10 if whole < 10 else max(20, whole)
        type_scale = data_type.scale or 0
        type_whole = 20 if data_type.root in INTEGER_BITS else (data_type.precision or 0) - type_scale
        if max(scale, type_scale) + max(whole, type_whole) > MAX_DECIMAL_DIGITS:
            return None
    else:
        return None
    if data_type.root not in INTEGER_BITS:
        return number
    if not -(1 << 63) <= number < 1 << 63:
        return None  # Spark folds such a comparison to TRUE or FALSE, also for NULL.
    return int(number) if number == number.to_integral_value() else number


def _digits(number: Decimal) -> tuple[int, int]:
    """Return the number of digits after and before the decimal point."""
    parts = number.as_tuple()
    exponent = int(parts.exponent)
    return max(0, -exponent), max(0, len(parts.digits) + exponent)


def _real(root: str, literal: Literal) -> float | None:
    if literal.kind == "double":
        return float(literal.value)
    if literal.kind == "integer":
        # Spark compares a FLOAT with an INT as FLOAT or as DOUBLE, depending on the mode.
        exact = 24 if root == "FLOAT" else 53
        return float(literal.value) if abs(literal.value) <= 1 << exact else None
    if literal.kind == "decimal" and sum(_digits(literal.value)) <= MAX_DECIMAL_DIGITS:
        return float(literal.value)
    return None


def _day(text: str) -> date | None:
    if not _DATE.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class _TimestampText:
    local: datetime
    zone_text: str | None


def _timestamp(text: str) -> _TimestampText | None:
    """Parse 'YYYY-MM-DD[ HH:MM:SS[.ffffff][zone]]' with Z or an offset as zone; None for another text."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None or (match[2] is None and match[4] is not None):
        return None
    fraction = (match[3] or "0").ljust(6, "0")
    try:
        local = datetime.fromisoformat(f"{match[1]}T{match[2] or '00:00:00'}.{fraction}")
    except ValueError:
        return None
    return _TimestampText(local, match[4])


def _fixed_zone(name: str | None) -> timezone | None:
    """Return the zone if it is UTC or a fixed offset, whose clock has no steps."""
    if name is None:
        return None
    if name in _UTC_NAMES:
        return timezone.utc
    match = re.fullmatch(r"([+-])(\d{2}):(\d{2})", name)
    if match is None or int(match[2]) > 18 or int(match[3]) > 59:
        return None
    offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
    return timezone(offset if match[1] == "+" else -offset)


def _local_timestamp(data_type: AtomicType, literal: Literal, session_zone: str | None) -> _Coerced | None:
    """Coerce a literal that is compared with a TIMESTAMP (without zone).

    A text, a date and a TIMESTAMP_NTZ become a local time. For other literals Spark reads the column in the session's
    zone, where a step of the clock can change the order of two times.
    """
    if literal.kind not in ("string", "date", "timestamp", "timestamp_ntz", "timestamp_ltz"):
        return None
    parsed = _timestamp(literal.value)
    if parsed is None or parsed.zone_text or (literal.kind == "date" and not _DATE.fullmatch(literal.value)):
        return None
    finer = (data_type.precision or 0) > 6
    if literal.kind in ("timestamp", "timestamp_ltz") and _fixed_zone(session_zone) is None:
        return _Coerced(parsed.local, _ZONE_STEP + _MICROSECOND * finer)
    return _Coerced(parsed.local, floored=finer)


def _instant(data_type: AtomicType, literal: Literal, session_zone: str | None) -> _Coerced | None:
    """Coerce a literal for a TIMESTAMP_LTZ: one with a zone, or in a session whose zone has no steps."""
    if literal.kind not in ("string", "timestamp", "timestamp_ltz"):
        return None
    parsed = _timestamp(literal.value)
    if parsed is None:
        return None
    zone = _fixed_zone(parsed.zone_text or session_zone)
    if zone is None:
        return None
    try:
        instant = parsed.local.replace(tzinfo=zone).astimezone(timezone.utc)
    except OverflowError:
        return None
    return _Coerced(instant, floored=(data_type.precision or 0) > 6)


def _fits(data_type: DataType, value: Any) -> bool:
    """Return whether the column's type has a value that equals the literal's value."""
    if not isinstance(data_type, AtomicType):
        return True
    root, precision = data_type.root, data_type.precision or 0
    if root in INTEGER_BITS:
        bound = 1 << (INTEGER_BITS[root] - 1)
        return isinstance(value, int) and -bound <= value < bound
    if root == "DECIMAL":
        scale, whole = _digits(value.normalize(_EXACT))
        type_scale = data_type.scale or 0
        return scale <= type_scale and (value == 0 or whole <= precision - type_scale)
    if root == "FLOAT":
        try:
            return bool(struct.unpack("<f", struct.pack("<f", value))[0] == value)
        except OverflowError:
            return False
    if root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return precision > 3 or value.microsecond % 1000 == 0  # Digits beyond the precision are stored too.
    return True
