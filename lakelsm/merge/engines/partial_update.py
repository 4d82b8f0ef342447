"""The merge engine `partial-update`: values that are not NULL update the row; a sequence group takes the newest ones."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.errors import InvalidInputError
from lakelsm.format.row_kinds import DELETE, INSERT, is_retract
from lakelsm.merge.engine_result import EngineResult, system_columns
from lakelsm.merge.events import ADD, RETRACT, REVERSED, SKIP, Events, Ops, Result, Values
from lakelsm.merge.functions.aggregate_functions import aggregate, check_not_null, last_non_null_value
from lakelsm.merge.grouped_rows import GroupedRows, Indices, Mask, ranks
from lakelsm.merge.key_order import group_starts
from lakelsm.merge.merge_spec import ColumnRule, MergeSpec, SequenceGroup
from lakelsm.schema.system_columns import SEQUENCE_NUMBER, VALUE_KIND


def merge_partial_update(table: pa.Table, groups: GroupedRows, spec: MergeSpec) -> EngineResult:
    """Update each contested key by its records in merge order.

    Raises InvalidInputError for a retraction if no option defines its effect.
    """
    kinds = table.column(VALUE_KIND).take(pa.array(groups.rows)).combine_chunks()
    records = _Records(groups, is_retract(kinds), kinds.to_numpy(zero_copy_only=False) == DELETE)
    if spec.ignore_delete:
        acting = ~records.retracts
    else:
        acting = np.ones(len(groups.rows), dtype=bool)
        if not spec.groups and not spec.remove_on_delete and records.retracts.any():
            raise retractions_refused()
    sequences = [_Sequence.of(table, groups, group) for group in spec.groups]
    removals = _removals(records, acting, sequences, spec)
    restarts = removals.copy()
    restarts[groups.starts[records.retracts[groups.starts]]] = True
    seeds = groups.last(restarts)
    columns = system_columns(
        _result_numbers(table, groups, acting), _result_kinds(records, groups, removals)
    )
    # A column of no group has the last value that is not NULL; retractions do not change it.
    ungrouped = Events(groups, _ops(records.retracts, ADD), seeds)
    by_column: dict[str, _GroupFold] = {}
    for sequence in sequences:
        fold = _GroupFold(sequence, records, acting=acting, removals=removals, restarts=restarts, seeds=seeds)
        by_column.update(dict.fromkeys(sequence.group.columns, fold))
    for rule in spec.columns:
        if rule.name in table.column_names:
            values = Values(table.column(rule.name), groups)
            own = by_column.get(rule.name)
            result = last_non_null_value(values, ungrouped, rule) if own is None else own.column(values, rule)
            if rule.not_null:
                check_not_null(values, result, rule)
            columns[rule.name] = (
                result if isinstance(result, pa.Array) else np.where(result >= 0, groups.rows[result], -1)
            )
    return EngineResult(groups.rows[groups.ends], columns)


def retractions_refused() -> InvalidInputError:
    """Return the error for a -U or -D in a table whose options do not define its effect."""
    return InvalidInputError(
        "option 'merge-engine' = 'partial-update': rows of kind -U or -D are refused. Set 'ignore-delete' = 'true' to "
        "drop them, 'partial-update.remove-record-on-delete' = 'true' to let -D remove the row, or sequence groups "
        "('fields.<column>.sequence-group') to retract their columns."
    )


@dataclass(frozen=True)
class _Records:
    groups: GroupedRows
    retracts: Mask
    deletes: Mask


@dataclass(frozen=True)
class _Sequence:
    """The order of one sequence group: the rank of each record, and whether all its sequence columns are NULL."""

    group: SequenceGroup
    rank: Indices
    empty: Mask

    @staticmethod
    def of(table: pa.Table, groups: GroupedRows, group: SequenceGroup) -> _Sequence:
        columns = [table.column(name).take(pa.array(groups.rows)) for name in group.sequence]
        empty = np.logical_and.reduce([column.is_null().to_numpy() for column in columns])
        return _Sequence(group, ranks(columns, 2**62 // (len(empty) + 1)), empty)

    def accepted(self, starts: Mask, moves: Mask) -> Mask:
        """Return which records are not older than the sequence that the earlier records reached.

        ``starts`` selects records that restart the row and set its sequence. Records that ``moves`` does not select do
        not change the sequence.
        """
        effective = np.where((self.empty | ~moves) & ~starts, -1, self.rank)
        base = (np.cumsum(starts) - 1) * (int(self.rank.max(initial=0)) + 2)
        newest = np.maximum.accumulate(effective + 1 + base) - base - 1
        accepted: Mask = (self.rank >= newest) & ~self.empty
        return accepted


def _removals(records: _Records, acting: Mask, sequences: list[_Sequence], spec: MergeSpec) -> Mask:
    """Return which -D records remove the row and leave their values as the start of the next row of the key."""
    if spec.remove_on_delete:
        return records.deletes & acting
    removals = np.zeros(len(acting), dtype=bool)
    removing_sequences = [sequence for sequence in sequences if spec.remove_on_groups & set(sequence.group.sequence)]
    if not removing_sequences:
        return removals
    key_starts = np.zeros(len(acting), dtype=bool)
    key_starts[records.groups.starts] = True
    while True:
        starts = key_starts | removals
        accepted = np.logical_or.reduce([sequence.accepted(starts, acting) for sequence in removing_sequences])
        removing = accepted & records.deletes & acting & ~removals
        if not removing.any():
            return removals
        if len(removing_sequences) > 1:
            # A removal also changes the sequences of the other groups: only the first one after each start is certain.
            candidates = np.flatnonzero(removing)
            removing = np.zeros_like(removing)
            removing[candidates[group_starts(np.cumsum(starts)[candidates])]] = True
        removals |= removing


def _result_numbers(table: pa.Table, groups: GroupedRows, acting: Mask) -> npt.NDArray[np.int64]:
    """Return the sequence number of the last record of each key that is not ignored, 0 if all are ignored."""
    last = groups.last(acting)
    numbers = table.column(SEQUENCE_NUMBER).take(pa.array(groups.rows[last])).to_numpy()
    return np.where(last >= 0, numbers, 0)


def _result_kinds(records: _Records, groups: GroupedRows, removals: Mask) -> npt.NDArray[np.int8]:
    """Return DELETE for keys whose last record removed the row or of which no record added a value, else INSERT."""
    removed = removals[groups.ends] | ~groups.any(~records.retracts)
    return np.where(removed, DELETE, INSERT).astype(np.int8)


@dataclass(frozen=True)
class _GroupFold:
    """Converts the records of all keys to events of the columns of one sequence group."""

    sequence: _Sequence
    records: _Records
    _: KW_ONLY
    acting: Mask
    removals: Mask
    restarts: Mask
    seeds: Indices

    def column(self, values: Values, rule: ColumnRule) -> Result:
        """Return the merged values of one column of the group."""
        if rule.name in self.sequence.group.sequence:
            return self._newest
        if rule.function is None:
            newest = self._newest
            retracted = (newest >= 0) & self.records.retracts[newest] & ~self._idle[newest]
            return np.where(retracted, -1, newest)
        return aggregate(values, self._aggregated, rule)

    @cached_property
    def _accepted(self) -> Mask:
        starts = self.removals.copy()
        starts[self.records.groups.starts] = True
        return self.sequence.accepted(starts, self.acting)

    @cached_property
    def _idle(self) -> Mask:
        """A mask of the records that do not change the group."""
        return self.sequence.empty | ~self.acting | self.removals

    @cached_property
    def _newest(self) -> Indices:
        """The last record of each key that is not older than the sequence, or the record that the row starts with."""
        groups = self.records.groups
        last = groups.last(self._accepted & ~self._idle)
        return np.where(last >= self.seeds, last, self.seeds)

    @cached_property
    def _aggregated(self) -> Events:
        added = np.where(self._accepted, ADD, REVERSED)
        ops = _ops(self._idle, np.where(self.records.retracts, RETRACT, added))
        return Events(self.records.groups, ops, self.seeds, self.restarts)


def _ops(idle: Mask, ops: Any) -> Ops:
    return np.where(idle, SKIP, ops).astype(np.int8)
