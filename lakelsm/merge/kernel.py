"""Which row of each key survives a merge (format.md 12.4 and 13.5). Plain functions on Arrow tables and numpy indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.merge.key_order import OrderKeys, group_starts, order_keys
from lakelsm.options import TableOptions
from lakelsm.schema import TableSchema

#: System columns of key-value rows. Persisted: do not change
SEQUENCE_NUMBER = "_SEQUENCE_NUMBER"
VALUE_KIND = "_VALUE_KIND"

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MergeSpec:
    """What a merge needs to know of a table, frozen.

    ``key_columns`` are the trimmed primary key. ``sequence_columns`` (``sequence.field``) decide before the sequence
    number; ``sequence_descending`` lets the smallest value win. ``ignore_delete`` drops retractions (-U and -D) before
    the merge.
    """

    key_columns: tuple[str, ...]
    sequence_columns: tuple[str, ...] = ()
    sequence_descending: bool = False
    ignore_delete: bool = False

    @staticmethod
    def of(schema: TableSchema, options: TableOptions) -> MergeSpec:
        """The merge of a table."""
        return MergeSpec(
            schema.trimmed_primary_keys,
            options.sequence_field,
            options.sequence_field_descending,
            options.ignore_delete,
        )

    @property
    def decisive_columns(self) -> tuple[str, ...]:
        """The columns that `latest_rows` reads: key, sequence fields and the two system columns, each once."""
        names = (*self.key_columns, *self.sequence_columns, SEQUENCE_NUMBER, VALUE_KIND)
        return tuple(dict.fromkeys(names))


def is_retract(kinds: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows whose kind is -U (1) or -D (3)."""
    values = kinds.to_numpy(zero_copy_only=False) if isinstance(kinds, pa.Array) else kinds.to_numpy()
    mask: npt.NDArray[np.bool_] = (values & 1).astype(bool)
    return mask


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
        winners[np.unique(group)] = _last_of_groups(table, rows, group, spec)
    return winners.astype(np.int64, copy=False)


def _last_of_groups(table: pa.Table, rows: Indices, group: Indices, spec: MergeSpec) -> Indices:
    """Return the row of highest priority of each group; ``rows`` are ordered by group, then by table position."""
    part = table.select([*spec.sequence_columns, SEQUENCE_NUMBER, VALUE_KIND]).take(pa.array(rows))
    retract = is_retract(part.column(VALUE_KIND))
    numbers = part.column(SEQUENCE_NUMBER).to_numpy()
    levels: list[npt.NDArray[Any]] = [~retract, numbers]
    for name in reversed(spec.sequence_columns):
        levels.append(_priority(part.column(name), spec.sequence_descending))
    order = np.lexsort([*levels, group])
    last = np.append(group[order][1:] != group[order][:-1], True)
    chosen: Indices = rows[order[last]]
    return chosen


def _priority(column: pa.ChunkedArray, descending: bool) -> npt.NDArray[np.int64]:
    """Rank the values of one sequence field: the higher, the stronger; NULL below all."""
    ranks = np.unique(order_keys([column]), return_inverse=True)[1].astype(np.int64).reshape(-1)
    if descending:
        ranks = -ranks
    valid = column.is_valid().to_numpy()
    return np.where(valid, ranks, np.iinfo(np.int64).min)


def merge_deduplicate(runs: Sequence[pa.Table], spec: MergeSpec) -> pa.Table:
    """Merge whole runs in memory: the rows that win, in key order, retractions included."""
    table = pa.concat_tables(runs)
    keys = order_keys([table.column(name) for name in spec.key_columns])
    return table.take(pa.array(latest_rows(table, keys, spec)))
