"""Merge sorted runs of any length in bounded memory, a key range at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from lakelsm.merge.kernel import VALUE_KIND, MergeSpec, is_retract, latest_rows
from lakelsm.merge.key_order import OrderKeys, order_keys

#: Picks the surviving rows of one key range: (rows of all runs, their order keys) -> row indices in key order.
Select = Callable[[pa.Table, OrderKeys], np.ndarray]


def key_ranges(
    runs: Sequence[Iterator[pa.Table]], key_columns: Sequence[str]
) -> Iterator[tuple[pa.Table, OrderKeys | None]]:
    """Cut sorted runs into consecutive key ranges, each with the rows that all runs have in it.

    ``runs`` come oldest first; each yields tables ordered by ``key_columns`` in which no key occurs twice. What is
    yielded: the rows of one range (runs one after the other) and their order keys, or None in place of the keys where
    a single run has rows in the range, which are in order and unique then. At most one table of each run is held.
    """
    buffers: list[pa.Table | None] = [_next_rows(run) for run in runs]
    done = [buffer is None for buffer in buffers]
    while True:
        live = [index for index, buffer in enumerate(buffers) if buffer is not None]
        if not live:
            return
        if len(live) == 1:
            index = live[0]
            rows = buffers[index]
            assert rows is not None
            yield rows, None
            buffers[index] = _next_rows(runs[index])
            continue
        tables = [buffer for buffer in buffers if buffer is not None]
        merged = pa.concat_tables(tables)
        keys = order_keys([merged.column(name) for name in key_columns])
        stops = np.cumsum([len(table) for table in tables])
        bound = min(keys[stop - 1] for stop in stops)
        taken: list[pa.Table] = []
        taken_keys: list[OrderKeys] = []
        for index, table, stop in zip(live, tables, stops):
            own = keys[stop - len(table) : stop]
            cut = int(np.searchsorted(own, bound, side="right"))
            if cut:
                taken.append(table.slice(0, cut))
                taken_keys.append(own[:cut])
            rest = table.slice(cut) if cut < len(table) else None
            buffers[index] = rest if rest is not None else (None if done[index] else _next_rows(runs[index]))
            done[index] = buffers[index] is None
        if len(taken) == 1:
            yield taken[0], None
        else:
            yield pa.concat_tables(taken), np.concatenate(taken_keys)


def merge_runs(runs: Sequence[Iterator[pa.Table]], spec: MergeSpec, drop_deletes: bool) -> Iterator[pa.Table]:
    """Yield the merged rows of sorted runs (oldest first) in key order; retractions stay unless ``drop_deletes``."""
    for rows, keys in key_ranges(runs, spec.key_columns):
        yield _merge_range(rows, keys, spec, drop_deletes)


def _merge_range(rows: pa.Table, keys: OrderKeys | None, spec: MergeSpec, drop_deletes: bool) -> pa.Table:
    if keys is None:
        if not (drop_deletes or spec.ignore_delete):
            return rows
        retract = is_retract(rows.column(VALUE_KIND))
        return rows.filter(pa.array(~retract)) if retract.any() else rows
    winners = latest_rows(rows, keys, spec)
    if drop_deletes:
        retract = is_retract(rows.column(VALUE_KIND))
        if retract.any():
            winners = winners[~retract[winners]]
    return rows.combine_chunks().take(pa.array(winners))


def _next_rows(run: Iterator[pa.Table]) -> pa.Table | None:
    """Return the run's next table that has rows, None at its end."""
    return next((table for table in run if len(table)), None)
