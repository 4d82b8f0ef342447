"""BinaryRow: the bytes of keys, partitions and statistics (docs/format.md 8).

:func:`encode_rows` converts Arrow columns to row bytes, one block of rows at a time, without a loop over rows.
In files a row follows its field count, 4 bytes big-endian: :func:`with_arity`, :func:`encode_row` and the
decoders use that form. Bucket hashes use the form without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.errors import InvalidInputError
from lakelsm.format.row.binary_row_decode import decode_row, decode_rows
from lakelsm.format.row.binary_row_slots import FieldSlots, Longs, Words, field_slots
from lakelsm.types import DataType, contiguous, python_arrow, to_arrow
from lakelsm.types.nano_timestamps import NANO_TIMESTAMP

__all__ = [
    "EMPTY_ROW",
    "assembled_rows",
    "column_blocks",
    "decode_row",
    "decode_rows",
    "encode_row",
    "encode_rows",
    "header_words",
    "row_header",
    "with_arity",
]

#: The row without columns: 4-byte arity 0 and one word of null bits. Persisted: do not change
EMPTY_ROW = bytes(12)
HEADER_BITS = 8  # Persisted: do not change. The row kind, 0 in every file.
BLOCK_ROWS = 1 << 16

Column: TypeAlias = "pa.Array | pa.ChunkedArray"


def header_words(fields: int) -> int:
    """Return the number of words for the row kind and null bits of a row (1 up to 56 fields)."""
    return (fields + HEADER_BITS + 63) // 64


def column_blocks(arrays: Sequence[Column], block_rows: int) -> Iterator[list[pa.Array]]:
    """Yield consecutive row ranges of the columns as contiguous arrays of at most ``block_rows`` rows."""
    lengths = {len(array) for array in arrays}
    if len(lengths) > 1:
        raise InvalidInputError(f"columns have different lengths: {sorted(lengths)}")
    for start in range(0, lengths.pop() if lengths else 0, block_rows):
        yield [contiguous(array.slice(start, block_rows)) for array in arrays]


def encode_rows(arrays: Sequence[Column], types: Sequence[DataType]) -> pa.BinaryArray:
    """Return the bytes of each row of the columns, without the arity: Java's bytes with row kind 0.

    Raises UnsupportedFeatureError for nested types, and InvalidInputError for values that do not fit their
    type, for columns of different lengths, and if the result exceeds 2 GiB.
    """
    if len(arrays) != len(types):
        raise InvalidInputError(f"{len(arrays)} columns given for {len(types)} types")
    blocks = [_encode_block(block, types) for block in column_blocks(arrays, BLOCK_ROWS)]
    if not blocks:
        return pa.array([], pa.binary())
    try:
        return pa.concat_arrays(blocks)
    except pa.ArrowInvalid as error:
        raise InvalidInputError("the rows need more than 2 GiB. Encode fewer rows at a time.") from error


def with_arity(rows: pa.BinaryArray, fields: int) -> pa.BinaryArray:
    """Return the rows in their stored form: each after its field count, 4 bytes big-endian."""
    prefix = pa.scalar(fields.to_bytes(4, "big"), rows.type)
    return pc.binary_join_element_wise(prefix, rows, pa.scalar(b"", rows.type))


def encode_row(values: Sequence[object], types: Sequence[DataType]) -> bytes:
    """Return the stored form, with the arity, of one row of Python values or Arrow scalars; None is null.

    Temporal values may be ``datetime`` objects, or integers in the unit of ``to_arrow(type)``. TIMESTAMP(7..9)
    may also be its ten bytes, and its integers are nanoseconds.
    """
    if len(values) != len(types):
        raise InvalidInputError(f"{len(values)} values given for {len(types)} types")
    if not values:
        return EMPTY_ROW
    arrays = [_single_value(value, data_type) for value, data_type in zip(values, types, strict=True)]
    row: bytes = encode_rows(arrays, types)[0].as_py()
    return len(types).to_bytes(4, "big") + row


def row_header(fields: Sequence[FieldSlots], rows: int) -> list[Words | None]:
    """Return the header words of each row, uint64[rows] for each word; None for a word that is zero in every row."""
    words: list[Words | None] = [None] * header_words(len(fields))
    for index, field in enumerate(fields):
        if field.nulls is None:
            continue
        word, bit = divmod(index + HEADER_BITS, 64)
        bits = field.nulls.astype(np.uint64) << np.uint64(bit)
        present = words[word]
        words[word] = bits if present is None else present | bits
    return words


def _single_value(value: object, data_type: DataType) -> pa.Array:
    if isinstance(value, pa.DictionaryScalar):
        value = value.value
    if isinstance(value, pa.Scalar):
        return pa.repeat(value, 1)
    kind = to_arrow(data_type)
    if kind == NANO_TIMESTAMP and not isinstance(value, bytes):
        kind = pa.timestamp("ns") if isinstance(value, int) else python_arrow(data_type)
    try:
        return pa.array([value], kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise InvalidInputError(f"value {value!r} cannot be stored as {data_type.sql()}: {error}") from error


def _encode_block(arrays: Sequence[pa.Array], types: Sequence[DataType]) -> pa.BinaryArray:
    fields = [field_slots(array, data_type) for array, data_type in zip(arrays, types, strict=True)]
    return assembled_rows(fields, len(arrays[0]))


def assembled_rows(fields: Sequence[FieldSlots], rows: int) -> pa.BinaryArray:
    """Return row bytes without the arity from the fields of ``rows`` rows. Raises InvalidInputError above 2 GiB."""
    if all(isinstance(field.var_words, int) for field in fields):
        words, starts = _assemble_equal(fields, rows)
    else:
        words, starts = _assemble(fields, rows)
    if 8 * len(words) >= 1 << 31:
        raise InvalidInputError("the rows need more than 2 GiB. Encode fewer rows at a time.")
    offsets = (starts << 3).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(words)])


def _assemble_equal(fields: Sequence[FieldSlots], rows: int) -> tuple[Words, Longs]:
    """Assemble rows of equal length: the words are a 2-D array."""
    header = row_header(fields, rows)
    cursor = len(header) + len(fields)
    widths = [int(field.var_words) for field in fields]
    width = cursor + sum(widths)
    out = np.zeros((rows, width), dtype=np.uint64)
    for index, bits in enumerate(header):
        if bits is not None:
            out[:, index] = bits
    for index, (field, words) in enumerate(zip(fields, widths, strict=True)):
        out[:, len(header) + index] = field.slots
        if words and field.var_data is not None:
            out[:, len(header) + index] |= np.uint64(cursor << 35)
            out[:, cursor : cursor + words] = field.var_data.reshape(rows, words)
            cursor += words
    return out.reshape(-1), np.arange(0, (rows + 1) * width, width, dtype=np.int64)


def _assemble(fields: Sequence[FieldSlots], rows: int) -> tuple[Words, Longs]:
    """Assemble rows of different lengths: slots and chunks are scattered to their offsets."""
    header = row_header(fields, rows)
    fixed = len(header) + len(fields)
    cursor = np.full(rows, fixed, dtype=np.int64)
    for field in fields:
        cursor += field.var_words
    starts = np.zeros(rows + 1, dtype=np.int64)
    np.cumsum(cursor, out=starts[1:])
    base = starts[:-1]
    out = np.zeros(int(starts[-1]), dtype=np.uint64)
    for index, bits in enumerate(header):
        if bits is not None:
            out[base + index] = bits
    cursor[:] = fixed
    for index, field in enumerate(fields):
        slots = field.slots
        if field.var_data is not None:
            widths = np.broadcast_to(np.asarray(field.var_words, dtype=np.int64), (rows,))
            slots = slots | np.where(widths > 0, cursor << 35, 0).view(np.uint64)
            before = np.cumsum(widths) - widths
            targets = np.repeat(base + cursor - before, widths)
            targets += np.arange(len(targets), dtype=np.int64)
            out[targets] = field.var_data
            cursor += widths
        out[base + (len(header) + index)] = slots
    return out, starts
