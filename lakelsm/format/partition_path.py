"""Partition values as text, and the escaping of that text in directory names (docs/format.md 2).

No reader parses a directory name: the partition's value is in the manifest. Every reader builds the name from the value,
so a text that differs from Java's in one digit names a file that Java does not find.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.format.java_floating import double_text, float_text
from lakelsm.format.row.binary_row import decode_rows
from lakelsm.types import AtomicType, DataType
from lakelsm.types.nano_timestamps import nanos_of

#: Persisted: do not change
_ESCAPED = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{}\[\]^]")
#: Characters that are blank for Python's isspace but not for Java's Character.isWhitespace.
_NOT_BLANK_IN_JAVA = frozenset("\x85\xa0\u2007\u202f")
#: Java replaces an encoded surrogate with one character, Python with several.
_SURROGATE, _REPLACED = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?"), "\ufffd".encode()
_DAY_SECONDS = 86_400
_ERA_YEARS, _ERA_DAYS = 400, 146_097
#: 2000-01-01 in days since 1970. The calendar repeats every 400 years.
_YEAR_2000 = 10_957
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def escape_path_name(text: str) -> str:
    """Replace characters that are not allowed in a directory name by ``%XX``. Spaces are allowed."""
    return _ESCAPED.sub(lambda match: f"%{ord(match.group()):02X}", text)


def partition_text(
    value: pa.Scalar, data_type: DataType, legacy: bool, default_name: str, local_zone: tzinfo | None = None
) -> str:
    """Return the directory text of one partition value, before escaping.

    ``value`` has the type that ``to_arrow`` returns. NULL, empty and blank text give ``default_name``. ``legacy`` is
    option partition.legacy-name: Java's toString instead of a cast to text. ``local_zone`` applies to TIMESTAMP_LTZ
    without ``legacy`` (None: the zone of this machine, as in Java).
    Raises UnsupportedFeatureError for types and values that have no stable directory name.
    """
    if not value.is_valid:
        return default_name
    text = value_text(value, data_type, legacy, local_zone)
    blank = all(char.isspace() and char not in _NOT_BLANK_IN_JAVA for char in text)
    return default_name if blank else text


def partition_label(partition: bytes, names: Sequence[str], types: Sequence[DataType]) -> str:
    """Return a stored partition as readable text, "dt=2025-12-31/hh=12", independent of its directory name."""
    return partition_labels([partition], names, types)[0]


def partition_labels(partitions: Sequence[bytes], names: Sequence[str], types: Sequence[DataType]) -> list[str]:
    """Return `partition_label` of many partitions."""
    columns = zip(names, decode_rows(list(partitions), types), types)
    texts = [[f"{name}={_readable(value, kind)}" for value in column] for name, column, kind in columns]
    return ["/".join(parts) for parts in zip(*texts)] if texts else [""] * len(partitions)


def _readable(value: pa.Scalar, data_type: DataType) -> str:
    if not value.is_valid:
        return "NULL"
    root = data_type.root if isinstance(data_type, AtomicType) else ""
    if root == "DATE":
        return _legacy_date(value.value)
    return value_text(value, data_type, legacy=root not in ("TIME", "BINARY", "VARBINARY"))


def value_text(value: pa.Scalar, data_type: DataType, legacy: bool, local_zone: tzinfo | None = None) -> str:
    """Return Java's text of a non-NULL value: its toString if ``legacy``, else Paimon's cast to text."""
    root = data_type.root if isinstance(data_type, AtomicType) else ""
    plain = _PLAIN.get(root)
    if plain is not None:
        return plain(value.as_py())
    if root == "DATE":
        return str(value.value) if legacy else _modern_date(value.value)
    if root == "TIME":
        return str(value.value) if legacy else _time_text(value.value, _precision(data_type))
    if root == "TIMESTAMP" or (root == "TIMESTAMP_LTZ" and legacy):
        return _timestamp_text(nanos_of(value), _precision(data_type), legacy)
    if root == "TIMESTAMP_LTZ":
        nanos = nanos_of(value)
        return _timestamp_text(nanos + _offset_nanos(nanos, local_zone), _precision(data_type), legacy)
    if root in ("BINARY", "VARBINARY") and not legacy:
        return _SURROGATE.sub(_REPLACED, value.as_py()).decode("utf-8", "replace")
    raise UnsupportedFeatureError(
        f"A partition column of type {data_type.sql()} is not supported: its values have no stable directory name."
    )


def _precision(data_type: DataType) -> int:
    precision = data_type.precision if isinstance(data_type, AtomicType) else None
    return 0 if precision is None else precision


def _civil(days: int) -> tuple[int, str]:
    """Return (year, ``-MM-DD``) of days since 1970, for any year. Python's calendar ends with year 9999."""
    eras, rest = divmod(days - _YEAR_2000, _ERA_DAYS)
    day = datetime(2000, 1, 1) + timedelta(days=rest)
    return day.year + eras * _ERA_YEARS, f"-{day.month:02}-{day.day:02}"


