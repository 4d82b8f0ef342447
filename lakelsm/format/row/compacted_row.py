"""Compacted rows: the bytes of keys and values in Paimon's lookup files (docs/format.md 8.5).

:func:`encode_compacted` makes them from Arrow columns, and :func:`decode_compacted` decodes them, all rows together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.format.row.binary_row import Column, column_blocks
from lakelsm.format.row.binary_row_slots import (
    Longs,
    Mask,
    field_slots,
    is_row_type,
    is_wide_decimal,
    is_wide_timestamp,
    normalise,
    null_mask,
)
from lakelsm.format.row.nested_bytes import is_nested_type, nested_bytes
from lakelsm.format.row.row_bytes import (
    RowBytes,
    check_rows,
    fixed_bytes,
    join_bytes,
    left_justified,
    load_numbers,
    load_varints,
    varint_bytes,
    with_nulls,
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
from lakelsm.format.row.slot_columns import nested_column, spread
from lakelsm.types import BINARY_ROOTS, STRING_ROOTS, AtomicType, DataType, RowType, to_arrow

HEADER_BITS = 8  # Persisted: do not change. The row kind, 0 in every lookup file.
_BLOCK_ROWS = 1 << 16
#: Persisted: do not change. Bytes of a value by the root of its type.
_WIDTHS = {
    "BOOLEAN": 1,
    "TINYINT": 1,
    "SMALLINT": 2,
    "INT": 4,
    "DATE": 4,
    "TIME": 4,
    "FLOAT": 4,
    "BIGINT": 8,
    "DOUBLE": 8,
    "DECIMAL": 8,
    "TIMESTAMP": 8,
    "TIMESTAMP_LTZ": 8,
}


def header_bytes(fields: int) -> int:
    """Return the bytes of the row kind and null bits of a row."""
    return (HEADER_BITS + fields + 7) // 8


def require_compacted_type(name: str, data_type: DataType) -> None:
    """Raise UnsupportedFeatureError if a column's type has no supported compacted form."""
    if isinstance(data_type, RowType):
        for member in data_type.fields:
            require_compacted_type(name, member.type)
    elif not (is_row_type(data_type) or is_nested_type(data_type)):
        raise UnsupportedFeatureError(
            f"column {name!r}: 'sort' lookup stores do not support type {data_type.sql()}. Set "
            "'lookup.local-file-type' = 'arrow', or leave the column out."
        )


def encode_compacted(columns: Sequence[Column], types: Sequence[DataType]) -> pa.ChunkedArray:
    """Return the bytes of each row of the columns, as Java writes them.

    Raises InvalidInputError for values that do not fit their type, and for columns of different lengths.
    """
    if len(columns) != len(types) or not columns:
        raise InvalidInputError(f"{len(columns)} columns given for {len(types)} types")
    blocks = [_encode_block(block, types) for block in column_blocks(columns, _BLOCK_ROWS)]
    return pa.chunked_array(blocks, pa.binary())


def decode_compacted(rows: RowBytes, types: Sequence[DataType]) -> list[pa.Array]:
    """Return columns of type ``to_arrow(type)``, one for each type.

    Raises CorruptTableError if bytes contradict the layout or follow the last field, and
    UnsupportedFeatureError for a timestamp outside the range of 64-bit microseconds.
    """
    ends = rows.starts + rows.lengths
    header = header_bytes(len(types))
    check_rows(rows.lengths < header, "is shorter than its header")
    cursor = rows.starts + header
    columns = []
    for index, data_type in enumerate(types):
        bit = index + HEADER_BITS
        flags = rows.buffer[rows.starts + (bit >> 3)]
        nulls: Mask = (flags & np.uint8(1 << (bit & 7))) != 0
        column, sizes = _decode_field(rows.buffer, _FieldOffsets(cursor, ends, nulls), data_type)
        columns.append(column)
        cursor = cursor + np.where(nulls, 0, sizes)
        check_rows(cursor > ends, "ends before its last field")
    check_rows(cursor < ends, "has bytes after its last field")
    more = (1 << (HEADER_BITS + len(types)) % 8) - 1 if (HEADER_BITS + len(types)) % 8 else 0xFF
    check_rows(rows.buffer[rows.starts + header - 1] > more, "has more fields than its schema")
    return columns


def _encode_block(arrays: Sequence[pa.Array], types: Sequence[DataType]) -> pa.BinaryArray:
    rows = len(arrays[0])
    header = np.zeros((rows, header_bytes(len(types))), np.uint8)
    parts: list[pa.Array] = [fixed_bytes(header, header.shape[1])]
    for index, (array, data_type) in enumerate(zip(arrays, types, strict=True)):
        pieces, nulls = _field_parts(array, data_type)
        parts.extend(pieces)
        if nulls is not None:
            bit = index + HEADER_BITS
            header[:, bit >> 3] |= nulls.astype(np.uint8) << np.uint8(bit & 7)
    try:
        return join_bytes(parts)
    except pa.ArrowInvalid as error:
        raise InvalidInputError("the rows need more than 2 GiB. Encode fewer rows at a time.") from error


