"""The 64-bit hash of a column's values in bloom filters (Paimon's ``FastHash``; docs/format.md 7.5)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.format.index.file_index.xx_hash import xx_hash64
from lakelsm.types.nano_timestamps import NANO_TIMESTAMP, micros_and_nanos

Hashes = npt.NDArray[np.int64]

#: Rows that are hashed together, so that intermediate arrays stay in the processor's cache.
_BLOCK_ROWS = 1 << 14


def fast_hashes(values: pa.Array) -> Hashes:
    """Return the hash of each value of an array, which has the type that lakelsm keeps the column in; 0 for NULL."""
    blocks = [_hashed(values.slice(start, _BLOCK_ROWS)) for start in range(0, len(values), _BLOCK_ROWS)]
    return np.concatenate([np.empty(0, np.int64), *blocks])


def _hashed(values: pa.Array) -> Hashes:
    if values.type == NANO_TIMESTAMP or not (pa.types.is_string(values.type) or pa.types.is_binary(values.type)):
        hashes = _mixed(as_longs(values))
    else:
        hashes = xx_hash64(pc.fill_null(values, b"")).view(np.int64)
    if values.null_count:
        hashes[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return hashes


def as_longs(values: pa.Array) -> Hashes:
    """Return numbers, booleans, dates and times as the integers of an index (floats as their bits); any value for NULL.

    Times with more than three digits become microseconds, floored.
    """
    kind = values.type
    if kind == NANO_TIMESTAMP:
        return micros_and_nanos(values)[0]
    if pa.types.is_floating(kind):
        # As in Java: one NaN, and two zeros.
        bits = np.int32 if pa.types.is_float32(kind) else np.int64
        floats: npt.NDArray[Any] = pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False)
        floats = np.where(np.isnan(floats), floats.dtype.type(np.nan), floats)
        return floats.view(bits).astype(np.int64)
    if pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    elif pa.types.is_date32(kind) or pa.types.is_time32(kind):
        values = values.view(pa.int32())
    elif pa.types.is_timestamp(kind):
        values = values.view(pa.int64())
    longs: Hashes = pc.fill_null(values, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return longs


def _mixed(keys: Hashes) -> Hashes:
    """Return Thomas Wang's 64-bit mix of each number."""
    keys = ~keys + (keys << 21)
    keys ^= keys >> 24
    keys = keys + (keys << 3) + (keys << 8)
    keys ^= keys >> 14
    keys = keys + (keys << 2) + (keys << 4)
    keys ^= keys >> 28
    keys += keys << 31
    return keys
