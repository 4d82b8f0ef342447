"""The order of keys as numpy values: `order_keys` maps rows to values that compare as Paimon compares the rows.

The result is a uint64 array if the encoded key fits eight bytes, otherwise an array of byte strings of one width, so
that numpy sorts, groups and searches rows of any key without a loop. NULL sorts first; numbers by value, with 0.0 equal
to -0.0, and every NaN equal and last; text and binary by unsigned bytes. docs/keys.md has the reasons. `rank_keys`
returns stored keys as integers in that order, so that rules about ranges need no types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.format.row.binary_row import decode_rows
from lakelsm.types import DataType, contiguous
from lakelsm.types.nano_timestamps import NANO_TIMESTAMP, micros_and_nanos

OrderKeys = npt.NDArray[Any]

#: Longest text or binary value (bytes) that is compared as a padded byte string; longer ones are ranked by Arrow.
_PADDED_LIMIT = 48

_NUMPY_INTEGERS = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


def order_keys(columns: Sequence[pa.Array | pa.ChunkedArray], signed_zeros: bool = False) -> OrderKeys:
    """Return one comparable value for each row of ``columns`` (most significant column first).

    Values of two calls must not be compared with each other: widths and ranks depend on the rows of the call. With
    ``signed_zeros`` -0.0 is less than 0.0, as in Java's ``Double.compare``.
    """
    parts: list[tuple[npt.NDArray[np.uint64], int]] = []
    for column in columns:
        parts.extend(_column_words(_comparable(column), signed_zeros))
    total = sum(width for _, width in parts)
    if total <= 8:
        return _packed(parts)
    rows = len(parts[0][0])
    matrix = np.empty((rows, total), dtype=np.uint8)
    offset = 0
    for words, width in parts:
        matrix[:, offset : offset + width] = words.astype(">u8").view(np.uint8).reshape(rows, 8)[:, 8 - width :]
        offset += width
    return matrix.reshape(-1).view(f"S{total}")


def group_starts(keys: OrderKeys) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows of sorted ``keys`` that differ from the row before (the first row included)."""
    starts = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=starts[1:])
    return starts


def stable_order(keys: OrderKeys) -> npt.NDArray[np.int64]:
    """Return the row indexes in the order of ``keys``; rows with equal keys keep their order.

    The result is that of ``np.argsort(keys, kind="stable")``, which takes several times as long for byte strings: here
    their first eight bytes are sorted as numbers, and the whole keys only where these bytes are equal.
    """
    if not len(keys) or keys.dtype.kind != "S" or keys.dtype.itemsize <= 8:
        return np.argsort(keys, kind="stable").astype(np.int64, copy=False)
    leading = np.ascontiguousarray(keys.view(np.uint8).reshape(len(keys), -1)[:, :8]).view(">u8").reshape(-1)
    order = np.argsort(leading.astype(np.uint64), kind="stable").astype(np.int64, copy=False)
    starts = group_starts(leading[order])
    alike = ~(starts & np.append(starts[1:], True))
    rows = order[alike]
    order[alike] = rows[np.argsort(keys[rows], kind="stable")]
    return order


