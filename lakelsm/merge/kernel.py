"""Merges the rows of each key into one (docs/format.md 12.3), for every merge engine. Arrow in, Arrow out."""

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
from lakelsm.schema.system_columns import ROW_INDEX, VALUE_KIND

_ENGINES: dict[MergeEngine, Callable[[pa.Table, GroupedRows, MergeSpec], EngineResult]] = {
    MergeEngine.PARTIAL_UPDATE: merge_partial_update,
    MergeEngine.AGGREGATION: merge_aggregation,
    MergeEngine.FIRST_ROW: merge_first_row,
}


def merge_rows(table: pa.Table, keys: OrderKeys, spec: MergeSpec, always: Mask | None = None) -> pa.Table:
    """Merge the rows of each key into one and return them in key order; a merged row may be a retraction.

    ``table`` has the key, sequence and system columns and any others. Rows of several runs follow one another, the
    oldest run first. ``keys`` are the `order_keys` of the table. A key with a single row keeps it unchanged, unless
    ``always`` selects the row: then it passes through the engine alone. A merged row has the sequence number of the
    last of its records. Columns that the spec does not know are taken from one row of the key.

    Raises InvalidInputError for a retraction that the engine or a function does not support, for an overflow, and for a
    NULL in a column that is NOT NULL. The message has the column, the option and the remedy.
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
    """Return the row index of the row that each key keeps, in key order; only for engines that keep one of the rows.

    ``table`` has ``spec.decisive_columns``. `latest_rows` describes the other arguments.
    """
    if spec.engine is MergeEngine.DEDUPLICATE:
        return latest_rows(table, keys, spec)
    numbered = table.append_column(ROW_INDEX, pa.array(np.arange(len(table))))
    row_indexes: Indices = merge_rows(numbered, keys, spec).column(ROW_INDEX).to_numpy()
    return row_indexes


def rows_at(table: pa.Table, row_indexes: Indices) -> pa.Table:
    """Return the rows at some row indexes, which must be valid: they are not checked again."""
    return pc.take(table, pa.array(row_indexes), boundscheck=False)


def contested(keys: OrderKeys) -> Mask:
    """Return which rows share their key with another row. A merge changes no other rows.

    Fastest if most rows are one ascending run, as in a merge of small runs into a large one: the keys of the large run
    are searched for those of the others instead of being sorted.
    """
    mask = np.zeros(len(keys), dtype=bool)
    start, stop = _longest_run(keys)
    others = np.concatenate([np.arange(start), np.arange(stop, len(keys))])
    others = others[np.argsort(keys[others], kind="stable")]
    if not len(others):
        return mask
    wanted = keys[others]
    row_indexes = start + np.searchsorted(keys[start:stop], wanted)
    found = keys[np.minimum(row_indexes, stop - 1)] == wanted
    mask[row_indexes[found]] = True
    starts = group_starts(wanted)
    mask[others] = found | ~(starts & np.append(starts[1:], True))
    return mask


def _longest_run(keys: OrderKeys) -> tuple[int, int]:
    """Return start and stop of the longest range of strictly ascending keys."""
    bounds = np.concatenate([[0], np.flatnonzero(keys[1:] <= keys[:-1]) + 1, [len(keys)]])
    longest = int(np.argmax(np.diff(bounds)))
    return int(bounds[longest]), int(bounds[longest + 1])


def latest_rows(table: pa.Table, keys: OrderKeys, spec: MergeSpec) -> Indices:
    """Return the row index of the winning row of each key, in key order (merge engine `deduplicate`).

    ``table`` has ``spec.decisive_columns`` in any row order; sorted runs that follow one another sort fastest. ``keys``
    are its `order_keys`. Among the rows of a key the one with the greatest (sequence fields, sequence number) wins; a
    NULL sequence field loses to any value in both directions. Between equal sequence numbers an added row wins over a
    retraction, as in Java Paimon 2 and pypaimon, then the later row of the table wins. A retraction can win: the caller
    drops it where that is correct.
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
    """Return the row of highest priority of each group; ``rows`` are ordered by group, then by row index."""
    groups = grouped_rows(table, rows, group, spec)
    return groups.rows[groups.ends]
