"""Stored BinaryRow bytes back to Arrow columns, all rows at once (docs/format.md 8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.errors import CorruptTableError, UnsupportedFeatureError
from lakelsm.format.row.binary_row_slots import (
    TIMESTAMP_ROOTS,
    Longs,
    Mask,
    Words,
    byte_layout,
    is_row_type,
    is_wide_decimal,
    is_wide_timestamp,
    load_words,
    padded_words,
)
from lakelsm.format.row.row_columns import (
    MILLIS_PER_DAY,
    big_endian_words,
    bytes_column,
    decimal_column,
    sign_words,
    time_column,
    value_column,
)
from lakelsm.types import BINARY_ROOTS, STRING_ROOTS, AtomicType, DataType, to_arrow

_ARITY_BYTES = 4
_LOW_HALF = np.uint64(0xFFFFFFFF)
_NUMPY_TYPES: dict[str, Any] = {
    "BOOLEAN": np.uint8,
    "TINYINT": np.uint8,
    "SMALLINT": np.uint16,
    "INT": np.uint32,
    "DATE": np.uint32,
    "TIME": np.uint32,
    "FLOAT": np.uint32,
    "BIGINT": np.uint64,
    "DOUBLE": np.uint64,
}


@dataclass(frozen=True, slots=True)
class _Rows:
    """The stored rows side by side.

    Where each begins after its arity, how long it is, and its field count.
    """

    data: npt.NDArray[np.uint8]
    words: Words
    starts: Longs
    lengths: Longs
    _: KW_ONLY
    arity: Longs
    header_bytes: Longs


def decode_rows(rows: Sequence[bytes] | pa.Array, types: Sequence[DataType]) -> list[pa.Array]:
    """Columns of type ``to_arrow(type)``, one per type, from rows in their stored form (with the arity).

    An arity-0 row gives nulls for every type (empty statistics); a row with fewer fields than types
    (written with an older schema) gives nulls for the missing last ones; fields of nested types give nulls.
    CorruptTableError when bytes contradict the layout; UnsupportedFeatureError for a timestamp that 64-bit
    microseconds cannot hold.
    """
    opened = _open(rows, len(types))
    return [_decode_field(opened, index, data_type) for index, data_type in enumerate(types)]


def decode_row(row: bytes, types: Sequence[DataType]) -> tuple[Any, ...]:
    """The Python values (pyarrow's ``as_py``) of one stored row; rules and errors as :func:`decode_rows`.

    UnsupportedFeatureError also for dates and timestamps outside Python's years 1 to 9999.
    """
    return tuple(_python_value(column) for column in decode_rows([row], types))


def _python_value(column: pa.Array) -> Any:
    try:
        return column[0].as_py()
    except (OverflowError, ValueError) as error:
        raise UnsupportedFeatureError(
            f"a {column.type} value lies outside Python's range: {error}"
        ) from error


def _open(rows: Sequence[bytes] | pa.Array, fields: int) -> _Rows:
    array = rows if isinstance(rows, pa.Array) else pa.array(rows, pa.binary())
    if array.null_count:
        raise CorruptTableError("a row's bytes are missing")
    offsets, data = byte_layout(array)
    base = int(offsets[0])
    data = data[base : int(offsets[-1])]
    starts = offsets[:-1] - base
    lengths = offsets[1:] - offsets[:-1] - _ARITY_BYTES
    _check(lengths < 8, "is shorter than an empty row")
    words = padded_words(data)
    arity = (load_words(words, starts) & _LOW_HALF).astype(np.uint32).byteswap().astype(np.int64)
    _check(arity > fields, f"has more than the {fields} fields of its schema")
    header_bytes = ((arity + (8 + 63)) // 64) * 8
    _check(lengths < header_bytes + 8 * arity, "ends before its last field")
    return _Rows(data, words, starts + _ARITY_BYTES, lengths, arity=arity, header_bytes=header_bytes)


def _check(bad: Mask, problem: str) -> None:
    if bad.any():
        raise CorruptTableError(f"BinaryRow number {int(np.argmax(bad))} {problem}")


def _decode_field(rows: _Rows, index: int, data_type: DataType) -> pa.Array:
    count = len(rows.starts)
    arrow_type = to_arrow(data_type)
    if not isinstance(data_type, AtomicType) or not is_row_type(data_type):
        return pa.nulls(count, arrow_type)
    bit = index + 8
    present = rows.arity > index
    bits = rows.data[np.where(present, rows.starts + (bit >> 3), 0)] if count else np.empty(0, np.uint8)
    nulls: Mask = ~present | ((bits >> np.uint8(bit & 7)) & np.uint8(1)).astype(bool)
    places = rows.starts + np.where(nulls, 0, rows.header_bytes + 8 * index)
    slots = np.where(nulls, np.uint64(0), load_words(rows.words, places))
    root = data_type.root
    if root in STRING_ROOTS or root in BINARY_ROOTS:
        return _bytes_column(rows, places, slots, nulls, arrow_type)
    if root == "DECIMAL":
        wide = is_wide_decimal(data_type)
        low, high = _wide_decimals(rows, slots, nulls) if wide else (slots, sign_words(slots))
        return decimal_column(arrow_type, low, high, nulls)
    if root in TIMESTAMP_ROOTS:
        return _timestamps(rows, slots, nulls, data_type, arrow_type)
    values = slots.astype(_NUMPY_TYPES[root])
    if root == "BOOLEAN":
        return value_column(pa.uint8(), values, nulls).cast(arrow_type)
    if root == "TIME":
        _check(values >= MILLIS_PER_DAY, "has a time of day beyond 24 hours")
    return value_column(arrow_type, values, nulls)


def _var_part(rows: _Rows, slots: Words, lengths: Longs, absent: Mask) -> Longs:
    """Byte positions of the chunks that the slots point to; CorruptTableError when one leaves its row."""
    offsets = (slots >> np.uint64(32)).astype(np.int64)
    fixed_end = rows.header_bytes + 8 * rows.arity
    outside = (offsets < fixed_end) | (offsets + lengths > rows.lengths)
    _check(outside & ~absent, "has a variable-length field that points outside the row")
    return np.where(absent, 0, rows.starts + offsets)


def _bytes_column(rows: _Rows, places: Longs, slots: Words, nulls: Mask, arrow_type: pa.DataType) -> pa.Array:
    marks = (slots >> np.uint64(56)).astype(np.int64)
    inline = marks >= 0x80
    lengths = np.where(inline, marks & 0x7F, (slots & _LOW_HALF).astype(np.int64))
    _check(inline & (lengths > 7), "has an inline value of more than 7 bytes")
    starts = np.where(inline, places, _var_part(rows, slots, lengths, inline | nulls))
    return bytes_column(arrow_type, rows.data, starts, lengths, nulls)


def _wide_decimals(rows: _Rows, slots: Words, nulls: Mask) -> tuple[Words, Words]:
    lengths = (slots & _LOW_HALF).astype(np.int64)
    _check(~nulls & ((lengths < 1) | (lengths > 16)), "has a decimal that is not 1 to 16 bytes long")
    places = _var_part(rows, slots, lengths, nulls)
    # The last word of the buffer may be cut short by a writer that does not reserve 16 bytes: zeros follow
    # it.
    first, second = load_words(rows.words, places), load_words(rows.words, places + 8)
    return big_endian_words(first, second, np.where(nulls, 16, lengths))


def _timestamps(
    rows: _Rows, slots: Words, nulls: Mask, data_type: AtomicType, arrow_type: pa.DataType
) -> pa.Array:
    if not is_wide_timestamp(data_type):
        return value_column(arrow_type, slots, nulls)
    nanos = (slots & _LOW_HALF).astype(np.int64)
    _check(~nulls & (nanos > 999_999), "has a timestamp with more than a millisecond of nanoseconds")
    eight = np.full(len(slots), 8, dtype=np.int64)
    millis = load_words(rows.words, _var_part(rows, slots, eight, nulls)).view(np.int64)
    return time_column(arrow_type, millis, nanos, nulls)
