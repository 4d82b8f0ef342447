"""Changelog rows: the changes that a merge made, as -U/+U, +I and -D of each key (Paimon's changelog producers)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
import pyarrow as pa

from lakelsm.format.row_kinds import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, is_retract
from lakelsm.merge.functions.value_codes import differs
from lakelsm.merge.grouped_rows import Indices, Mask
from lakelsm.merge.kernel import merge_rows
from lakelsm.merge.key_levels import NO_LEVEL, KeyGroups, combined_rows
from lakelsm.merge.key_order import OrderKeys
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.options import MergeEngine
from lakelsm.schema.system_columns import GROUP, VALUE_KIND


class ChangelogSource(Enum):
    """The source of the row before a change, and the keys that can have changed."""

    #: The row of the lowest level above 0, looked up below the output if needed. Keys with a row on level 0 can change.
    LOOKUP = "lookup"
    #: The row of the top level. Keys with a row on any other level can change.
    TOP_LEVEL = "top-level"


@dataclass(frozen=True)
class ChangelogRule:
    """The changes that a compaction records.

    Only changes of the columns ``compared`` count (``changelog-producer.row-deduplicate``). None: every written row
    counts as a change.
    """

    source: ChangelogSource
    compared: tuple[str, ...] | None = None


@dataclass(frozen=True)
class MergedRange:
    """The merged rows of a key range, retractions included, and the changes among them; both in key order.

    ``replaced`` are row indexes, in the table that was merged, of the rows below the output that merged rows replace.
    """

    rows: pa.Table
    changes: pa.Table | None
    replaced: Indices | None = None


def merge_with_lookup(
    rows: pa.Table,
    keys: OrderKeys | None,
    levels: Indices,
    output_level: int,
    spec: MergeSpec,
    rule: ChangelogRule | None,
    rewrites: bool = True,
    expired: Mask | None = None,
) -> MergedRange:
    """Merge a key range of a compaction to ``output_level`` in a table that looks rows up.

    ``levels`` has the level of each row. A row on a level above ``output_level`` takes part only if its key has no row
    on a lower level other than 0. Keys that have rows only there are left out. A key with a row on level 0 passes
    through the merge engine even if it has no other row, as in Paimon, except in a file that is only upgraded
    (``rewrites`` is false), because its rows do not change. ``keys`` are as in `merge_rows`, None if they ascend and
    are unique. ``expired`` rows take no part, but count as replaced; those of `first-row` are first rows until they are
    compacted, as in Paimon.
    """
    groups = KeyGroups.of(keys, len(rows))
    above = levels > 0
    if expired is not None and spec.engine is not MergeEngine.FIRST_ROW:
        above &= ~expired
    lowest = groups.minimum(np.where(above, levels, NO_LEVEL))
    fresh = groups.any(levels == 0)
    present = groups.any(levels <= output_level)
    if spec.engine is MergeEngine.FIRST_ROW:
            # The row below the output is the first one. It stays in its file.
        present &= (lowest <= output_level) | (lowest == NO_LEVEL)
    if not present.any():
        return MergedRange(rows.slice(0, 0), None)
    replaced = np.flatnonzero((levels > output_level) & (fresh & present)[groups.ids])
    looked_up = above & (levels == lowest[groups.ids])
    before = groups.row_of(looked_up)
    merging = present[groups.ids] & ((levels == 0) | looked_up)
    merged = _merged(rows, groups, merging, spec, fresh if rewrites else None)
    if rule is None:
        return MergedRange(merged.drop_columns(GROUP), None, replaced)
    counted = fresh & present
    if spec.engine is MergeEngine.FIRST_ROW:
            # Only new keys, with the kind that their row has, as in Paimon.
        new = _after(merged, counted & (before < 0))
        changes = merged.take(pa.array(new[_added(merged, new)])).drop_columns(GROUP)
        return MergedRange(merged.drop_columns(GROUP), changes, replaced)
    changes = change_rows(rows, np.where(counted, before, -1), merged, _after(merged, counted), rule.compared)
    return MergedRange(merged.drop_columns(GROUP), changes, replaced)


def merge_to_top(
    rows: pa.Table, keys: OrderKeys | None, levels: Indices, output_level: int, spec: MergeSpec, rule: ChangelogRule
) -> MergedRange:
    """Merge a key range of a full compaction, and record the changes of the rows of the top level."""
    groups = KeyGroups.of(keys, len(rows))
    top = levels == output_level
    before = groups.row_of(top)
    merging = combined_rows(groups, levels) if spec.lookup else np.ones(len(rows), dtype=bool)
    merged = _merged(rows, groups, merging, spec)
    counted = groups.any(~top)
    changes = change_rows(rows, np.where(counted, before, -1), merged, _after(merged, counted), rule.compared)
    return MergedRange(merged.drop_columns(GROUP), changes)


def merge_difference(
    rows: pa.Table,
    keys: OrderKeys | None,
    levels: Indices,
    sides: tuple[Mask, Mask],
    spec: MergeSpec,
    compared: tuple[str, ...],
) -> pa.Table:
    """Return the changes of the ``compared`` columns from one state of a key range to another.

    ``sides`` selects the rows of each state.
    """
    groups = KeyGroups.of(keys, len(rows))
    all_groups = np.ones(groups.count, dtype=bool)
    tables = []
    for side in sides:
        merging = side & combined_rows(groups, np.where(side, levels, NO_LEVEL)) if spec.lookup else side
        tables.append(_merged(rows, groups, merging, spec))
    old, new = tables
    return change_rows(old, _after(old, all_groups), new, _after(new, all_groups), compared)


def change_rows(
    old: pa.Table, before: Indices, new: pa.Table, after: Indices, compared: tuple[str, ...] | None
) -> pa.Table:
    """Return the changes of keys from rows of ``old`` to rows of ``new``, in key order.

    ``before`` and ``after`` have for each key its row index in ``old`` and in ``new``, -1 for no row; a retraction
    counts as no row. If a key has both rows and ``compared`` is not None, it counts only if one of these columns
    differs.
    """
    had = _added(old, before)
    has = _added(new, after)
    both = had & has
    if compared is not None and both.any():
        keys = np.flatnonzero(both)
        same = ~differs(old.take(pa.array(before[keys])), new.take(pa.array(after[keys])), compared)
        both[keys[same]] = False
        had[keys[same]] = has[keys[same]] = False
    removed, added = np.flatnonzero(had), np.flatnonzero(has)
    names = [name for name in new.column_names if name in old.column_names]
    parts = [old.select(names).take(pa.array(before[removed])), new.select(names).take(pa.array(after[added]))]
    kinds = np.concatenate([np.where(both[removed], UPDATE_BEFORE, DELETE), np.where(both[added], UPDATE_AFTER, INSERT)])
    order = np.argsort(np.concatenate([removed * 2, added * 2 + 1]), kind="stable")
    changes = pa.concat_tables(parts)
    index = changes.schema.get_field_index(VALUE_KIND)
    changes = changes.set_column(index, changes.schema.field(index), pa.array(kinds.astype(np.int8)))
    return changes.take(pa.array(order))


def _merged(rows: pa.Table, groups: KeyGroups, merging: Mask, spec: MergeSpec, always: Mask | None = None) -> pa.Table:
    """Return the merged rows with their group in a further column; groups in ``always`` pass through the engine."""
    numbered = rows.append_column(GROUP, pa.array(groups.ids))
    ids = groups.ids
    if not merging.all():
        numbered, ids = numbered.filter(pa.array(merging)), ids[merging]
    return merge_rows(numbered, ids, spec, None if always is None else always[ids])


def _after(merged: pa.Table, counted: Mask) -> Indices:
    """Return the merged row of each counted group, -1 for none."""
    after = np.full(len(counted), -1, dtype=np.int64)
    after[merged.column(GROUP).to_numpy()] = np.arange(len(merged))
    after[~counted] = -1
    return after


def _added(table: pa.Table, row_indexes: Indices) -> Mask:
    """Return which row indexes are those of a row that is not a retraction; -1 means no row."""
    added = np.zeros(len(row_indexes), dtype=bool)
    exists = row_indexes >= 0
    added[exists] = ~is_retract(table.column(VALUE_KIND))[row_indexes[exists]]
    return added