def _field_parts(array: pa.Array, data_type: DataType) -> tuple[list[pa.Array], Mask | None]:
    """Return the parts of each row's bytes that a field adds (NULL for none), and the rows in which it is NULL."""
    if isinstance(data_type, RowType):
        nulls = null_mask(array)
        members = [array.field(index) for index in range(len(data_type.fields))]
        rows = _encode_block(members, [member.type for member in data_type.fields])
        return _counted(rows if nulls is None else with_nulls(rows, nulls), nulls), nulls
    if not isinstance(data_type, AtomicType):
        nulls = null_mask(array)
        values = nested_bytes(array, data_type)
        return _counted(values if nulls is None else with_nulls(values, nulls), nulls), nulls
    if data_type.root in STRING_ROOTS or data_type.root in BINARY_ROOTS:
        plain = normalise(array, data_type)
        nulls = null_mask(plain)
        return _counted(plain.cast(pa.binary()), nulls), nulls
    field = field_slots(array, data_type)
    if is_wide_decimal(data_type):
        assert field.var_data is not None
        words = field.var_data.reshape(-1, 2).byteswap()
        lengths = field.slots.astype(np.int64)
        return _counted(left_justified(words[:, 0], words[:, 1], lengths, field.nulls), field.nulls), field.nulls
    if is_wide_timestamp(data_type):
        assert field.var_data is not None
        nanos = varint_bytes(field.slots.view(np.int64), field.nulls)
        return [fixed_bytes(field.var_data, 8, field.nulls), nanos], field.nulls
    width = _WIDTHS[data_type.root]
    return [fixed_bytes(field.slots.astype(f"<u{width}"), width, field.nulls)], field.nulls


def _counted(values: pa.Array, nulls: Mask | None) -> list[pa.Array]:
    """Return byte strings, each after its length."""
    lengths = pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return [varint_bytes(lengths, nulls), values]


class _FieldOffsets:
    """The start of a field in each row, the end of each row, and the rows in which the field is NULL."""

    def __init__(self, cursor: Longs, ends: Longs, nulls: Mask) -> None:
        self.ends = ends
        self.nulls = nulls
        # A NULL has no bytes, so the value loaded for it is not used.
        self.starts = np.where(nulls, 0, cursor) if nulls.any() else cursor

    def check(self, sizes: Longs | int) -> None:
        """Raise CorruptTableError if a field of that size exceeds its row."""
        check_rows(~self.nulls & (self.starts + sizes > self.ends), "ends before its last field")

    def varints(self, buffer: npt.NDArray[np.uint8], after: int = 0) -> tuple[Longs, Longs]:
        """Return the numbers ``after`` bytes into the field; 0 for NULL."""
        ends = np.where(self.nulls, len(buffer) - 1, self.ends)
        values, sizes = load_varints(buffer, np.where(self.nulls, ends - 1, self.starts + after), ends)
        return np.where(self.nulls, 0, values), sizes


def _decode_field(
    buffer: npt.NDArray[np.uint8], field: _FieldOffsets, data_type: DataType
) -> tuple[pa.Array, Longs | int]:
    """Return a column, and the number of bytes of each of its values."""
    arrow_type, nulls = to_arrow(data_type), field.nulls
    if isinstance(data_type, RowType):
        return _row_column(buffer, field, data_type)
    if not isinstance(data_type, AtomicType):
        starts, lengths, sizes = _strings(buffer, field)
        return nested_column(RowBytes(buffer, starts, lengths), nulls, data_type), sizes
    root = data_type.root
    if root in STRING_ROOTS or root in BINARY_ROOTS:
        starts, lengths, sizes = _strings(buffer, field)
        return bytes_column(arrow_type, buffer, starts, lengths, nulls), sizes
    if is_wide_decimal(data_type):
        starts, lengths, sizes = _strings(buffer, field)
        check_rows(~nulls & ((lengths < 1) | (lengths > 16)), "has a decimal that is not 1 to 16 bytes long")
        first, second = load_numbers(buffer, starts, "<u8"), load_numbers(buffer, starts + 8, "<u8")
        low, high = big_endian_words(first, second, np.where(nulls, 16, lengths))
        return decimal_column(arrow_type, low, high, nulls), sizes
    width = _WIDTHS[root]
    field.check(width)
    values = load_numbers(buffer, field.starts, f"<u{width}")
    if is_wide_timestamp(data_type):
        nanos, sizes = field.varints(buffer, after=8)
        check_rows(nanos > 999_999, "has a timestamp with more than a millisecond of nanoseconds")
        return time_column(arrow_type, values.view(np.int64), nanos, nulls), sizes + 8
    if root == "DECIMAL":
        return decimal_column(arrow_type, values, sign_words(values), nulls), width
    if root == "BOOLEAN":
        return value_column(pa.uint8(), values, nulls).cast(arrow_type), width
    if root == "TIME":
        check_rows(~nulls & (values >= MILLIS_PER_DAY), "has a time of day beyond 24 hours")
    return value_column(arrow_type, values, nulls), width


def _strings(buffer: npt.NDArray[np.uint8], field: _FieldOffsets) -> tuple[Longs, Longs, Longs]:
    """Return the offset and length of each value's bytes (length 0 for NULL), and the size including the length field."""
    lengths, sizes = field.varints(buffer)
    check_rows(lengths > len(buffer), "ends before its last field")
    field.check(sizes + lengths)
    return np.where(field.nulls, 0, field.starts + sizes), lengths, sizes + lengths


def _row_column(
    buffer: npt.NDArray[np.uint8], field: _FieldOffsets, data_type: RowType
) -> tuple[pa.Array, Longs | int]:
    starts, lengths, sizes = _strings(buffer, field)
    present = np.flatnonzero(~field.nulls)
    found = decode_compacted(
        RowBytes(buffer, starts[present], lengths[present]), [member.type for member in data_type.fields]
    )
    fields = list(to_arrow(data_type))
    column = pa.StructArray.from_arrays(found, fields=fields)
    return spread(column, field.nulls), sizes
