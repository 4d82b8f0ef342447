"""Row kinds: the effect of a row on its key, with the codes of `_VALUE_KIND` (docs/format.md 12.1)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

# Codes of the kinds. Persisted: do not change.
INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = 0, 1, 2, 3

#: The text of each kind, in the order of the codes.
ROW_KINDS = ("+I", "-U", "+U", "-D")

#: The kinds that remove a row; the others add one.
RETRACTIONS = (UPDATE_BEFORE, DELETE)


def is_retract(kinds: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows that are retractions: -U or -D, the odd codes."""
    values = kinds.to_numpy(zero_copy_only=False) if isinstance(kinds, pa.Array) else kinds.to_numpy()
    mask: npt.NDArray[np.bool_] = (values & 1).astype(bool)
    return mask
