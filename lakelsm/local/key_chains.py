"""Files and units of a read chained by their key ranges, so that few streams return all rows in key order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from lakelsm.format.data_file.key_value_file import key_types
from lakelsm.format.row.binary_row_decode import decode_row
from lakelsm.merge.key_order import order_keys
from lakelsm.merge.merge_unit import Key, MergeUnit, RunFile
from lakelsm.merge.streaming import key_ranges
from lakelsm.snapshots.table_store import TableStore
from lakelsm.types import DataType, to_arrow

Unit = RunFile | MergeUnit


def key_chains(store: TableStore, units: Sequence[Unit]) -> list[list[Unit]]:
    """Return the units in chains: all of one bucket, each with keys above those of the unit before."""
    types = key_types(store.schema)
    by_bucket: dict[str, list[Unit]] = {}
    for unit in units:
        by_bucket.setdefault(_files(unit)[0].path.rsplit("/", 1)[0], []).append(unit)
    return [chain for bucket in by_bucket.values() for chain in _chains(bucket, types)]


def _chains(units: Sequence[Unit], types: Sequence[DataType]) -> list[list[Unit]]:
    """Chain units greedily by their smallest key: each is appended to the first chain that ends below it."""
    lows, highs = _ranges(units, types)
    chains: list[list[Unit]] = []
    ends: list[float] = []
    for at in sorted(range(len(units)), key=lows.__getitem__):
        number = next((number for number, end in enumerate(ends) if end < lows[at]), len(chains))
        chains[number : number + 1] = [[*(chains[number] if number < len(chains) else ()), units[at]]]
        ends[number : number + 1] = [highs[at]]
    return chains


def _ranges(units: Sequence[Unit], types: Sequence[DataType]) -> tuple[list[float], list[float]]:
    """Return a lower and an upper bound of each unit's keys, as ranks."""
    keys: list[Key] = []
    counts = []
    for unit in units:
        known = [file.expected for file in _files(unit) if file.expected is not None]
        found = [decode_row(row, types) for file in known for row in (file.min_key, file.max_key)]
        cuts = () if isinstance(unit, RunFile) else (unit.lower, unit.upper)
        found += [key for key in cuts if key is not None]
        keys += found
        counts.append(len(found))
    columns = [pa.array([key[at] for key in keys], to_arrow(kind)) for at, kind in enumerate(types)]
    ranks = np.unique(order_keys(columns), return_inverse=True)[1].reshape(-1)
    lows, highs = [], []
    for unit, own in zip(units, np.split(ranks, np.cumsum(counts)[:-1])):
        low, high = float(own.min()), float(own.max())
        if isinstance(unit, MergeUnit) and unit.upper is not None:
            high = float(own[-1]) - 0.5
        if isinstance(unit, MergeUnit) and unit.lower is not None:
            low = float(own[-1 if unit.upper is None else -2])
        lows.append(low)
        highs.append(high)
    return lows, highs


def _files(unit: Unit) -> Sequence[RunFile]:
    return (unit,) if isinstance(unit, RunFile) else unit.files


def in_key_order(chains: Sequence[Iterator[pa.Table]], keys: Sequence[str]) -> Iterator[pa.Table]:
    """Return the rows of ordered streams as one stream ordered by ``keys``. No key is in two streams."""
    for rows, order in key_ranges(chains, keys):
        yield rows if order is None else rows.combine_chunks().take(pa.array(np.argsort(order, kind="stable")))
