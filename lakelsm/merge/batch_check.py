"""Retractions of a batch: those that a merge engine refuses, and those that have no effect."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakelsm.format.row_kinds import DELETE, RETRACTIONS, UPDATE_BEFORE, is_retract
from lakelsm.merge.engines import first_row, partial_update
from lakelsm.merge.events import retraction_refused
from lakelsm.merge.functions.aggregate_functions import FUNCTIONS
from lakelsm.merge.grouped_rows import Mask
from lakelsm.merge.merge_spec import LAST_VALUE, PRIMARY_KEY, ColumnRule, MergeSpec, SequenceGroup
from lakelsm.options import MergeEngine, TableOptions
from lakelsm.schema.system_columns import VALUE_KIND


def check_batch(table: pa.Table, spec: MergeSpec) -> None:
    """Raise InvalidInputError for retractions that no merge can accept; the message has column, option and remedy.

    Retractions that only some merges refuse (an older -D of a sequence group that removes rows) are left to the merge.
    """
    retracts = is_retract(table.column(VALUE_KIND))
    if spec.engine is MergeEngine.DEDUPLICATE or not retracts.any():
        return
    if spec.engine is MergeEngine.FIRST_ROW:
        raise first_row.retractions_refused()
    deletes = table.column(VALUE_KIND).to_numpy() == DELETE
    if spec.engine is MergeEngine.AGGREGATION:
        retracted = retracts & ~deletes if spec.remove_on_delete else retracts
        if retracted.any():
            _refuse_any(spec.columns)
        return
    if not spec.groups and not spec.remove_on_delete:
        raise partial_update.retractions_refused()
    _check_groups(table, retracts, deletes, spec)


def _refuse_any(rules: tuple[ColumnRule, ...]) -> None:
    for rule in rules:
        if rule.function is not None and not rule.ignore_retract and not FUNCTIONS[rule.function][1]:
            raise retraction_refused(rule)


def _check_groups(table: pa.Table, retracts: Mask, deletes: Mask, spec: MergeSpec) -> None:
    """Check each group for the retractions that have a sequence in it, except those that may remove the whole row."""
    with_sequence = _rows_with_sequence(table, spec)
    removing = np.zeros(len(table), dtype=bool)
    for group, has_sequence in with_sequence.items():
        if spec.remove_on_groups & set(group.sequence):
            removing |= deletes & has_sequence
    for group, has_sequence in with_sequence.items():
        if (retracts & has_sequence & ~removing).any():
            _refuse_any(tuple(rule for rule in spec.columns if rule.name in group.governed))


def dropped_kinds(options: TableOptions) -> tuple[int, ...]:
    """Return the kinds of rows that a write drops before any other check."""
    if options.ignore_delete:
        return RETRACTIONS
    return (UPDATE_BEFORE,) if options.ignore_update_before else ()


def ignored_rows(table: pa.Table, spec: MergeSpec) -> Mask:
    """Return which rows of a batch are retractions (-U and -D) without effect, whatever rows of their keys the table has.

    ``table`` has passed `check_batch`. The options `ignore-delete` (-U and -D) and `ignore-update-before` (-U) drop
    rows before this call (`dropped_kinds`); these count as ignored rows too. Of the other rows, these are ignored:

    - `deduplicate`: none, because each may be the newest record of its key. `first-row`: none, because it refuses them.
    - `partial-update` with sequence groups: rows whose sequence columns are NULL in every group. Such a row retracts no
      column, and it does not remove the row if `partial-update.remove-record-on-sequence-group` is set. One value is
      enough for an effect: it advances the sequence of its group.
    - `partial-update` with `partial-update.remove-record-on-delete`: every -U. Each -D removes the row.
    - `aggregation`: rows that no column retracts; with `aggregation.remove-record-on-delete` a -D is never ignored.
      A column retracts nothing if `fields.<column>.ignore-retract` is set, or if the value is NULL and the function is
      neither `last_value` nor `primary-key`: a retraction sets these two whatever its value is. The columns of
      `sequence.field` are `last_value` too, but a row in which all of them are NULL is ordered first and can only
      replace NULL by NULL.

    An ignored row therefore removes no row and changes no existing row. As in Java Paimon it is still a record of its
    key: `partial-update` starts a row from the values of its first record, and shows a row again if any record follows
    the -D that removed it in one merge; `aggregation` makes a row of NULLs of two retractions alone.
    """
    ignored = is_retract(table.column(VALUE_KIND))
    if not ignored.any():
        return ignored
    if spec.keeps_rows:
        return np.zeros(len(table), dtype=bool)
    if spec.remove_on_delete:
        ignored &= table.column(VALUE_KIND).to_numpy() != DELETE
    if spec.engine is MergeEngine.AGGREGATION:
        return ignored & ~_retracts_a_column(table, spec)
    for has_sequence in _rows_with_sequence(table, spec).values():
        ignored &= ~has_sequence
    return ignored


def ignored_deletes_reason(spec: MergeSpec) -> str:
    """Return the sentence that explains why rows of kind -D of a table are `ignored_rows`."""
    if spec.ignore_delete:
        return "The table's option 'ignore-delete' drops them."
    if spec.engine is MergeEngine.AGGREGATION:
        return "No column retracts their values, and 'aggregation.remove-record-on-delete' is not set."
    names = ", ".join(name for group in spec.groups for name in group.sequence)
    needed = f"Their sequence columns ({names}) are all NULL: a -D needs a value in one of them"
    if spec.remove_on_groups:
        return f"{needed}."
    return f"{needed}, and removes its row only with 'partial-update.remove-record-on-sequence-group'."


def _rows_with_sequence(table: pa.Table, spec: MergeSpec) -> dict[SequenceGroup, Mask]:
    """Return for each sequence group which rows have a sequence in it: a value in one of its sequence columns."""
    return {
        group: np.logical_or.reduce([table.column(name).is_valid().to_numpy() for name in group.sequence])
        for group in spec.groups
    }


def _retracts_a_column(table: pa.Table, spec: MergeSpec) -> Mask:
    """Return which rows change a column of `aggregation` when they are applied as retractions."""
    mask = np.zeros(len(table), dtype=bool)
    for rule in spec.columns:
        if not rule.ignore_retract:
            sets_always = rule.function in (LAST_VALUE, PRIMARY_KEY) and rule.name not in spec.sequence_columns
            mask |= True if sets_always else table.column(rule.name).is_valid().to_numpy()
    return mask
