"""Bounds of the partition columns over a manifest's entries (format.md 6.1: full values, not truncated)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.format.binary_row import encode_row
from lakelsm.format.binary_row_decode import decode_rows
from lakelsm.format.data_file_meta import SimpleStats
from lakelsm.types import DataType


def partition_stats(partitions: Sequence[bytes], types: Sequence[DataType]) -> SimpleStats:
    """Return the stats of ``partitions``: one BinaryRow with arity per entry, of columns of ``types``.

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


def _bounds(column: pa.Array) -> tuple[object, object]:
    """Smallest and largest value as Python values; None where every value is null."""
    present = column.drop_null()
    if len(present) == 0:
        return None, None
    order = pc.array_sort_indices(present)
    return present[order[0].as_py()].as_py(), present[order[len(order) - 1].as_py()].as_py()
