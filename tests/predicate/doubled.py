"""An evaluator without DuckDB, which counts the rows that it gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True)
class Doubled:
    """Whether twice a column is ``result``."""

    column: str
    result: int
    counts: list[int] = field(default_factory=list, compare=False)

    @property
    def columns(self) -> frozenset[str]:
        return frozenset([self.column])

    def __call__(self, rows: Any) -> pa.Array:
        self.counts.append(rows.num_rows)
        found = pc.equal(pc.multiply(rows.column(self.column), 2), self.result)
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found

    def of_values(self, values: Mapping[str, Sequence[Any]]) -> list[Any] | None:
        return [None if each is None else each * 2 == self.result for each in values[self.column]]