def _comparable(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, with byte strings of fixed length as binary."""
    column = contiguous(column)
    is_bytes = pa.types.is_fixed_size_binary(column.type) and column.type != NANO_TIMESTAMP
    return column.cast(pa.binary()) if is_bytes else column


def _packed(parts: Sequence[tuple[npt.NDArray[np.uint64], int]]) -> OrderKeys:
    packed, _ = parts[0]
    for words, width in parts[1:]:
        packed = (packed << np.uint64(8 * width)) | words
    return packed


def _column_words(column: pa.Array, signed_zeros: bool) -> list[tuple[npt.NDArray[np.uint64], int]]:
    """Return the column as unsigned words, most significant first, each with its width in bytes."""
    if column.null_count == 0:
        return _value_words(column, signed_zeros)
    valid = column.is_valid()
    flags = valid.to_numpy(zero_copy_only=False)
    words = _value_words(_fill_nulls(column), signed_zeros)
    return [(flags.astype(np.uint64), 1), *((np.where(flags, word, np.uint64(0)), width) for word, width in words)]


def _fill_nulls(column: pa.Array) -> pa.Array:
    """Give NULL slots a value where the encoding reads values instead of the raw buffer; the caller masks them again."""
    kind = column.type
    if _is_text(kind):
        return pc.fill_null(column, pa.scalar(b"").cast(kind))
    return pc.fill_null(column, False) if pa.types.is_boolean(kind) else column


def _value_words(column: pa.Array, signed_zeros: bool) -> list[tuple[npt.NDArray[np.uint64], int]]:
    kind = column.type
    if _is_text(kind):
        return _text_words(column)
    if pa.types.is_boolean(kind):
        return [(column.to_numpy(zero_copy_only=False).astype(np.uint64), 1)]
    if pa.types.is_decimal128(kind):
        return _decimal_words(column)
    if kind == NANO_TIMESTAMP:
        micros, nanos = micros_and_nanos(column)
        return [(_signed_words(micros), 8), (nanos.astype(np.uint64), 2)]
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind)):
        raise UnsupportedFeatureError(f"Columns of type {kind} cannot be part of a key or a sequence.")
    width = kind.bit_width // 8
    raw = np.frombuffer(column.buffers()[1], dtype=_NUMPY_INTEGERS[width])[column.offset : column.offset + len(column)]
    if pa.types.is_floating(kind):
        return [(_float_words(raw, signed_zeros), width)]
    return [(_signed_words(raw), width)]


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_large_binary(kind)
    )


def _signed_words(raw: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Flip the sign bit, so that unsigned order is signed order."""
    bits = raw.dtype.itemsize * 8
    unsigned = raw.view(f"u{raw.dtype.itemsize}").astype(np.uint64)
    flipped: npt.NDArray[np.uint64] = unsigned ^ np.uint64(1 << (bits - 1))
    return flipped


def _float_words(raw: npt.NDArray[Any], signed_zeros: bool) -> npt.NDArray[np.uint64]:
    """Return IEEE bits as integers in the order of the numbers; every NaN becomes the one that sorts last."""
    bits = raw.dtype.itemsize * 8
    unsigned = raw.view(f"u{raw.dtype.itemsize}").astype(np.uint64)
    if not signed_zeros:
        unsigned[raw.view(f"f{raw.dtype.itemsize}") == 0] = 0
    sign = np.uint64(1 << (bits - 1))
    all_ones = np.uint64((1 << bits) - 1)
    ordered = np.where(unsigned & sign, unsigned ^ all_ones, unsigned | sign)
    nan = np.isnan(raw.view(f"f{raw.dtype.itemsize}"))
    result: npt.NDArray[np.uint64] = np.where(nan, all_ones, ordered)
    return result


def _decimal_words(column: pa.Array) -> list[tuple[npt.NDArray[np.uint64], int]]:
    words = np.frombuffer(column.buffers()[1], dtype="<u8")[2 * column.offset : 2 * (column.offset + len(column))]
    low, high = words[0::2], words[1::2]
    if column.type.precision <= 18:
        return [(_signed_words(low.view(np.int64)), 8)]
    return [(_signed_words(high.view(np.int64)), 8), (low.astype(np.uint64), 8)]


def _text_words(column: pa.Array) -> list[tuple[npt.NDArray[np.uint64], int]]:
    kind = column.type
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return _ranked_words(column)
    lengths = pc.binary_length(column).to_numpy(zero_copy_only=False).astype(np.int64)
    longest = int(lengths.max(initial=0))
    if longest > _PADDED_LIMIT:
        return _ranked_words(column)
    offsets = np.frombuffer(column.buffers()[1], dtype=np.int32)[column.offset : column.offset + len(column)]
    data = np.frombuffer(column.buffers()[2] or b"", dtype=np.uint8)
    padded = np.concatenate([data, np.zeros(8, dtype=np.uint8)])
    # Every unaligned 8-byte window of the data, as a big-endian number.
    windows = np.lib.stride_tricks.as_strided(padded, shape=(len(padded) - 7, 8), strides=(1, 1))
    parts: list[tuple[npt.NDArray[np.uint64], int]] = []
    for position in range(0, longest, 8):
        width = min(8, longest - position)
        left = np.clip(lengths - position, 0, width)
        starts = np.minimum(offsets.astype(np.int64) + position, len(data))
        words = np.ascontiguousarray(windows[starts]).view(">u8").reshape(-1).astype(np.uint64)
        parts.append((_leading_bytes(words, left, width), width))
    # The length decides between a value and the same value followed by NUL bytes.
    parts.append((lengths.astype(np.uint64), 1))
    return parts


def _leading_bytes(words: npt.NDArray[np.uint64], left: npt.NDArray[np.int64], width: int) -> npt.NDArray[np.uint64]:
    """Keep the first ``left`` bytes of each big-endian word, zero the others, and shift the word to ``width`` bytes."""
    drop = (8 * (8 - np.maximum(left, 1))).astype(np.uint64)
    kept = np.where(left > 0, (words >> drop) << drop, np.uint64(0))
    result: npt.NDArray[np.uint64] = kept >> np.uint64(8 * (8 - width))
    return result


def _ranked_words(column: pa.Array) -> list[tuple[npt.NDArray[np.uint64], int]]:
    ranks = pc.rank(column, sort_keys="ascending", tiebreaker="dense")
    return [(ranks.to_numpy(zero_copy_only=False).astype(np.uint64), 8)]


def rank_keys(keys: Sequence[bytes] | pa.Array, types: Sequence[DataType]) -> npt.NDArray[np.int64]:
    """Return one rank for each key: equal keys have the same rank, a smaller key has a smaller rank.

    ``keys`` are BinaryRows with their arity, ``types`` those of the trimmed primary key. The order is that of
    `order_keys`.
    """
    if not len(keys):
        return np.zeros(0, dtype=np.int64)
    ordered = order_keys(decode_rows(keys if isinstance(keys, pa.Array) else list(keys), types))
    return np.unique(ordered, return_inverse=True)[1].astype(np.int64).reshape(-1)
