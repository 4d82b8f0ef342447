"""Values of every type that a column can have. Tests of keys, partitions and values use this list."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from lakelsm.types import AtomicType, parse_type

UTC = dt.timezone.utc


@dataclass(frozen=True)
class TypedValues:
    """A type with its minimum, a value between, and its maximum, each also as an SQL literal."""

    sql: str
    values: tuple[Any, Any, Any]
    literals: tuple[str, str, str]

    @property
    def type(self) -> AtomicType:
        found = parse_type(self.sql)
        assert isinstance(found, AtomicType)
        return found


def _numbers(sql: str, *values: Any, form: str = "{}") -> TypedValues:
    return TypedValues(sql, values, tuple(form.format(value) for value in values))  # type: ignore[arg-type]


def _texts(sql: str, *values: str) -> TypedValues:
    return TypedValues(sql, values, tuple(f"'{value}'" for value in values))  # type: ignore[arg-type]


def _bytes(sql: str, *values: bytes) -> TypedValues:
    return TypedValues(sql, values, tuple(f"X'{value.hex()}'" for value in values))  # type: ignore[arg-type]


def _times(precision: int, word: str, zone: dt.tzinfo | None) -> TypedValues:
    micro = {0: 0, 3: 999_000}.get(precision, 999_999)
    # The range of Arrow's nanoseconds ends in 1677 and 2262.
    first, last_year = (dt.datetime(1678, 1, 1), 2261) if precision > 6 else (dt.datetime(1, 1, 1), 9999)
    middle = dt.datetime(1969, 12, 31, 23, 59, 59, micro)
    values = [first, middle, dt.datetime(last_year, 12, 31, 23, 59, 59, micro)]
    literals = [f"{word} '{value.isoformat(sep=' ')}{'Z' if zone else ''}'" for value in values]
    kind = "TIMESTAMP_LTZ" if zone else "TIMESTAMP"
    stamped = tuple(value.replace(tzinfo=zone) for value in values)
    return TypedValues(f"{kind}({precision})", stamped, tuple(literals))  # type: ignore[arg-type]


def _clock(precision: int) -> TypedValues:
    last = dt.time(23, 59, 59, 999_000 if precision else 0)
    values = (dt.time(), dt.time(1, 2, 3), last)
    return TypedValues(f"TIME({precision})", values, tuple(str(millis_of(value)) for value in values))  # type: ignore[arg-type]


def millis_of(value: dt.time) -> int:
    """Return a TIME in Spark's form."""
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000


_MAX_DECIMAL, _MIN_DECIMAL = (Decimal(f"{sign}9999999999999999999999999999.9999999999") for sign in ("", "-"))
#: Every atomic type that lakelsm stores, with parameters that change how it is stored.
TYPED_VALUES = (
    TypedValues("BOOLEAN", (False, True, True), ("false", "true", "true")),
    _numbers("TINYINT", -(2**7), 0, 2**7 - 1),
    _numbers("SMALLINT", -(2**15), 0, 2**15 - 1),
    _numbers("INT", -(2**31), 0, 2**31 - 1),
    _numbers("BIGINT", -(2**63), 0, 2**63 - 1),
    _numbers("FLOAT", -(2.0**127), 0.0, 2.0**-149, form="{!r}D"),
    _numbers("DOUBLE", -1.7976931348623157e308, 0.0, 5e-324, form="{!r}D"),
    _numbers("DECIMAL(5, 2)", Decimal("-999.99"), Decimal("0.00"), Decimal("999.99")),
    _numbers("DECIMAL(18, 3)", Decimal("-999999999999999.999"), Decimal("0.001"), Decimal("999999999999999.999")),
    _numbers("DECIMAL(38, 10)", _MIN_DECIMAL, Decimal("1E-10"), _MAX_DECIMAL, form="{:f}"),
    _texts("CHAR(3)", "", "a b", "\U0001f600é~"),
    _texts("VARCHAR(5)", " ", "a/b=c", "\uffff"),
    _texts("STRING", "a", "a%", "\U0001f600" * 20),
    _bytes("BINARY(3)", b"\0\0\0", b"a\x7f\x80", b"\xff\xff\xff"),
    _bytes("VARBINARY(4)", b"", b"a", b"\xff"),
    _bytes("BYTES", b"\0", b"\x80", b"\xff" * 50),
    TypedValues(
        "DATE",
        (dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)),
        ("DATE '0001-01-01'", "DATE '1969-12-31'", "DATE '9999-12-31'"),
    ),
    *map(_clock, (0, 3)),
    *(_times(precision, "TIMESTAMP_NTZ", None) for precision in (0, 3, 6, 9)),
    *(_times(precision, "TIMESTAMP_LTZ", UTC) for precision in (0, 3, 6, 9)),
)
