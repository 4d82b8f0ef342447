"""The merge of rows of one key into one (docs/format.md 12.3), for every merge engine. Arrow in, Arrow out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.format.row_kinds import is_retract
from lakelsm.merge.engine_result import EngineResult, assemble_rows
from lakelsm.merge.engines.aggregation import merge_aggregation
from lakelsm.merge.engines.first_row import merge_first_row
from lakelsm.merge.engines.partial_update import merge_partial_update
from lakelsm.merge.grouped_rows import GroupedRows, Indices, Mask, grouped_rows
from lakelsm.merge.key_order import OrderKeys, group_starts
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.options import MergeEngine
from lakelsm.schema.system_columns import PLACE, VALUE_KIND

_ENGINES: dict[MergeEngine, Callable[[pa.Table, GroupedRows, MergeSpec], EngineResult]] = {
    MergeEngine.PARTIAL_UPDATE: merge_partial_update,
    MergeEngine.AGGREGATION: merge_aggregation,
    MergeEngine.FIRST_ROW: merge_first_row,
}


def merge_rows(table: pa.Table, keys: OrderKeys, spec: MergeSpec, always: Mask | None = None) -> pa.Table:
    """Merge the rows of each key into one, in key order; a result may be a retraction, by its kind.

    ``table`` has the key, sequence and system columns and any of the others; rows of several runs stand one run after
    the other, oldest first. ``keys`` are its `order_keys`. A key with a single row keeps it unchanged, unless ``always``
    selects the row: then the engine merges it alone. The sequence number of a merged row is that of the last of its
    records. Columns that the spec does not know come from one of the key's rows.

    Raises InvalidInputError for a retraction that the engine or a function cannot take, an overflow and a NULL in a
    column that is NOT NULL; the message names column, option and remedy.
    """
    drops = spec.engine is MergeEngine.DEDUPLICATE and spec.ignore_delete
    if always is None and not drops and bool((keys[1:] > keys[:-1]).all()):
        return table
    if spec.engine is MergeEngine.DEDUPLICATE:
        return rows_at(table, latest_rows(table, keys, spec))
    order = np.argsort(keys, kind="stable").astype(np.int64, copy=False)
    starts = group_starts(keys[order])
    alone = starts & np.append(starts[1:], True) if len(starts) else starts
    if always is not None:
        alone &= ~always[order]
    if alone.all():
        return rows_at(table, order)
    group = np.cumsum(starts).astype(np.int64, copy=False)[~alone]
    groups = grouped_rows(table, order[~alone], group, spec)
    result = _ENGINES[spec.engine](table, groups, spec)
    return assemble_rows(table, order[starts], ~alone[starts], result)


def surviving_rows(table: pa.Table, keys: OrderKeys, spec: MergeSpec) -> Indices:
    """Return the row of each key that the merge keeps, in key order, for engines whose merged rows are rows of the table.

    ``table`` has ``spec.decisive_columns``; `latest_rows` has the rest.
    """
    if spec.engine is MergeEngine.DEDUPLICATE:
        return latest_rows(table, keys, spec)
    numbered = table.append_column(PLACE, pa.array(np.arange(len(table))))
    places: Indices = merge_rows(numbered, keys, spec).column(PLACE).to_numpy()
    return places


def rows_at(table: pa.Table, places: Indices) -> pa.Table:
    """The rows at valid row indexes, which are not checked again."""
    return pc.take(table, pa.array(places), boundscheck=False)


def contested(keys: OrderKeys) -> Mask:
    """Which rows share their key with another row. A merge does not change all others.

    Fastest where most rows are one ascending run, as in a merge of small runs into a large one: its keys are searched
    for those of the others, and not sorted.
    """
    mask = np.zeros(len(keys), dtype=bool)
    start, stop = _longest_run(keys)
    others = np.concatenate([np.arange(start), np.arange(stop, len(keys))])
    others = others[np.argsort(keys[others], kind="stable")]
    if not len(others):
        return mask
    wanted = keys[others]
    places = start + np.searchsorted(keys[start:stop], wanted)
    found = keys[np.minimum(places, stop - 1)] == wanted
    mask[places[found]] = True
    starts = group_starts(wanted)
    mask[others] = found | ~(starts & np.append(starts[1:], True))
    return mask


def _longest_run(keys: OrderKeys) -> tuple[int, int]:
    """Start and stop of the longest stretch of strictly ascending keys."""
    bounds = np.concatenate([[0], np.flatnonzero(keys[1:] <= keys[:-1]) + 1, [len(keys)]])
    longest = int(np.argmax(np.diff(bounds)))
    return int(bounds[longest]), int(bounds[longest + 1])


def latest_rows(table: pa.Table, keys: OrderKeys, spec: MergeSpec) -> Indices:
    """Return the index of the winning row of each key, in key order (merge engine `deduplicate`).

    ``table`` has ``spec.decisive_columns`` in any row order (sorted runs one after the other sort fastest); ``keys``
    are its `order_keys`. Among rows of one key the greatest (sequence fields, sequence number) wins; a NULL sequence
    field loses to any value in both directions. Rows that share a sequence number: an added row beats a retraction,
    as Java Paimon 2 and pypaimon have it, then the later row of the table wins. Retractions can win: the caller drops
    them where that is right.
    """
    order = np.argsort(keys, kind="stable")
    starts = group_starts(keys[order])
    if spec.ignore_delete:
        kept = ~is_retract(table.column(VALUE_KIND))[order]
        order = order[kept]
        starts = group_starts(keys[order])
    ends = np.append(starts[1:], True) if len(starts) else starts
    winners = order[ends]
    contested = ~(starts & ends)
    if contested.any():
        rows = order[contested]
        group = np.cumsum(starts)[contested] - 1
        winners[group[group_starts(group)]] = _last_of_groups(table, rows, group, spec)
    return winners.astype(np.int64, copy=False)


def _last_of_groups(table: pa.Table, rows: Indices, group: Indices, spec: MergeSpec) -> Indices:
    """Return the row of highest priority of each group; ``rows`` are ordered by group, then by table position."""
    groups = grouped_rows(table, rows, group, spec)
    return groups.rows[groups.ends]
