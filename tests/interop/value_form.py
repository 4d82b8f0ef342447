"""Rows of any engine in one form that compares exactly.

Two sources: Arrow tables (pypaimon, lakelsm, Spark by Arrow) and the notation in which Java's rows are written down
(README of the golden tables): DECIMAL, TIMESTAMP and LTZ as text, DATE as epoch days, TIME as milliseconds of the day,
binary as ``hex:…``, ARRAY and ROW as lists, MAP and MULTISET as lists of [key, value].

The common form of a value is: NULL None, TIMESTAMP and LTZ nanoseconds since the epoch, DATE days, TIME milliseconds,
DECIMAL a Decimal, FLOAT and DOUBLE their ``repr`` (so that NaN equals itself and -0.0 differs from 0.0), binary bytes,
ARRAY and ROW tuples, MAP and MULTISET sorted tuples of pairs.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from lakelsm.types import ArrayType, AtomicType, DataField, DataType, MapType, MultisetType, RowType
from lakelsm.types.nano_timestamps import nanos_of

Rows = list[tuple[Any, ...]]

_NANOS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_EPOCH = dt.date(1970, 1, 1)


def rows_of_arrow(table: pa.Table, fields: Sequence[DataField]) -> Rows:
    """Return the rows of an Arrow table with exactly the columns ``fields``, sorted."""
    return in_order(unordered_of_arrow(table, fields))


def unordered_of_arrow(table: pa.Table, fields: Sequence[DataField]) -> Rows:
    """Return the same rows in the order of the table."""
    assert sorted(table.column_names) == sorted(field.name for field in fields)
    columns = [[_of_scalar(value, field.type) for value in table.column(field.name)] for field in fields]
    return list(zip(*columns))


def rows_of_notation(rows: Iterable[Sequence[Any]], fields: Sequence[DataField]) -> Rows:
    """Return rows in Java's notation, sorted."""
    return in_order(unordered_of_notation(rows, fields))


def unordered_of_notation(rows: Iterable[Sequence[Any]], fields: Sequence[DataField]) -> Rows:
    """Return the same rows in their order."""
    return [tuple(_of_notation(value, field.type) for value, field in zip(row, fields, strict=True)) for row in rows]


def to_wire(table: pa.Table, fields: Sequence[DataField]) -> list[list[Any]]:
    """Return the rows of an Arrow table, in their order, as JSON: values that JSON lacks become text."""
    columns = [[jsonable(_of_scalar(v, field.type)) for v in table.column(field.name)] for field in fields]
    return [list(row) for row in zip(*columns)]


def jsonable(value: Any) -> Any:
    """Return a value of the common form as JSON."""
    if isinstance(value, tuple):
        return [jsonable(part) for part in value]
    if isinstance(value, bytes):
        return "hex:" + value.hex()
    return str(value) if isinstance(value, Decimal) else value


def in_order(rows: Iterable[tuple[Any, ...]]) -> Rows:
    """Return rows in an order that does not depend on their source."""
    return sorted(rows, key=repr)


def cut_to_micros(rows: Rows, fields: Sequence[DataField]) -> Rows:
    """Return the rows in Spark's precision: timestamps without nanoseconds."""
    return in_order(tuple(_cut(value, field.type) for value, field in zip(row, fields)) for row in rows)


def _cut(value: Any, data_type: DataType) -> Any:
    if value is None:
        return None
    if isinstance(data_type, AtomicType):
        return value // 1000 * 1000 if data_type.root in ("TIMESTAMP", "TIMESTAMP_LTZ") else value
    if isinstance(data_type, RowType):
        return tuple(_cut(part, field.type) for part, field in zip(value, data_type.fields))
    if isinstance(data_type, ArrayType):
        return tuple(_cut(part, data_type.element) for part in value)
    if isinstance(data_type, MapType):
        return tuple((_cut(key, data_type.key), _cut(part, data_type.value)) for key, part in value)
    return value


def _of_scalar(value: pa.Scalar, data_type: DataType) -> Any:
    if not value.is_valid:
        return None
    if isinstance(data_type, RowType):
        return tuple(_of_scalar(value[field.name], field.type) for field in data_type.fields)
    if isinstance(data_type, ArrayType):
        return tuple(_of_scalar(part, data_type.element) for part in value.values)
    if isinstance(data_type, (MapType, MultisetType)):
        key_type, value_type = _entry_types(data_type)
        keys, values = value.values.field(0), value.values.field(1)
        return _pairs((_of_scalar(k, key_type), _of_scalar(v, value_type)) for k, v in zip(keys, values))
    if data_type.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return nanos_of(value)
    if data_type.root == "TIME" and pa.types.is_time(value.type):
        return value.value * _NANOS[value.type.unit] // 1_000_000
    return _atomic(value.as_py(), data_type.root)


def _of_notation(value: Any, data_type: DataType) -> Any:
    if value is None:
        return None
    if isinstance(data_type, RowType):
        return tuple(_of_notation(part, field.type) for part, field in zip(value, data_type.fields, strict=True))
    if isinstance(data_type, ArrayType):
        return tuple(_of_notation(part, data_type.element) for part in value)
    if isinstance(data_type, (MapType, MultisetType)):
        key_type, value_type = _entry_types(data_type)
        return _pairs((_of_notation(k, key_type), _of_notation(v, value_type)) for k, v in value)
    if data_type.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        return value if isinstance(value, int) else nanos_of_text(value)
    if data_type.root in ("BINARY", "VARBINARY"):
        return bytes.fromhex(value.removeprefix("hex:"))
    return _atomic(value, data_type.root)


def _atomic(value: Any, root: str) -> Any:
    if root == "FLOAT":
        return repr(struct.unpack("f", struct.pack("f", float(value)))[0])
    if root == "DOUBLE":
        return repr(float(value))
    if root == "DECIMAL":
        return Decimal(str(value))
    if isinstance(value, dt.date):
        return (value - _EPOCH).days
    return value


def nanos_of_text(text: str) -> int:
    """Return nanoseconds since the epoch of ``2024-01-01T00:00[:00[.123456789]]``."""
    whole, _, fraction = text.replace(" ", "T").partition(".")
    seconds = dt.datetime.fromisoformat(whole).replace(tzinfo=dt.timezone.utc).timestamp()
    return int(seconds) * 1_000_000_000 + int(fraction[:9].ljust(9, "0") or 0)


def _entry_types(data_type: MapType | MultisetType) -> tuple[DataType, DataType]:
    if isinstance(data_type, MapType):
        return data_type.key, data_type.value
    return data_type.element, AtomicType("INT")


def _pairs(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, Any], ...]:
    return tuple(sorted(pairs, key=repr))
