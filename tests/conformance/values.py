"""Values of cases: from JSON notation to Python values, to a form that compares, and to text.

The README beside the cases describes the notation: DATE and TIMESTAMP as ISO text, DECIMAL as text,
binary as ``hex:…``, ROW and ARRAY as lists, MAP as a list of pairs.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import struct
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyroaring import BitMap

from lakelsm.format.index.roaring64 import decode_roaring64
from lakelsm.types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    parse_columns,
)

Row = tuple[Hashable, ...]

_INTEGERS = frozenset(["TINYINT", "SMALLINT", "INT", "BIGINT"])
_STRINGS = frozenset(["CHAR", "VARCHAR"])
_BINARIES = frozenset(["BINARY", "VARBINARY"])
_TIMESTAMPS = frozenset(["TIMESTAMP", "TIMESTAMP_LTZ"])
_PYTHON_TYPES: dict[str, type] = (
    dict.fromkeys(_INTEGERS, int)
    | dict.fromkeys(_STRINGS, str)
    | dict.fromkeys(_BINARIES, bytes)
    | dict.fromkeys(_TIMESTAMPS, dt.datetime)
    | {"BOOLEAN": bool, "FLOAT": float, "DOUBLE": float, "DECIMAL": Decimal, "DATE": dt.date, "TIME": dt.time}
)


def case_ddl(columns: Sequence[dict[str, str]]) -> str:
    """Return the column list of a case as DDL.

    The cases write BINARY for bytes of any length, as Spark does; in Paimon this is BYTES.
    """
    return ", ".join(
        f"`{column['name']}` {'BYTES' if column['type'].upper() == 'BINARY' else column['type']}"
        for column in columns
    )


def case_fields(columns: Sequence[dict[str, str]]) -> tuple[DataField, ...]:
    """Return the fields of a case's columns."""
    return parse_columns(case_ddl(columns))


# ---- from the notation ----


def from_notation(value: Any, data_type: DataType) -> Any:
    """Return the Python value of a value of a case, in a form that pyarrow accepts for the type of `arrow_type`."""
    if value is None:
        return None
    if isinstance(data_type, ArrayType):
        return [from_notation(element, data_type.element) for element in value]
    if isinstance(data_type, MapType):
        return [(from_notation(k, data_type.key), from_notation(v, data_type.value)) for k, v in value]
    if isinstance(data_type, MultisetType):
        return [(from_notation(k, data_type.element), int(count)) for k, count in value]
    if isinstance(data_type, RowType):
        members = zip(data_type.fields, value, strict=True)
        return {field.name: from_notation(member, field.type) for field, member in members}
    return _atomic_from_notation(value, data_type.root)


def _atomic_from_notation(value: Any, root: str) -> Any:
    if root in ("FLOAT", "DOUBLE"):
        return float(value)  # also "NaN" and "Infinity"
    if root == "DECIMAL":
        return Decimal(str(value))
    if root == "DATE":
        return dt.date.fromisoformat(value)
    if root == "TIME":
        return dt.time.fromisoformat(value)
    if root in _TIMESTAMPS:
        return _timestamp(value)
    if root in _BINARIES:
        return bytes.fromhex(value.removeprefix("hex:"))
    return value


def _timestamp(text: str) -> dt.datetime:
    """Return a time cut to microseconds, as in Spark. Python 3.10 parses only 3 or 6 digits of a fraction."""
    text = text.removesuffix("Z")
    whole, _, fraction = text.partition(".")
    return dt.datetime.fromisoformat(whole).replace(
        microsecond=int(fraction[:6].ljust(6, "0")) if fraction else 0
    )


# ---- types of the DataFrame that is written ----


def arrow_type(data_type: DataType) -> pa.DataType:
    """Return the Arrow type that Spark makes of a column of this type."""
    if isinstance(data_type, ArrayType):
        return pa.list_(arrow_type(data_type.element))
    if isinstance(data_type, MapType):
        return pa.map_(arrow_type(data_type.key), arrow_type(data_type.value))
    if isinstance(data_type, MultisetType):
        return pa.map_(arrow_type(data_type.element), pa.int32())
    if isinstance(data_type, RowType):
        return pa.struct([pa.field(field.name, arrow_type(field.type)) for field in data_type.fields])
    assert isinstance(data_type, AtomicType), data_type
    root = data_type.root
    if root == "DECIMAL":
        return pa.decimal128(data_type.precision, data_type.scale)
    if root in _STRINGS:
        return pa.string()
    if root in _BINARIES:
        return pa.binary()
    return {
        "BOOLEAN": pa.bool_(),
        "TINYINT": pa.int8(),
        "SMALLINT": pa.int16(),
        "INT": pa.int32(),
        "BIGINT": pa.int64(),
        "FLOAT": pa.float32(),
        "DOUBLE": pa.float64(),
        "DATE": pa.date32(),
        "TIMESTAMP": pa.timestamp("us"),
        "TIMESTAMP_LTZ": pa.timestamp("us", tz="UTC"),
    }[root]


