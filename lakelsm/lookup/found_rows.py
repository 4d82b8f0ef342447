"""What a lookup of many keys finds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa


@dataclass(frozen=True)
class FoundRows:
    """Rows that were found: ``probes[i]``, ascending, is the place of the key among those asked for that row i has."""

    probes: npt.NDArray[np.int64]
    rows: pa.Table
