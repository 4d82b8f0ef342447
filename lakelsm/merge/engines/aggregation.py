"""The merge engine `aggregation`: a function folds each column. Each function defines what a retraction does."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakelsm.format.row_kinds import DELETE, INSERT, is_retract
from lakelsm.merge.engine_result import EngineResult, system_columns
from lakelsm.merge.events import ADD, RETRACT, SKIP, Events, Values
from lakelsm.merge.functions.aggregate_functions import aggregate, check_not_null
from lakelsm.merge.grouped_rows import GroupedRows
from lakelsm.merge.merge_spec import MergeSpec
from lakelsm.schema.system_columns import SEQUENCE_NUMBER, VALUE_KIND


def merge_aggregation(table: pa.Table, groups: GroupedRows, spec: MergeSpec) -> EngineResult:
    """Fold the records of each contested key.

    With ``spec.remove_on_delete`` a -D restarts the row with its own values, and removes the row if it is the last
    record.
    """
    kinds = table.column(VALUE_KIND).take(pa.array(groups.rows)).combine_chunks()
    ops = np.where(is_retract(kinds), RETRACT, ADD).astype(np.int8)
    seeds = np.full(groups.count, -1)
    result_kinds = np.full(groups.count, INSERT, dtype=np.int8)
    if spec.remove_on_delete:
        deletes = kinds.to_numpy(zero_copy_only=False) == DELETE
        ops[deletes] = SKIP
        seeds = groups.last(deletes)
        result_kinds[deletes[groups.ends]] = DELETE
    events = Events(groups, ops, seeds)
    last = groups.rows[groups.ends]
    columns = system_columns(table.column(SEQUENCE_NUMBER).take(pa.array(last)).to_numpy(), result_kinds)
    for rule in spec.columns:
        if rule.name not in table.column_names:
            continue
        values = Values(table.column(rule.name), groups)
        result = aggregate(values, events, rule)
        if rule.not_null:
            check_not_null(values, result, rule)
        columns[rule.name] = result if isinstance(result, pa.Array) else _row_indexes(result, groups)
    return EngineResult(last, columns)


def _row_indexes(positions: np.ndarray, groups: GroupedRows) -> np.ndarray:
    """Return the row indexes in the table of positions in the groups, -1 for -1."""
    return np.where(positions >= 0, groups.rows[positions], -1)