def _modern_date(days: int) -> str:
    """Return Paimon's cast of a date to text, which has the last four digits of the year."""
    year, month_and_day = _civil(days)
    if year < 0:
        raise UnsupportedFeatureError(
            f"A partition value in the year {year} is not supported with 'partition.legacy-name' = 'false': it has no "
            "directory name. Use 'partition.legacy-name' = 'true'."
        )
    return f"{year % 10_000:04}{month_and_day}"


def _legacy_date(days: int) -> str:
    """Return Java's LocalDate.toString: with a sign unless the year has four digits."""
    year, month_and_day = _civil(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}{month_and_day}"


def _time_text(millis: int, precision: int) -> str:
    text = _clock(millis // 1000)
    if precision <= 0:
        return text
    digits = f"{millis % 1000:03}".rstrip("0") or "0"
    return f"{text}.{digits[:precision]}"


def _clock(seconds: int) -> str:
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _timestamp_text(nanos: int, precision: int, legacy: bool) -> str:
    seconds, fraction_nanos = divmod(nanos, 1_000_000_000)
    days, second = divmod(seconds, _DAY_SECONDS)
    fraction = f"{fraction_nanos:09}"
    if not legacy:
        keep = max(len(fraction.rstrip("0")), precision)
        text = f"{_modern_date(days)} {_clock(second)}"
        return f"{text}.{fraction[:keep]}" if keep else text
    # Java's LocalDateTime.toString omits seconds that are zero; a fraction has 3, 6 or 9 digits.
    text = f"{_legacy_date(days)}T{_clock(second)}"
    if fraction_nanos == 0:
        return text if second % 60 else text[:-3]
    while fraction.endswith("000"):
        fraction = fraction[:-3]
    return f"{text}.{fraction}"


def _offset_nanos(nanos: int, local_zone: tzinfo | None) -> int:
    """Return the offset of the local clock from UTC at a point in time."""
    try:
        offset = (_EPOCH + timedelta(seconds=nanos // 1_000_000_000)).astimezone(local_zone).utcoffset()
    except (OverflowError, ValueError) as error:
        raise UnsupportedFeatureError(
            "A partition value of type TIMESTAMP WITH LOCAL TIME ZONE outside the years 1 to 9999 is not supported with "
            "'partition.legacy-name' = 'false'. Use 'partition.legacy-name' = 'true'."
        ) from error
    return round((offset or timedelta(0)).total_seconds()) * 1_000_000_000


def _boolean(value: Any) -> str:
    return "true" if value else "false"


def _decimal(value: Decimal) -> str:
    return format(value, "f")


_PLAIN: dict[str, Callable[[Any], str]] = {
    "BOOLEAN": _boolean,
    "TINYINT": str,
    "SMALLINT": str,
    "INT": str,
    "BIGINT": str,
    "FLOAT": float_text,
    "DOUBLE": double_text,
    "DECIMAL": _decimal,
    "CHAR": str,
    "VARCHAR": str,
}
