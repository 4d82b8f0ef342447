"""Retractions of a batch that a merge engine refuses, and those that it takes without any effect."""

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
    """Raises InvalidInputError, naming column, option and remedy, for retractions that no merge of them could take.

    A retraction that only some merges refuse (an older -D of a sequence group that removes rows) is left to the merge.
    """
    retracts = is_retract(table.column(VALUE_KIND))
    if spec.engine is MergeEngine.DEDUPLICATE or not retracts.any():
        return
    if spec.engine is MergeEngine.FIRST_ROW:
        raise first_row.retractions_refused()
    deletes = table.column(VALUE_KIND).to_numpy() == DELETE
    if spec.engine is MergeEngine.AGGREGATION:
        folded = retracts & ~deletes if spec.remove_on_delete else retracts
        if folded.any():
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
    """A retraction concerns the groups that have a sequence; one that may remove the row concerns none for sure."""
    present = _present(table, spec)
    removing = np.zeros(len(table), dtype=bool)
    for group, there in present.items():
        if spec.remove_on_groups & set(group.sequence):
            removing |= deletes & there
    for group, there in present.items():
        if (retracts & there & ~removing).any():
            _refuse_any(tuple(rule for rule in spec.columns if rule.name in group.governed))


def dropped_kinds(options: TableOptions) -> tuple[int, ...]:
    """The kinds of rows that a write drops, before it looks at them otherwise."""
    if options.ignore_delete:
        return RETRACTIONS
    return (UPDATE_BEFORE,) if options.ignore_update_before else ()


def ignored_rows(table: pa.Table, spec: MergeSpec) -> Mask:
    """Which rows of a batch are retractions (-U and -D) that retract nothing, for any rows of the table with their keys.

    ``table`` has passed `check_batch`. In all engines the options `ignore-delete` (-U and -D) and `ignore-update-before`
    (-U) drop rows before they get here (`dropped_kinds`); they are ignored rows too. Of the others these are ignored:

    - `deduplicate`: none, because each may be its key's newest record. `first-row`: none, because it refuses them.
    - `partial-update` with sequence groups: rows whose sequence columns are NULL in every group. Such a row retracts no
      column, and neither does it remove the row where `partial-update.remove-record-on-sequence-group` is set. One value
      is enough for an effect: it moves the sequence of its group.
    - `partial-update` with `partial-update.remove-record-on-delete`: every -U. Each -D removes the row.
    - `aggregation`: rows that no column retracts; with `aggregation.remove-record-on-delete` a -D is not one of them.
      A column retracts nothing with `fields.<column>.ignore-retract`, or where the value is NULL and the function is
      neither `last_value` nor `primary-key`, which a retraction sets whatever its value is. Those of `sequence.field`
      are `last_value` too, but a row in which all are NULL comes first, and can set only NULL to NULL.

    So an ignored row removes no row and changes no existing row. As in Java Paimon it is a record of its key
    nevertheless: `partial-update` starts a row from the values of its first record, and shows a row again where any
    record follows the -D that removed it in one merge; `aggregation` makes two retractions alone a row of NULLs.
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
    for there in _present(table, spec).values():
        ignored &= ~there
    return ignored


def ignored_deletes_reason(spec: MergeSpec) -> str:
    """Why rows of kind -D of a table are `ignored_rows`, as a sentence."""
    if spec.ignore_delete:
        return "The table's option 'ignore-delete' drops them."
    if spec.engine is MergeEngine.AGGREGATION:
        return "No column retracts a value of them, and 'aggregation.remove-record-on-delete' is not set."
    names = ", ".join(name for group in spec.groups for name in group.sequence)
    needed = f"Their sequence columns ({names}) are all NULL: a -D needs a value in one of them"
    if spec.remove_on_groups:
        return f"{needed}."
    return f"{needed}, and removes its row only with 'partial-update.remove-record-on-sequence-group'."


def _present(table: pa.Table, spec: MergeSpec) -> dict[SequenceGroup, Mask]:
    """Which rows have a sequence in each group: a value in one of its columns."""
    return {
        group: np.logical_or.reduce([table.column(name).is_valid().to_numpy() for name in group.sequence])
        for group in spec.groups
    }


def _retracts_a_column(table: pa.Table, spec: MergeSpec) -> Mask:
    """Which rows would change a column of `aggregation` as retractions."""
    found = np.zeros(len(table), dtype=bool)
    for rule in spec.columns:
        if not rule.ignore_retract:
            sets_always = rule.function in (LAST_VALUE, PRIMARY_KEY) and rule.name not in spec.sequence_columns
            found |= True if sets_always else table.column(rule.name).is_valid().to_numpy()
    return found
