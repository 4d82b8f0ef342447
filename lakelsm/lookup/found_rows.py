"""What a lookup of many keys finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa


@dataclass(frozen=True)
class FoundRows:
    """Rows that were found: ``probes[i]``, ascending, is the place of the key among those asked for that row i has."""

    probes: npt.NDArray[np.int64]
    rows: pa.Table

    @staticmethod
    def together(parts: Sequence[FoundRows]) -> FoundRows:
        """What one or more lookups found of the same keys. Rows of a key come in the order of the parts."""
        if len(parts) == 1:
            return parts[0]
        probes = np.concatenate([part.probes for part in parts])
        rows = pa.concat_tables([part.rows for part in parts]).combine_chunks()
        order = np.argsort(probes, kind="stable")
        return FoundRows(probes[order], rows.take(pa.array(order)))
