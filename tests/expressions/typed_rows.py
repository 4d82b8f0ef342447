"""Rows of many types, in the types in which reads have them, and their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakelsm.types import DataField, parse_type, to_arrow
from lakelsm.types.nano_timestamps import NANO_TIMESTAMP, with_nanoseconds

TYPES = {
    "i": "INT",
    "t": "STRING",
    "c": "CHAR(2)",
    "d": "DATE",
    "m": "TIMESTAMP(6)",
    "n": "TIMESTAMP(9)",
    "o": "TIME(3)",
    "p": "DECIMAL(10, 2)",
    "x": "DOUBLE",
    "b": "BOOLEAN",
    "z": "TIMESTAMP(3) WITH LOCAL TIME ZONE",
    "a": "ARRAY<STRING>",
    "k": "MAP<STRING, INT>",
    "r": "ROW<q INT, w ROW<n TIMESTAMP(9), c CHAR(2)>>",
}
FIELDS = tuple(DataField(at, name, parse_type(text)) for at, (name, text) in enumerate(TYPES.items()))
_TIME = datetime(2024, 2, 29, 23, 59, 59, 123456)
_VALUES: Mapping[str, Sequence[Any]] = {
    "i": [1, 0, None, 2**31 - 1],
    "t": ["Aa", "", None, "x'y"],
    "c": ["ab", "cd", None, "  "],
    "d": [date(2024, 2, 29), date(1, 1, 1), None, date(9999, 12, 31)],
    "m": [_TIME, datetime(1, 1, 1), None, datetime(9999, 12, 31)],
    "n": [_TIME, datetime(1, 1, 1), None, datetime(9999, 12, 31)],
    "o": [time(1, 2, 3), time(0), None, time(23, 59, 59, 999000)],
    "p": [Decimal("1.25"), Decimal("-99999999.99"), None, Decimal(0)],
    "x": [1.5, float("nan"), None, -0.0],
    "b": [True, False, None, True],
    "z": [_TIME.replace(microsecond=123000), datetime(1970, 1, 1), None, datetime(2000, 1, 1)],
    "a": [["x", None], [], None, ["y", "z"]],
    "k": [[("u", 1)], [], None, [("u", None), ("v", 2)]],
}


def rows() -> pa.Table:
    """Return four rows, of which the third has no values."""
    columns = [_column(field) for field in FIELDS]
    return pa.table(columns, [field.name for field in FIELDS])


def _column(field: DataField) -> pa.Array:
    kind = to_arrow(field.type)
    if field.name == "r":
        inner = pa.StructArray.from_arrays([_column(FIELDS[5]), _column(FIELDS[2])], names=["n", "c"])
        nested = pa.StructArray.from_arrays([_column(FIELDS[0]), inner], names=["q", "w"])
        parts = [nested.field(0), nested.field(1).cast(kind.field(1).type)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=parts[0].is_null())
    if kind == NANO_TIMESTAMP:
        return with_nanoseconds(pa.array(_VALUES[field.name], pa.timestamp("us")))
    return pa.array(_VALUES[field.name], kind)