def spark_ddl(data_type: DataType) -> str:
    """Return the Spark type of a column of this type."""
    if isinstance(data_type, ArrayType):
        return f"ARRAY<{spark_ddl(data_type.element)}>"
    if isinstance(data_type, MapType):
        return f"MAP<{spark_ddl(data_type.key)}, {spark_ddl(data_type.value)}>"
    if isinstance(data_type, MultisetType):
        return f"MAP<{spark_ddl(data_type.element)}, INT>"
    if isinstance(data_type, RowType):
        return (
            f"STRUCT<{', '.join(f'`{field.name}`: {spark_ddl(field.type)}' for field in data_type.fields)}>"
        )
    assert isinstance(data_type, AtomicType), data_type
    root = data_type.root
    if root == "DECIMAL":
        return f"DECIMAL({data_type.precision}, {data_type.scale})"
    if root in _STRINGS:
        return "STRING"
    if root in _BINARIES:
        return "BINARY"
    return {"TIMESTAMP": "TIMESTAMP_NTZ", "TIMESTAMP_LTZ": "TIMESTAMP"}.get(root, root)


# ---- comparison ----


@dataclass(frozen=True)
class Comparison:
    """The comparison of values of a case, in addition to their types."""

    array_unordered: bool = False
    """The arrays that are columns compare as multisets."""
    binary_compare: str | None = None
    """Binary columns compare by what they encode: one of BINARY_DECODERS."""


def comparable_rows(rows: Sequence[Sequence[Any]], types: Sequence[DataType], how: Comparison) -> list[Row]:
    """Return rows of Python values as hashable tuples, which are equal if and only if the case treats them as equal."""
    return [tuple(_comparable_column(v, t, how) for v, t in zip(row, types, strict=True)) for row in rows]


def _comparable_column(value: Any, data_type: DataType, how: Comparison) -> Hashable:
    result = comparable(value, data_type)
    if how.array_unordered and isinstance(data_type, ArrayType) and isinstance(result, tuple):
        return tuple(sorted(result, key=repr))
    if how.binary_compare and data_type.root in _BINARIES and isinstance(result, bytes):
        decode = BINARY_DECODERS.get(how.binary_compare)
        return decode(result) if decode else result
    return result


def comparable(value: Any, data_type: DataType) -> Hashable:
    """Return a hashable value; a value of another Python type than the data type's equals no correct one."""
    if value is None:
        return None
    if isinstance(data_type, ArrayType):
        return tuple(comparable(element, data_type.element) for element in value)
    if isinstance(data_type, (MapType, MultisetType)):
        key, entry = (
            (data_type.key, data_type.value) if isinstance(data_type, MapType) else (data_type.element, _INT)
        )
        pairs = value.items() if isinstance(value, dict) else value
        return tuple(sorted(((comparable(k, key), comparable(v, entry)) for k, v in pairs), key=repr))
    if isinstance(data_type, RowType):
        return tuple(comparable(value[field.name], field.type) for field in data_type.fields)
    return _comparable_atomic(value, data_type.root)


_INT = AtomicType("INT")


def _comparable_atomic(value: Any, root: str) -> Hashable:
    wanted = _PYTHON_TYPES[root]
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        return f"{type(value).__name__}: {value!r}"
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return struct.unpack("<f", struct.pack("<f", value))[0] if root == "FLOAT" else value
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.timezone.utc).replace(tzinfo=None)
    return value


def _theta_sketch(data: bytes) -> Hashable:
    """Return (theta, retained hashes) of a compact theta sketch of Apache DataSketches, which decide its estimate."""
    longs = data[0] & 0x3F
    if longs == 1:  # empty, or a single hash
        return (1 << 63) - 1, tuple(struct.unpack_from("<q", data, 8)) if len(data) >= 16 else ()
    (count,) = struct.unpack_from("<i", data, 8)
    theta = struct.unpack_from("<q", data, 16)[0] if longs >= 3 else (1 << 63) - 1
    return theta, tuple(sorted(struct.unpack_from(f"<{count}q", data, 8 * longs)))


BINARY_DECODERS: dict[str, Callable[[bytes], Hashable]] = {
    "roaring32": lambda data: tuple(BitMap.deserialize(data)),
    "roaring64": lambda data: tuple(decode_roaring64(data)),
    "theta": _theta_sketch,
}


# ---- text ----


def show(value: Any) -> str:
    """Return a comparable value or a list of rows in the notation of the cases."""
    return json.dumps(value, ensure_ascii=False, default=_show_atomic)


def _show_atomic(value: Any) -> str:
    if isinstance(value, bytes):
        return "hex:" + value.hex()
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    return str(value)
