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
    """The rows inside the arrays of a column: which are not NULL, their keys and their order in time."""

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

    def counts(self, place: int) -> bool:
        """Whether the row is not NULL and has a key; raises InvalidInputError by the strategy for NULL keys."""
        if not self.present[place]:
            return False
        if not self._incomplete[place] or self._rule.null_strategy == "merge":
            return True
        if self._rule.null_strategy == "ignore":
            return False
        raise InvalidInputError(
            f"a row of column '{self._rule.name}' has NULL in its nested key ({', '.join(self._rule.nested_key)}); "
            f"fill it or set 'fields.{self._rule.name}.nested-key-null-strategy' = 'ignore'"
        )


def nested_update(values: Values, events: Events, rule: ColumnRule) -> pa.Array:
    """Rows of an array: appended, or of each nested key the last (of the greatest sequence), up to `count-limit`.

    A retraction removes the rows of its nested keys; without nested key the rows that equal its own.
    """
    items = Items.of(events)
    array = values.at(items.positions)
    rows = _NestedRows(array.values, rule)

    def fold(held: ElementIndexes, value: ElementIndexes, op: int) -> ElementIndexes:
        if op == RETRACT:
            return _retracted(held, value, rows, bool(rule.nested_key))
        if op == REVERSED:
            held, value = value, held
        if value is None:
            return held
        return _keyed(held, value, rows, rule) if rule.nested_key else _appended(held, value, rows, rule)

    folded = fold_groups(items, element_indexes(array), events.groups.count, fold)
    return lists_of(array.type, folded, array.values)


def _appended(held: ElementIndexes, value: list[int], rows: _NestedRows, rule: ColumnRule) -> ElementIndexes:
    room = rule.count_limit - len(held or ())
    if held is not None and room <= 0:
        return held
    old = [place for place in held or () if rows.present[place]]
    return old + [place for place in value if rows.present[place]][: max(room, 0)]


def _keyed(held: ElementIndexes, value: list[int], rows: _NestedRows, rule: ColumnRule) -> ElementIndexes:
    merged: dict[int, int] = {}
    for places, limited in ((held or (), False), (value, True)):
        for place in places:
            if not rows.counts(place):
                continue
            old = merged.get(rows.keys[place])
            if old is None:
                if not limited or len(merged) < rule.count_limit:
                    merged[rows.keys[place]] = place
            elif rows.times is None or rows.times[place] >= rows.times[old]:
                merged[rows.keys[place]] = place
    return list(merged.values())


def _retracted(held: ElementIndexes, value: ElementIndexes, rows: _NestedRows, keyed: bool) -> ElementIndexes:
    if held is None or value is None:
        return held
    gone = {rows.keys[place] for place in value if rows.counts(place)}
    if not keyed:
        return [place for place in held if rows.present[place] and rows.keys[place] not in gone]
    last = {rows.keys[place]: place for place in held if rows.counts(place)}
    return [place for key, place in last.items() if key not in gone]


def nested_partial_update(values: Values, events: Events, rule: ColumnRule) -> pa.Array:
    """Rows of an array: of each nested key one row, whose members are the last ones that are not NULL."""
    items = Items.of(events)
    array = values.at(items.positions)
    rows = _NestedRows(array.values, rule)
    members = [rows.elements.field(at) for at in range(rows.elements.type.num_fields)]
    filled = [member.is_valid().to_pylist() for member in members]
    # A row of the result is a number; its members are row indexes in the columns of the members (-1: NULL).
    made = [[place if valid[place] else -1 for valid in filled] for place in range(len(rows.elements))]
    keys = list(rows.keys)

    def fold(held: ElementIndexes, value: ElementIndexes, op: int) -> ElementIndexes:
        if op == REVERSED:
            held, value = value, held
        if value is None:
            return held
        merged: dict[int, int] = {}
        for number in (*(held or ()), *value):
            if number < len(rows.present) and not rows.counts(number):
                continue
            old = merged.get(keys[number])
            if old is None:
                merged[keys[number]] = number
                continue
            made.append([new if new >= 0 else before for before, new in zip(made[old], made[number])])
            keys.append(keys[number])
            merged[keys[number]] = len(made) - 1
        return list(merged.values())

    folded = fold_groups(items, element_indexes(array), events.groups.count, fold)
    places = np.array(made, dtype=np.int64).reshape(len(made), len(members))
    columns = [member.take(pa.array(at, mask=at < 0)) for member, at in zip(members, places.T)]
    fields = [rows.elements.type.field(at) for at in range(len(members))]
    return lists_of(array.type, folded, pa.StructArray.from_arrays(columns, fields=fields))
