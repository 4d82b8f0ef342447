"""Bounds of the partition columns over a manifest's entries: full values, not truncated (docs/format.md 5.2).

Their order is Java's: -0.0 is less than 0.0, and NaN is the maximum. A reader that needs one partition skips the
manifests whose bounds exclude it, so bounds in another order would hide the partition's files from this reader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.format.manifest.data_file_meta import SimpleStats
from lakelsm.format.row.binary_row import encode_row
from lakelsm.format.row.binary_row_decode import decode_rows
from lakelsm.types import DataType


def partition_stats(partitions: Sequence[bytes], types: Sequence[DataType]) -> SimpleStats:
    """Return the statistics of ``partitions``: one BinaryRow with arity for each entry, of columns of ``types``.

    Null counts are of entries, not of distinct partitions.
    """
    distinct = Counter(partitions)
    columns = decode_rows(list(distinct), types)
    weights = np.fromiter(distinct.values(), np.int64, len(distinct))
    bounds = [_bounds(column) for column in columns]
    nulls = tuple(int(weights[column.is_null().to_numpy(zero_copy_only=False)].sum()) for column in columns)
    return SimpleStats(
        encode_row([low for low, _ in bounds], types), encode_row([high for _, high in bounds], types), nulls
    )


def comparable(column: pa.Array) -> pa.Array:
    """Return values that compare as Java compares the column's: floats and times become integers."""
    kind = column.type
    if pa.types.is_floating(kind):
        return _float_ranks(column)
    if pa.types.is_temporal(kind):
        return column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    return column


def _float_ranks(column: pa.Array) -> pa.Array:
    """Return the IEEE bits in numeric order; every NaN becomes the maximum."""
    numbers = column.fill_null(0.0).to_numpy()
    bits = numbers.view(np.int32 if numbers.dtype == np.float32 else np.int64)
    greatest = np.iinfo(bits.dtype).max
    ranks = np.where(np.isnan(numbers), greatest, np.where(bits < 0, bits ^ greatest, bits))
    return pa.array(ranks, mask=column.is_null().to_numpy(zero_copy_only=False))


def _bounds(column: pa.Array) -> tuple[pa.Scalar | None, pa.Scalar | None]:
    """Return the minimum and the maximum; None if every value is null."""
    present = column.drop_null()
    if len(present) == 0:
        return None, None
    order = pc.array_sort_indices(comparable(present))
    return present[order[0].as_py()], present[order[len(order) - 1].as_py()]
