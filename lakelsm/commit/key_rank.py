"""Stored keys as integers that compare as the keys do, so that rules about ranges need no types."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.format.binary_row import decode_rows
from lakelsm.types import DataType

_FLOAT_VIEWS = {32: (np.int32, np.int32(0x7FFFFFFF)), 64: (np.int64, np.int64(0x7FFFFFFFFFFFFFFF))}


def rank_keys(keys: Sequence[bytes], types: Sequence[DataType]) -> npt.NDArray[np.int64]:
    """Return one rank per key: equal keys share it, a smaller key has a smaller one.

    ``keys`` are BinaryRows with their arity, ``types`` the trimmed primary key's. Order is Paimon's: column
    by column, nulls first, text and binary by unsigned bytes, floats with -0.0 below 0.0 and NaN last.
    """
    total = np.zeros(len(keys), dtype=np.int64)
    if not keys:
        return total
    for column in decode_rows(list(keys), types):
        ranks = _rank_column(column)
        # Both stay below len(keys), so the product fits; then back to dense ranks.
        total = np.unique(total * (int(ranks.max()) + 1) + ranks, return_inverse=True)[1].astype(np.int64)
    return total


def _rank_column(column: pa.Array) -> npt.NDArray[np.int64]:
    """Dense ranks from 1; 0 for nulls."""
    encoded = _comparable(column).dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary).to_numpy(zero_copy_only=False)
    rank_of = np.empty(len(order) + 1, dtype=np.int64)
    rank_of[order] = np.arange(1, len(order) + 1)
    rank_of[-1] = 0
    codes = encoded.indices.fill_null(len(order)).to_numpy(zero_copy_only=False)
    ranks: npt.NDArray[np.int64] = rank_of[codes]
    return ranks


def _comparable(column: pa.Array) -> pa.Array:
    """Floats as integers in Java's order of them; other columns as they are."""
    if not pa.types.is_floating(column.type):
        return column
    view, magnitude = _FLOAT_VIEWS[column.type.bit_width]
    values = column.fill_null(0.0).to_numpy(zero_copy_only=False).copy()
    values[np.isnan(values)] = np.nan
    bits = values.view(view)
    ordered = np.where(bits < 0, bits ^ magnitude, bits)
    nulls = column.is_null().to_numpy(zero_copy_only=False)
    return pa.array(ordered, mask=nulls)
