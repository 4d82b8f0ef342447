"""Aggregate functions whose value is a collection: listagg, collect, merge_map, merge_map_with_keytime.

They fold in Python, over the groups with several rows only. A fold never copies elements: an accumulator is a list of
indexes into the flattened column, and the result is built by one `take`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from lakelsm.merge.events import RETRACT, REVERSED, SEED, Events, Items, Values
from lakelsm.merge.functions.value_codes import element_codes
from lakelsm.merge.merge_spec import ColumnRule

#: Indexes into the flattened elements of a column; None is NULL.
ElementIndexes = list[int] | None
#: (accumulator, value, op) -> accumulator; op is ADD, REVERSED or RETRACT.
Fold = Callable[[Any, Any, int], Any]

# Spaces for Python, but not for Java's Character.isWhitespace.
_NO_JAVA_SPACE = frozenset("\x85\xa0\u2007\u202f")


def fold_groups(items: Items, values: Sequence[Any], count: int, fold: Fold) -> list[Any]:
    """Fold the values of each group's items; None for groups without items. A SEED sets the accumulator to its value."""
    result: list[Any] = [None] * count
    ops = items.ops.tolist()
    for group, first, size in zip(items.owners.tolist(), items.firsts.tolist(), items.sizes.tolist()):
        accumulator = None
        for index in range(first, first + size):
            accumulator = values[index] if ops[index] == SEED else fold(accumulator, values[index], ops[index])
        result[group] = accumulator
    return result


def element_indexes(array: pa.ListArray | pa.MapArray) -> list[ElementIndexes]:
    """Return the indexes of each list's or map's elements in the flattened elements."""
    offsets = array.offsets.to_numpy(zero_copy_only=False).tolist()
    valid = array.is_valid().to_pylist()
    return [list(range(offsets[i], offsets[i + 1])) if valid[i] else None for i in range(len(array))]


