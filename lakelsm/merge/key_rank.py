"""Stored keys as integers that compare as the keys do, so that rules about ranges need no types."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lakelsm.format.row.binary_row import decode_rows
from lakelsm.merge.key_order import order_keys
from lakelsm.types import DataType


def rank_keys(keys: Sequence[bytes], types: Sequence[DataType]) -> npt.NDArray[np.int64]:
    """Return one rank per key: equal keys share it, a smaller key has a smaller one.

    ``keys`` are BinaryRows with their arity, ``types`` the trimmed primary key's. Order is the kernel's.
    """
    if not keys:
        return np.zeros(0, dtype=np.int64)
    ordered = order_keys(decode_rows(list(keys), types))
    return np.unique(ordered, return_inverse=True)[1].astype(np.int64).reshape(-1)
