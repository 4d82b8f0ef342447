"""The result of a merge engine for contested keys, and how it is combined with the rows of the other keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.merge.events import Result
from lakelsm.merge.grouped_rows import Indices, Mask
from lakelsm.schema.system_columns import SEQUENCE_NUMBER, VALUE_KIND


@dataclass(frozen=True)
class EngineResult:
    """One row for each contested key.

    ``columns`` has for a column either row indexes in the merged table (-1: NULL) or values. Columns that it lacks are
    taken from the row indexes ``rows``. ``kept`` selects the keys that have a result; None selects all.
    """

    rows: Indices
    columns: Mapping[str, Result]
    kept: Mask | None = None


def system_columns(numbers: npt.NDArray[np.int64], kinds: npt.NDArray[np.int8]) -> dict[str, Result]:
    """Return the results of the two system columns."""
    return {SEQUENCE_NUMBER: pa.array(numbers, pa.int64()), VALUE_KIND: pa.array(kinds, pa.int8())}


def assemble_rows(table: pa.Table, heads: Indices, contested: Mask, result: EngineResult) -> pa.Table:
    """Return the merged rows in key order.

    ``heads`` has the first row index of each key in ``table``, which is its only one unless the key is contested.
    ``contested`` selects the keys of ``result``.
    """
    base = heads.copy()
    base[contested] = result.rows
    kept = np.ones(len(base), dtype=bool)
    if result.kept is not None:
        kept[contested] = result.kept
    keeps_all = bool(kept.all())
    columns = []
    for field in table.schema:
        column = table.column(field.name)
        own = result.columns.get(field.name)
        row_indexes = base
        if isinstance(own, pa.Array):
            column = pa.chunked_array([*column.chunks, own.cast(field.type)])
            row_indexes = base.copy()
            row_indexes[contested] = len(table) + np.arange(len(own))
        elif own is not None:
            row_indexes = base.copy()
            row_indexes[contested] = own
        columns.append(_take(column, row_indexes if keeps_all else row_indexes[kept]))
    return pa.Table.from_arrays(columns, schema=table.schema)


def _take(column: pa.ChunkedArray, row_indexes: Indices) -> pa.ChunkedArray:
    absent = row_indexes < 0
    return pc.take(column, pa.array(row_indexes, mask=absent if absent.any() else None), boundscheck=False)