def lists_of(kind: pa.DataType, lists: Sequence[ElementIndexes], elements: pa.Array) -> pa.Array:
    """Build lists or maps of type ``kind`` from indexes into flattened elements (of a map: its entries)."""
    lengths = np.array([0 if indexes is None else len(indexes) for indexes in lists], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    flat = np.array([index for indexes in lists if indexes for index in indexes], dtype=np.int64)
    valid = pa.array([indexes is not None for indexes in lists], pa.bool_()).buffers()[1]
    children = [elements.take(pa.array(flat))]
    return pa.Array.from_buffers(kind, len(lists), [valid, pa.py_buffer(offsets.tobytes())], children=children)


def list_aggregate(values: Values, events: Events, rule: ColumnRule) -> pa.Array:
    """Join texts by the delimiter, without blank ones; the text of an older row of a sequence group is put first."""
    items = Items.of(events)
    array = values.at(items.positions)
    join = _distinct_join(rule.delimiter) if rule.distinct else _join(rule.delimiter)

    def fold(accumulator: str | None, value: str | None, op: int) -> str | None:
        return join(value, accumulator) if op == REVERSED else join(accumulator, value)

    return pa.array(fold_groups(items, array.to_pylist(), events.groups.count, fold), array.type)


def _blank(text: str | None) -> bool:
    return text is None or not any(not char.isspace() or char in _NO_JAVA_SPACE for char in text)


def _join(delimiter: str) -> Callable[[str | None, str | None], str | None]:
    def join(accumulator: str | None, value: str | None) -> str | None:
        if _blank(value):
            return accumulator
        return value if _blank(accumulator) else f"{accumulator}{delimiter}{value}"

    return join


def _distinct_join(delimiter: str) -> Callable[[str | None, str | None], str | None]:
    def split(text: str) -> list[str]:
        return text.split(delimiter) if delimiter else re.split(r"\s", text)

    def join(accumulator: str | None, value: str | None) -> str | None:
        if value is None or _blank(value):
            return accumulator
        if accumulator is None or _blank(accumulator):
            return value
        known, kept = set(split(accumulator)), [accumulator]
        for token in split(value):
            if not _blank(token) and token not in known:
                known.add(token)
                kept.append(token)
        return delimiter.join(kept)

    return join


def collect(values: Values, events: Events, rule: ColumnRule) -> pa.Array:
    """Collect the elements of all arrays (each once with `distinct`); a retraction removes one of each of its elements.

    An older row of a sequence group comes last, or first with `ignore-retract`: Paimon's wrapper that ignores
    retractions hides that `collect` does not reverse.
    """
    items = Items.of(events)
    array = values.at(items.positions)
    codes = element_codes(array.values)

    def fold(accumulator: ElementIndexes, value: ElementIndexes, op: int) -> ElementIndexes:
        if op == RETRACT:
            return _without(accumulator, value, codes)
        if op == REVERSED and rule.ignore_retract:
            accumulator, value = value, accumulator
        if not rule.distinct:
            return value if accumulator is None else accumulator if value is None else accumulator + value
        if accumulator is None and value is None:
            return None
        every = (accumulator or []) + (value or [])
        first: dict[int, int] = {}
        for index in every:
            first.setdefault(codes[index], index)
        return list(first.values())

    return lists_of(array.type, fold_groups(items, element_indexes(array), events.groups.count, fold), array.values)


def _without(accumulator: ElementIndexes, removed: ElementIndexes, codes: Sequence[int]) -> ElementIndexes:
    if not accumulator or not removed:
        return accumulator
    remaining: dict[int, int] = {}
    for index in removed:
        remaining[codes[index]] = remaining.get(codes[index], 0) + 1
    kept = []
    for index in accumulator:
        if remaining.get(codes[index], 0):
            remaining[codes[index]] -= 1
        else:
            kept.append(index)
    return kept


def _entries(array: pa.MapArray) -> pa.StructArray:
    """Return the entries of all maps as one array of (key, value)."""
    kind = array.type
    return pa.StructArray.from_arrays([array.keys, array.items], fields=[kind.key_field, kind.item_field])


def merge_map(values: Values, events: Events, rule: ColumnRule) -> pa.Array:
    """Merge maps: the later value of a key wins; a retraction removes its keys."""
    items = Items.of(events)
    array = values.at(items.positions)
    codes = element_codes(array.keys)

    def fold(accumulator: ElementIndexes, value: ElementIndexes, op: int) -> ElementIndexes:
        if op == RETRACT:
            if not accumulator or not value:
                return accumulator
            retracted = {codes[index] for index in value}
            return [index for index in accumulator if codes[index] not in retracted]
        if accumulator is None or value is None:
            return value if accumulator is None else accumulator
        older, newer = (value, accumulator) if op == REVERSED else (accumulator, value)
        merged = {codes[index]: index for index in older}
        merged.update((codes[index], index) for index in newer)
        return list(merged.values())

    folded = fold_groups(items, element_indexes(array), events.groups.count, fold)
    return lists_of(array.type, folded, _entries(array))


def merge_map_with_keytime(values: Values, events: Events, rule: ColumnRule) -> pa.Array:
    """Merge maps whose values contain a time: for each key the value with the greatest time wins, the earlier of equals.

    A NULL value removes its key; a value without a time is ignored.
    """
    items = Items.of(events)
    array = values.at(items.positions)
    codes = element_codes(array.keys)
    member = rule.time_member or array.items.type.field(array.items.type.num_fields - 1).name
    times = [None if text is None else text.encode("utf-16-be") for text in array.items.field(member).to_pylist()]
    absent = array.items.is_null().to_pylist()

    def put(accumulator: dict[int, int], index: int) -> None:
        code, time = codes[index], times[index]
        if absent[index]:
            accumulator.pop(code, None)
        elif time is not None:
            old = accumulator.get(code)
            if old is None or absent[old] or times[old] is None or time > times[old]:
                accumulator[code] = index

    def fold(accumulator: ElementIndexes, value: ElementIndexes, op: int) -> ElementIndexes:
        if accumulator is None or value is None:
            return value if accumulator is None else accumulator
        first, second = (value, accumulator) if op == REVERSED else (accumulator, value)
        merged = {codes[index]: index for index in first}
        for index in second:
            put(merged, index)
        return list(merged.values())

    folded = fold_groups(items, element_indexes(array), events.groups.count, fold)
    return lists_of(array.type, folded, _entries(array))
