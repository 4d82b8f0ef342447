"""Rows to exchange between engines."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakelsm.types import parse_columns, to_arrow
from tests.nano_times import clock_type

UTC = dt.timezone.utc

#: Every SQL type of lakelsm except MULTISET, which pypaimon does not read.
ALL_TYPES: dict[str, tuple[Any, Any, Any]] = {
    # type: (an ordinary value, an extreme value, another extreme value)
    "BOOLEAN": (True, False, True),
    "TINYINT": (1, -128, 127),
    "SMALLINT": (2, -32768, 32767),
    "INT": (3, -(2**31), 2**31 - 1),
    "BIGINT": (4, -(2**63), 2**63 - 1),
    "FLOAT": (0.1, float("nan"), -0.0),
    "DOUBLE": (0.1, float("-inf"), float("nan")),
    "DECIMAL(9, 2)": (Decimal("12.34"), Decimal("-9999999.99"), Decimal("9999999.99")),
    "DECIMAL(18, 4)": (Decimal("-1.0001"), Decimal("-99999999999999.9999"), Decimal("0.0000")),
    "DECIMAL(38, 10)": (Decimal("1.5"), Decimal("-9999999999999999999999999999.9999999999"), Decimal("0.0000000001")),
    "CHAR(5)": ("abcde", "é中文ñ!", "x"),
    "VARCHAR(20)": ("varchar", "", "ends with blank "),
    "STRING": ("a string that is longer than sixteen bytes", "\u0000\U0001f600", "z" * 40),
    "BINARY(4)": (b"\x01\x02\x03\x04", b"\x00\x00\x00\x00", b"\xff\xff\xff\xff"),
    "VARBINARY(10)": (b"\x09", b"", b"\xff" * 10),
    "BYTES": (b"\x00" * 20, b"", b"\xff" * 40),
    "DATE": (dt.date(2024, 1, 1), dt.date(1600, 2, 29), dt.date(9999, 12, 31)),
    "TIME(0)": (dt.time(1, 0), dt.time(0), dt.time(23, 59, 59)),
    "TIME(3)": (dt.time(1, 0, 0, 123000), dt.time(0), dt.time(23, 59, 59, 999000)),
    "TIMESTAMP(0)": (dt.datetime(2024, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59), dt.datetime(2200, 12, 31)),
    "TIMESTAMP(3)": (
        dt.datetime(2024, 1, 1, 0, 0, 0, 123000),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999000),
        dt.datetime(2200, 1, 1),
    ),
    "TIMESTAMP(6)": (
        dt.datetime(2024, 1, 1, 0, 0, 0, 123456),
        dt.datetime(1960, 1, 1, 0, 0, 0, 1),
        dt.datetime(2200, 1, 1, 0, 0, 0, 999999),
    ),
    "TIMESTAMP(9)": (1704067200_123456789, -1000, 7258118400_000000001),
    "TIMESTAMP(3) WITH LOCAL TIME ZONE": (
        dt.datetime(2024, 7, 1, 0, 0, 0, 123000, UTC),
        dt.datetime(1960, 1, 1, tzinfo=UTC),
        dt.datetime(2200, 1, 1, tzinfo=UTC),
    ),
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": (
        dt.datetime(2024, 7, 1, 0, 0, 0, 123456, UTC),
        dt.datetime(1960, 1, 1, 0, 0, 0, 1, UTC),
        dt.datetime(2200, 1, 1, tzinfo=UTC),
    ),
    "TIMESTAMP(9) WITH LOCAL TIME ZONE": (1719792000_123456789, -1000, 7258118400_000000001),
    "ARRAY<INT>": ([1, None, 3], [], [2**31 - 1]),
    "ARRAY<ARRAY<STRING>>": ([["a", None], None, []], [], [["x"]]),
    "MAP<STRING, INT>": ([("k", 5), ("n", None)], [], [("", -1)]),
    "MAP<INT, ARRAY<DECIMAL(10, 2)>>": ([(1, [Decimal("1.50"), None])], [], [(2, None)]),
    "ROW<x INT, y STRING>": ({"x": 1, "y": "y"}, {"x": None, "y": None}, {"x": -1, "y": ""}),
    "ROW<a ROW<b TIMESTAMP(3), c DATE>, m MAP<STRING, BIGINT>>": (
        {"a": {"b": dt.datetime(2024, 1, 1, 0, 0, 0, 5000), "c": dt.date(2024, 1, 1)}, "m": [("k", 2**40)]},
        {"a": None, "m": None},
        {"a": {"b": None, "c": None}, "m": []},
    ),
}


def column_name(sql_type: str) -> str:
    """Return the column name for a type, such as ``decimal_9_2``."""
    words = "".join(letter if letter.isalnum() else " " for letter in sql_type.lower())
    return "_".join(words.replace("with local time zone", "ltz").split())


def all_types_columns() -> str:
    """Return DDL: key ``k``, then a column of each type."""
    return "k INT, " + ", ".join(f"{column_name(kind)} {kind}" for kind in ALL_TYPES)


def all_types_rows(first_key: int = 0) -> pa.Table:
    """Return five rows: the three values of each type, a row of NULLs, and the first values again."""
    values = {"k": [first_key + at for at in range(5)]}
    for kind, (a, b, c) in ALL_TYPES.items():
        values[column_name(kind)] = [a, b, c, None, a]
    return rows_of(all_types_columns(), values)


def rows_of(columns: str, values: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Return an Arrow table of the columns of a DDL; TIMESTAMP(9) as integer nanoseconds."""
    fields = parse_columns(columns)
    kinds = {field.name: clock_type(to_arrow(field.type), "ns") for field in fields}
    return pa.table({name: pa.array(values[name], kind) for name, kind in kinds.items()})
