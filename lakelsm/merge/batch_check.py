"""Rows that a merge engine cannot take, refused before they are written."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakelsm.format.row_kinds import DELETE, is_retract
from lakelsm.merge.engines import first_row, partial_update
from lakelsm.merge.events import retraction_refused
from lakelsm.merge.functions.aggregate_functions import FUNCTIONS
from lakelsm.merge.grouped_rows import Mask
from lakelsm.merge.merge_spec import ColumnRule, MergeSpec
from lakelsm.options import MergeEngine
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
    present = {
        group: np.logical_or.reduce([table.column(name).is_valid().to_numpy() for name in group.sequence])
        for group in spec.groups
    }
    removing = np.zeros(len(table), dtype=bool)
    for group, there in present.items():
        if spec.remove_on_groups & set(group.sequence):
            removing |= deletes & there
    for group, there in present.items():
        if (retracts & there & ~removing).any():
            _refuse_any(tuple(rule for rule in spec.columns if rule.name in group.governed))
