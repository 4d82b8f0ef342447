"""Aggregate functions over arrays of rows: nested_update and nested_partial_update."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lakelsm.errors import InvalidInputError
from lakelsm.merge.events import RETRACT, REVERSED, Events, Items, Values
from lakelsm.merge.functions.collection_functions import ElementIndexes, element_indexes, fold_groups, lists_of
from lakelsm.merge.functions.value_codes import element_codes, row_codes
from lakelsm.merge.grouped_rows import ranks
from lakelsm.merge.merge_spec import ColumnRule


class _NestedRows:
    """The rows inside the arrays of a column: which are not NULL, their keys, and their order in time."""

    def __init__(self, elements: pa.StructArray, rule: ColumnRule) -> None:
        self.elements = elements
        self._rule = rule
        self.present: list[bool] = elements.is_valid().to_pylist()
        self.keys: list[int]
        if rule.nested_key:
            self.keys, self._incomplete = row_codes(elements, rule.nested_key)
        else:
            self.keys, self._incomplete = element_codes(elements), [False] * len(elements)
        self.times: Sequence[int] | None = None
        if rule.nested_sequence:
            columns = [pa.chunked_array([elements.field(name)]) for name in rule.nested_sequence]
            self.times = ranks(columns).tolist() if len(elements) else []

    def counts(self, index: int) -> bool:
        """Return whether the row is not NULL and has a key. Raises InvalidInputError if a NULL in the key is refused."""
        if not self.present[index]:
            return False
        if not self._incomplete[index] or self._rule.null_strategy == "merge":
            return True
        if self._rule.null_strategy == "ignore":
            return False
        raise InvalidInputError(
            f"column '{self._rule.name}': a row has NULL in its nested key ({', '.join(self._rule.nested_key)}). "
            f"Write a value, or set 'fields.{self._rule.name}.nested-key-null-strategy' = 'ignore'."
        )


def nested_update(values: Values, events: Events, rule: ColumnRule) -> pa.Array:
    """Append the rows of arrays, or keep the last row (greatest sequence) of each nested key, up to `count-limit` rows.

    A retraction removes the rows that have one of its nested keys; without a nested key, the rows equal to its own.
    """
    items = Items.of(events)
    array = values.at(items.positions)
    rows = _NestedRows(array.values, rule)

    def fold(accumulator: ElementIndexes, value: ElementIndexes, op: int) -> ElementIndexes:
        if op == RETRACT:
            return _retracted(accumulator, value, rows, bool(rule.nested_key))
        if op == REVERSED:
            accumulator, value = value, accumulator
        if value is None:
            return accumulator
        return _keyed(accumulator, value, rows, rule) if rule.nested_key else _appended(accumulator, value, rows, rule)

    folded = fold_groups(items, element_indexes(array), events.groups.count, fold)
    return lists_of(array.type, folded, array.values)


def _appended(accumulator: ElementIndexes, value: list[int], rows: _NestedRows, rule: ColumnRule) -> ElementIndexes:
    room = rule.count_limit - len(accumulator or ())
    if accumulator is not None and room <= 0:
        return accumulator
    old = [index for index in accumulator or () if rows.present[index]]
    return old + [index for index in value if rows.present[index]][: max(room, 0)]


def _keyed(accumulator: ElementIndexes, value: list[int], rows: _NestedRows, rule: ColumnRule) -> ElementIndexes:
    merged: dict[int, int] = {}
    for indexes, limited in ((accumulator or (), False), (value, True)):
        for index in indexes:
            if not rows.counts(index):
                continue
            old = merged.get(rows.keys[index])
            if old is None:
                if not limited or len(merged) < rule.count_limit:
                    merged[rows.keys[index]] = index
            elif rows.times is None or rows.times[index] >= rows.times[old]:
                merged[rows.keys[index]] = index
    return list(merged.values())


def _retracted(accumulator: ElementIndexes, value: ElementIndexes, rows: _NestedRows, keyed: bool) -> ElementIndexes:
    if accumulator is None or value is None:
        return accumulator
    removed = {rows.keys[index] for index in value if rows.counts(index)}
    if not keyed:
        return [index for index in accumulator if rows.present[index] and rows.keys[index] not in removed]
    last = {rows.keys[index]: index for index in accumulator if rows.counts(index)}
    return [index for key, index in last.items() if key not in removed]


def nested_partial_update(values: Values, events: Events, rule: ColumnRule) -> pa.Array:
    """Merge the rows of arrays into one for each nested key; each member has its last value that is not NULL."""
    items = Items.of(events)
    array = values.at(items.positions)
    rows = _NestedRows(array.values, rule)
    members = [rows.elements.field(column) for column in range(rows.elements.type.num_fields)]
    filled = [member.is_valid().to_pylist() for member in members]
    # A row of the result is a number; its members are indexes into the columns of the members (-1: NULL).
    sources = [[index if valid[index] else -1 for valid in filled] for index in range(len(rows.elements))]
    keys = list(rows.keys)

    def fold(accumulator: ElementIndexes, value: ElementIndexes, op: int) -> ElementIndexes:
        if op == REVERSED:
            accumulator, value = value, accumulator
        if value is None:
            return accumulator
        merged: dict[int, int] = {}
        for number in (*(accumulator or ()), *value):
            if number < len(rows.present) and not rows.counts(number):
                continue
            old = merged.get(keys[number])
            if old is None:
                merged[keys[number]] = number
                continue
            sources.append([new if new >= 0 else before for before, new in zip(sources[old], sources[number])])
            keys.append(keys[number])
            merged[keys[number]] = len(sources) - 1
        return list(merged.values())

    folded = fold_groups(items, element_indexes(array), events.groups.count, fold)
    indexes = np.array(sources, dtype=np.int64).reshape(len(sources), len(members))
    columns = [member.take(pa.array(column, mask=column < 0)) for member, column in zip(members, indexes.T)]
    fields = [rows.elements.type.field(column) for column in range(len(members))]
    return lists_of(array.type, folded, pa.StructArray.from_arrays(columns, fields=fields))
