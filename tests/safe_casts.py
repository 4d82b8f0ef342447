"""The values that `cast='safe'` accepts and their stored form, computed value by value with Python's numbers."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from lakelsm.types import INTEGER_ROOTS, AtomicType, parse_type

_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64, "TIME": 32}
_EDGES = [edge + off for bits in (7, 15, 24, 31, 53, 60, 63) for edge in (2**bits, -(2**bits)) for off in (-1, 0, 1)]
_LONGS = [0, 7, *(edge for edge in _EDGES if -(2**63) <= edge < 2**63)]
_DOUBLES = [0.0, -0.0, 1.5, 0.1, 19.99, 1.005, 0.1 + 0.2, 1 / 3, 1e22, 1e-7, 1e300, math.nan, math.inf, -math.inf]
_TIMES = ["10:00", "10:00:01", "23:59:59.999", "10:00:00.1239", "24:00", "10:60", "1:00", "10:00:60", "10:00\n", "x", ""]
_DAYS = ["2026-01-31", "2026-02-29", "1969-12-31", "0001-01-01", "9999-12-31", "2026-1-1", "20260101", " 2026-01-01"]
_CLOCKS = ["2026-01-31 10:00", "2026-01-31T10:00:00.123456789", "1969-12-31 23:59:59.9999", "2026-01-31 24:00:00"]
_ZONED = ["Z", "+02:00", "-0530", "+05", "+18:00", "+18:01", "z", " UTC", "+5"]

#: Edge values of each type.
HOSTILE: dict[str, list[Any]] = {
    "BIGINT": _LONGS,
    "SMALLINT": [0, 127, 128, -129],
    "DOUBLE": [*_DOUBLES, *map(float, _EDGES)],
    "FLOAT": [0.0, 0.5, 0.1, 19.99, 3e38, 3.2e-35, math.nan, math.inf]
    + [float(2**bits) for bits in (7, 15, 24, 31, 40, 63)],
    "DECIMAL(38, 2)": [Decimal(text) for text in ("0", "1.50", "1.55", "-0.01", "127", "128", "99999999.99", "1e8")]
    + [Decimal(2**63), Decimal(2**63 - 1), Decimal("12345678901234567.89"), Decimal("9" * 36 + ".99")],
    "DECIMAL(20, 19)": [Decimal("0.1"), Decimal("0.1000000000000000055"), Decimal("9.9999999999999999999")],
    "STRING": [*_TIMES, *_DAYS, *_CLOCKS, *(f"2026-01-31 10:00:00.5{zone}" for zone in _ZONED), "2026-01-31Z"],
    "TIMESTAMP(6)": [dt.datetime(2026, 1, 31), dt.datetime(2026, 1, 31, 0, 0, 0, 1), dt.datetime(1969, 12, 31)],
}
TARGETS: dict[str, list[str]] = {
    "BIGINT": ["TINYINT", "SMALLINT", "INT", "FLOAT", "DOUBLE", "DECIMAL(5, 2)", "DECIMAL(18, 0)"],
    "SMALLINT": ["TINYINT", "DECIMAL(4, 2)"],
    "DOUBLE": ["TINYINT", "INT", "BIGINT", "FLOAT", "DECIMAL(10, 2)", "DECIMAL(18, 17)", "DECIMAL(38, 0)"],
    "FLOAT": ["INT", "BIGINT", "DECIMAL(10, 2)"],
    "DECIMAL(38, 2)": ["TINYINT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10, 2)", "DECIMAL(10, 1)", "DECIMAL(38, 0)"],
    "DECIMAL(20, 19)": ["INT", "DOUBLE", "DECIMAL(20, 1)", "DECIMAL(19, 19)"],
    "STRING": ["DATE", "TIME(3)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(6)"],
    "TIMESTAMP(6)": ["DATE"],
}
PAIRS = [(source, target) for source, targets in TARGETS.items() for target in targets]


def stored_value(value: Any, source: str, target: str) -> Any:
    """Return the value that the column gets. Raises ValueError for a value that does not fit."""
    given, wanted = parse_type(source), parse_type(target)
    assert isinstance(given, AtomicType) and isinstance(wanted, AtomicType)
    if given.root == "VARCHAR":
        return _time_of(value, wanted)
    if wanted.root == "DATE":
        return _if(value.time() == dt.time(), value.date())
    if given.root == "FLOAT":
        value = np.float32(value)
    if wanted.root in _BITS:
        number = Fraction(float(value) if isinstance(value, (float, np.floating)) else value)
        bits = _BITS[wanted.root] - 1
        return _if(number.denominator == 1 and -(2**bits) <= number < 2**bits, int(number))
    if wanted.root == "DECIMAL":
        if given.root in ("FLOAT", "DOUBLE") and not abs(value) < (2**24 if given.root == "FLOAT" else 2**53):
            raise ValueError(value)
        return _decimal(Decimal(str(value)), wanted.precision or 0, wanted.scale or 0)
    return _float(value, given, np.float32 if wanted.root == "FLOAT" else np.float64)


def _if(fits: bool, value: Any) -> Any:
    if not fits:
        raise ValueError(value)
    return value


def _decimal(number: Decimal, precision: int, scale: int) -> Decimal:
    if not number.is_finite():
        raise ValueError(number)
    unscaled = Fraction(number) * 10**scale
    fits = unscaled.denominator == 1 and abs(unscaled) < 10**precision
    return _if(fits, Decimal(f"{int(unscaled)}e-{scale}") if fits else None)


def _float(value: Any, given: AtomicType, kind: Any) -> float:
    with np.errstate(over="ignore"):
        found = kind(float(value))
    if given.root in INTEGER_ROOTS:
        return _if(int(found) == value, float(found))
    if given.root == "DECIMAL":
        return _if(Decimal(str(found)) == value, float(found))
    return _if(math.isnan(value) or float(found) == value or float(str(found)) == value, float(found))


def _time_of(text: str, target: AtomicType) -> Any:
    day, clock, zone = r"(\d{4}-\d\d-\d\d)", r"(\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?", r"(Z|[+-]\d\d(?::?\d\d)?)"
    forms = {"DATE": day, "TIME": clock, "TIMESTAMP": f"{day}(?:[ T]{clock})?"}
    forms["TIMESTAMP_LTZ"] = f"{day}[ T]{clock}{zone}"
    found = re.fullmatch(forms[target.root], text, re.ASCII)
    if found is None:
        raise ValueError(text)
    if target.root == "DATE":
        return dt.date.fromisoformat(text)
    parts = (("1970-01-01", *found.groups()) if target.root == "TIME" else found.groups()) + (None,)
    micros = (parts[3] or "").ljust(6, "0")[:6]
    kept = 3 if target.root == "TIME" or (target.precision or 0) <= 3 else 6
    time = dt.datetime.fromisoformat(f"{parts[0]}T{parts[1] or '00:00'}:{parts[2] or '00'}")
    time = time.replace(microsecond=int(micros[:kept].ljust(6, "0")))
    if target.root == "TIME":
        return time.time()
    if target.root == "TIMESTAMP":
        return time
    sign, digits = parts[4][0], parts[4][1:].replace(":", "").ljust(4, "0")
    ahead = 0 if sign == "Z" else int(digits[:2]) * 60 + int(digits[2:])
    offset = dt.timedelta(minutes=-ahead if sign == "-" else ahead)
    return _if(abs(offset) <= dt.timedelta(hours=18), (time - offset).replace(tzinfo=dt.timezone.utc))
