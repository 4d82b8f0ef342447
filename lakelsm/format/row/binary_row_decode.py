"""Decodes stored BinaryRow bytes to Arrow columns, all rows together (docs/format.md 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lakelsm.errors import CorruptTableError, UnsupportedFeatureError
from lakelsm.format.row.binary_row_slots import Longs, Mask, is_row_type
from lakelsm.format.row.row_bytes import RowBytes, check_rows, load_numbers
from lakelsm.format.row.slot_columns import Slots, slot_column
from lakelsm.format.row_kinds import ROW_KINDS
from lakelsm.types import DataType, to_arrow
from lakelsm.types.python_arrays import array_of

_ARITY_BYTES = 4


@dataclass(frozen=True, slots=True)
class _StoredRows:
    """Stored rows without their arity, and the arity and header size in bytes of each."""

    rows: RowBytes
    arity: Longs
    header_bytes: Longs


def decode_rows(rows: Sequence[bytes] | pa.Array, types: Sequence[DataType]) -> list[pa.Array]:
    """Return columns of type ``to_arrow(type)``, one for each type, from rows in their stored form (with the arity).

    An arity-0 row (empty statistics) gives nulls for every type. A row with fewer fields than types
    (written with an older schema) gives nulls for the missing last ones. Fields of nested types give nulls.
    Raises CorruptTableError if bytes contradict the layout, and UnsupportedFeatureError for a timestamp
    outside the range of 64-bit microseconds.
    """
    opened = _open(rows, len(types))
    return [_decode_field(opened, index, data_type) for index, data_type in enumerate(types)]


def decode_row(row: bytes, types: Sequence[DataType]) -> tuple[Any, ...]:
    """Return the Python values (pyarrow's ``as_py``) of one stored row; rules and errors as for :func:`decode_rows`.

    Raises UnsupportedFeatureError also for dates and timestamps outside Python's years 1 to 9999.
    """
    return tuple(_python_value(column) for column in decode_rows([row], types))


def _python_value(column: pa.Array) -> Any:
    try:
        return column[0].as_py()
    except (OverflowError, ValueError) as error:
        raise UnsupportedFeatureError(f"a {column.type} value is outside Python's range: {error}") from error


def _open(rows: Sequence[bytes] | pa.Array, fields: int) -> _StoredRows:
    array = rows if isinstance(rows, pa.Array) else array_of(rows, pa.binary())
    if array.null_count:
        raise CorruptTableError("a stored row is NULL instead of bytes")
    stored = RowBytes.of(array)
    bare = RowBytes(stored.buffer, stored.starts + _ARITY_BYTES, stored.lengths - _ARITY_BYTES)
    check_rows(bare.lengths < 8, "is shorter than an empty row")
    arity = load_numbers(stored.buffer, stored.starts, ">u4").astype(np.int64)
    check_rows(arity > fields, f"has more than the {fields} fields of its schema")
    header_bytes = ((arity + (8 + 63)) // 64) * 8
    check_rows(bare.lengths < header_bytes + 8 * arity, "ends before its last field")
    check_rows(stored.buffer[bare.starts] >= len(ROW_KINDS), "begins with an invalid row kind")
    # Rows of metadata are compared as bytes: equal values with other bytes would be another partition or key.
    unused = load_numbers(stored.buffer, bare.starts + header_bytes - 8, "<u8")
    used = (arity + 8 - 8 * (header_bytes - 8)).astype(np.uint64)
    check_rows((used < 64) & (unused >> np.minimum(used, 63) != 0), "has null bits for fields that it does not have")
    return _StoredRows(bare, arity, header_bytes)


def _decode_field(opened: _StoredRows, index: int, data_type: DataType) -> pa.Array:
    rows = opened.rows
    count = len(rows.starts)
    if not is_row_type(data_type):
        return pa.nulls(count, to_arrow(data_type))
    bit = index + 8
    present = opened.arity > index
    bits = rows.buffer[np.where(present, rows.starts + (bit >> 3), 0)]
    nulls: Mask = ~present | ((bits >> np.uint8(bit & 7)) & np.uint8(1)).astype(bool)
    slot_offsets = rows.starts + np.where(nulls, 0, opened.header_bytes + 8 * index)
    values = np.where(nulls, np.uint64(0), load_numbers(rows.buffer, slot_offsets, "<u8"))
    fixed = opened.header_bytes + 8 * opened.arity
    room = int(rows.lengths.sum())
    return slot_column(Slots(values, nulls, slot_offsets=slot_offsets, rows=rows, fixed=fixed, room=room), data_type)
