"""The result of a merge engine for contested keys, and its combination with the other keys."""

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

    ``rows`` are row indexes in the merged table for the columns that ``columns`` lacks; ``columns`` has row indexes in
    the same table (-1: NULL) or values; ``kept`` selects the keys that have a result.
    """

    rows: Indices
    columns: Mapping[str, Result]
    kept: Mask | None = None


def system_columns(numbers: npt.NDArray[np.int64], kinds: npt.NDArray[np.int8]) -> dict[str, Result]:
    """The results of the two system columns."""
    return {SEQUENCE_NUMBER: pa.array(numbers, pa.int64()), VALUE_KIND: pa.array(kinds, pa.int8())}


def assemble_rows(table: pa.Table, heads: Indices, contested: Mask, result: EngineResult) -> pa.Table:
    """The merged rows in key order.

    ``heads`` has for each key a row index in ``table``, its only row if it has one; ``contested`` selects the keys of
    ``result``.
    """
    base = heads.copy()
    base[contested] = result.rows
    kept = np.ones(len(base), dtype=bool)
    if result.kept is not None:
        kept[contested] = result.kept
    everything = bool(kept.all())
    columns = []
    for field in table.schema:
        column = table.column(field.name)
        own = result.columns.get(field.name)
        places = base
        if isinstance(own, pa.Array):
            column = pa.chunked_array([*column.chunks, own.cast(field.type)])
            places = base.copy()
            places[contested] = len(table) + np.arange(len(own))
        elif own is not None:
            places = base.copy()
            places[contested] = own
        columns.append(_taken(column, places if everything else places[kept]))
    return pa.Table.from_arrays(columns, schema=table.schema)


def _taken(column: pa.ChunkedArray, places: Indices) -> pa.ChunkedArray:
    absent = places < 0
    return pc.take(column, pa.array(places, mask=absent if absent.any() else None), boundscheck=False)
