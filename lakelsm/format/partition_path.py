"""Text of partition values and its escaping in directory names (format.md 2.3).

A directory name is never parsed back: the partition's value is in the manifest.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal

import numpy as np

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.types import AtomicType, DataType

#: Persisted: do not change
_ESCAPED = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{}\[\]^]")
_EPOCH_DAY = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1)
#: Characters that Python's isspace takes and Java's Character.isWhitespace does not.
_NOT_BLANK_IN_JAVA = frozenset("\x85\xa0\u2007\u202f")


def escape_path_name(text: str) -> str:
    """Replace the characters that a directory name may not hold by ``%XX``; others, spaces too, stay."""
    return _ESCAPED.sub(lambda match: f"%{ord(match.group()):02X}", text)


def unescape_path_name(name: str) -> str:
    """Take back escape_path_name; a ``%`` without two hex digits stays."""
    return re.sub(r"%([0-9A-Fa-f]{2})", lambda match: chr(int(match.group(1), 16)), name)


def partition_text(
    value: object, data_type: DataType, legacy: bool, default_name: str, local_zone: tzinfo | None = None
) -> str:
    """Return the directory text, not yet escaped, of one partition value.

    ``value`` is a Python value as pyarrow's ``as_py`` gives it, or None; NULL, empty and blank text give
    ``default_name``. ``legacy`` is option partition.legacy-name: Java's toString instead of a cast to text.
    ``local_zone`` is used for TIMESTAMP_LTZ where not legacy (None: this machine's zone, as Java does).
    Raises UnsupportedFeatureError for types that cannot name a directory.
    """
    if value is None:
        return default_name
    text = _value_text(value, data_type, legacy, local_zone)
    blank = all(char.isspace() and char not in _NOT_BLANK_IN_JAVA for char in text)
    return default_name if blank else text


def _value_text(value: object, data_type: DataType, legacy: bool, local_zone: tzinfo | None) -> str:
    root = data_type.root if isinstance(data_type, AtomicType) else ""
    plain = _PLAIN.get(root)
    if plain is not None:
        return plain(value)
    if root == "DATE" and isinstance(value, date):
        return str((value - _EPOCH_DAY).days) if legacy else value.isoformat()
    if root == "TIME" and isinstance(value, time):
        return _time_text(value, _precision(data_type), legacy)
    if root in ("TIMESTAMP", "TIMESTAMP_LTZ") and isinstance(value, datetime):
        return _timestamp_text(value, data_type, legacy, local_zone)
    if root in ("BINARY", "VARBINARY") and isinstance(value, bytes) and not legacy:
        return value.decode("utf-8", "replace")
    raise UnsupportedFeatureError(
        f"A partition column of type {data_type.sql()} is not supported: it gives no stable directory name."
    )


def _precision(data_type: DataType) -> int:
    precision = data_type.precision if isinstance(data_type, AtomicType) else None
    return 0 if precision is None else precision


def _time_text(value: time, precision: int, legacy: bool) -> str:
    millis = ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000
    if legacy:
        return str(millis)
    text = f"{value.hour:02}:{value.minute:02}:{value.second:02}"
    if precision <= 0:
        return text
    digits = f"{millis % 1000:03}"[:precision]
    return f"{text}.{digits.rstrip('0') or '0'}"


def _timestamp_text(value: datetime, data_type: DataType, legacy: bool, local_zone: tzinfo | None) -> str:
    nanos = value.microsecond * 1000 + int(getattr(value, "nanosecond", 0))
    plain = datetime(value.year, value.month, value.day, value.hour, value.minute, value.second)
    if value.tzinfo is not None:
        plain -= value.utcoffset() or timedelta(0)
    if legacy:
        return _java_local_date_time(plain, nanos)
    if isinstance(data_type, AtomicType) and data_type.root == "TIMESTAMP_LTZ":
        plain = plain.replace(tzinfo=timezone.utc).astimezone(local_zone).replace(tzinfo=None)
    fraction = f"{nanos:09}"
    keep = max(len(fraction.rstrip("0")), _precision(data_type))
    text = plain.isoformat(sep=" ")
    return f"{text}.{fraction[:keep]}" if keep else text


def _java_local_date_time(value: datetime, nanos: int) -> str:
    """Java's LocalDateTime.toString: seconds are left out when zero, the fraction has 3, 6 or 9 digits."""
    if nanos == 0:
        return value.isoformat(timespec="seconds" if value.second else "minutes")
    fraction = f"{nanos:09}"
    while fraction.endswith("000"):
        fraction = fraction[:-3]
    return f"{value.isoformat(timespec='seconds')}.{fraction}"


def _boolean(value: object) -> str:
    return "true" if value else "false"


def _decimal(value: object) -> str:
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _float(value: object) -> str:
    return _java_floating(np.float32(str(value)))


def _double(value: object) -> str:
    return _java_floating(np.float64(str(value)))


def _java_floating(number: np.float32 | np.float64) -> str:
    """Java's Float/Double.toString: shortest digits, scientific outside of [1e-3, 1e7)."""
    if np.isnan(number):
        return "NaN"
    if np.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return np.format_float_positional(number, unique=True, trim="0")
    mantissa, _, exponent = np.format_float_scientific(number, unique=True, trim="0").partition("e")
    return f"{mantissa}E{int(exponent)}"


_PLAIN: dict[str, Callable[[object], str]] = {
    "BOOLEAN": _boolean,
    "TINYINT": str,
    "SMALLINT": str,
    "INT": str,
    "BIGINT": str,
    "FLOAT": _float,
    "DOUBLE": _double,
    "DECIMAL": _decimal,
    "CHAR": str,
    "VARCHAR": str,
}
