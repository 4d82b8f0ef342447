"""Merges sorted runs of any length in bounded memory, one key range at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import starmap

import numpy as np
import pyarrow as pa

from lakelsm.format.row_kinds import is_retract
from lakelsm.merge.kernel import merge_rows, rows_at, surviving_rows
from lakelsm.merge.key_order import OrderKeys, order_keys
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.schema.system_columns import VALUE_KIND


def key_ranges(
    runs: Sequence[Iterator[pa.Table]], key_columns: Sequence[str]
) -> Iterator[tuple[pa.Table, OrderKeys | None]]:
    """Split sorted runs into consecutive key ranges, and yield the rows of all runs in each range.

    ``runs`` are ordered from the oldest; each yields tables ordered by ``key_columns`` in which no key occurs twice.
    Yields the rows of one range, run after run, with their order keys. The keys are None if only one run has rows in
    the range: then the rows are ordered and unique. At most one table of each run is in memory.
    """
    buffers: list[pa.Table | None] = [None] * len(runs)
    live = list(range(len(runs)))
    while True:
            # Refill the buffers only now: the caller has finished the previous range.
        for index in live:
            if buffers[index] is None:
                buffers[index] = _next_rows(runs[index])
        live = [index for index in live if buffers[index] is not None]
        if not live:
            return
        yield _take_range(buffers, key_columns)


def _take_range(buffers: list[pa.Table | None], key_columns: Sequence[str]) -> tuple[pa.Table, OrderKeys | None]:
    """Cut the rows up to the smallest last key from the buffers. A buffer that is used up becomes None."""
    tables = {index: table for index, table in enumerate(buffers) if table is not None}
    if len(tables) == 1:
        ((index, rows),) = tables.items()
        buffers[index] = None
        return rows, None
    merged = pa.concat_tables(tables.values())
    keys = order_keys([merged.column(name) for name in key_columns])
    stops = np.cumsum([len(table) for table in tables.values()])
    bound = min(keys[stop - 1] for stop in stops)
    taken: list[pa.Table] = []
    taken_keys: list[OrderKeys] = []
    for (index, table), stop in zip(tables.items(), stops):
        own = keys[stop - len(table) : stop]
        cut = int(np.searchsorted(own, bound, side="right"))
        if cut:
            taken.append(table.slice(0, cut))
            taken_keys.append(own[:cut])
        buffers[index] = table.slice(cut) if cut < len(table) else None
    if len(taken) == 1:
        return taken[0], None
    return pa.concat_tables(taken), np.concatenate(taken_keys)


def merge_runs(runs: Sequence[Iterator[pa.Table]], spec: MergeSpec, drop_deletes: bool) -> Iterator[pa.Table]:
    """Yield the merged rows of sorted runs (oldest first) in key order; ``drop_deletes`` leaves out retractions."""
    # A loop would keep a reference to a range while the next one is read.
    return starmap(lambda rows, keys: _merge_range(rows, keys, spec, drop_deletes), key_ranges(runs, spec.key_columns))


def _merge_range(rows: pa.Table, keys: OrderKeys | None, spec: MergeSpec, drop_deletes: bool) -> pa.Table:
    if keys is None:
        return without_retractions(rows) if drop_deletes or (spec.ignore_delete and spec.keeps_rows) else rows
    if not spec.keeps_rows:
        merged = merge_rows(rows, keys, spec)
        return without_retractions(merged) if drop_deletes else merged
    winners = surviving_rows(rows, keys, spec)
    if drop_deletes:
        retract = is_retract(rows.column(VALUE_KIND))
        if retract.any():
            winners = winners[~retract[winners]]
    return rows_at(rows, winners)


def without_retractions(rows: pa.Table) -> pa.Table:
    """Return the rows that are not -U or -D."""
    retract = is_retract(rows.column(VALUE_KIND))
    return rows.filter(pa.array(~retract)) if retract.any() else rows


def _next_rows(run: Iterator[pa.Table]) -> pa.Table | None:
    """Return the next table of a run that has rows, None at the end of the run."""
    return next((table for table in run if len(table)), None)
