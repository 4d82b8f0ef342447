"""Aggregate functions whose value is a collection: listagg, collect, merge_map, merge_map_with_keytime.

They fold in Python, over the groups with several rows only. Elements are never copied while folding: an accumulator is a
list of indexes in the flattened column, and the result one take.
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

#: ElementIndexes in the flattened elements of a column; None is NULL.
ElementIndexes = list[int] | None
#: (accumulator, value, op) -> accumulator; the op is ADD, REVERSED or RETRACT.
Fold = Callable[[Any, Any, int], Any]

# Space to Python, but not to Java's Character.isWhitespace.
_NO_JAVA_SPACE = frozenset("\x85\xa0\u2007\u202f")


def fold_groups(items: Items, values: Sequence[Any], count: int, fold: Fold) -> list[Any]:
    """Fold the values of each group's items; None for groups without items. A SEED starts with its value."""
    result: list[Any] = [None] * count
    ops = items.ops.tolist()
    for group, first, size in zip(items.owners.tolist(), items.firsts.tolist(), items.sizes.tolist()):
        held = None
        for at in range(first, first + size):
            held = values[at] if ops[at] == SEED else fold(held, values[at], ops[at])
        result[group] = held
    return result


def element_indexes(array: pa.ListArray | pa.MapArray) -> list[ElementIndexes]:
    """For each list or map the indexes of its elements in the flattened ones."""
    offsets = array.offsets.to_numpy(zero_copy_only=False).tolist()
    valid = array.is_valid().to_pylist()
    return [list(range(offsets[i], offsets[i + 1])) if valid[i] else None for i in range(len(array))]


def lists_of(kind: pa.DataType, places: Sequence[ElementIndexes], elements: pa.Array) -> pa.Array:
    """Build lists or maps of type ``kind`` from indexes in flattened elements (of a map: its entries)."""
    lengths = np.array([0 if held is None else len(held) for held in places], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    flat = np.array([place for held in places if held for place in held], dtype=np.int64)
    valid = pa.array([held is not None for held in places], pa.bool_()).buffers()[1]
    children = [elements.take(pa.array(flat))]
    return pa.Array.from_buffers(kind, len(places), [valid, pa.py_buffer(offsets.tobytes())], children=children)


def list_aggregate(values: Values, events: Events, rule: ColumnRule) -> pa.Array:
    """Texts joined by the delimiter, blank ones left out; an older row of a sequence group goes in front."""
    items = Items.of(events)
    array = values.at(items.positions)
    join = _distinct_join(rule.delimiter) if rule.distinct else _join(rule.delimiter)

    def fold(held: str | None, value: str | None, op: int) -> str | None:
        return join(value, held) if op == REVERSED else join(held, value)

    return pa.array(fold_groups(items, array.to_pylist(), events.groups.count, fold), array.type)


def _blank(text: str | None) -> bool:
    return text is None or not any(not char.isspace() or char in _NO_JAVA_SPACE for char in text)


def _join(delimiter: str) -> Callable[[str | None, str | None], str | None]:
    def join(held: str | None, value: str | None) -> str | None:
        if _blank(value):
            return held
        return value if _blank(held) else f"{held}{delimiter}{value}"

    return join


def _distinct_join(delimiter: str) -> Callable[[str | None, str | None], str | None]:
    def split(text: str) -> list[str]:
        return text.split(delimiter) if delimiter else re.split(r"\s", text)

    def join(held: str | None, value: str | None) -> str | None:
        if value is None or _blank(value):
            return held
        if held is None or _blank(held):
            return value
        known, kept = set(split(held)), [held]
        for token in split(value):
            if not _blank(token) and token not in known:
                known.add(token)
                kept.append(token)
        return delimiter.join(kept)

    return join


def collect(values: Values, events: Events, rule: ColumnRule) -> pa.Array:
    """All elements of all arrays (each once with `distinct`); a retraction takes one of each of its elements away.

    An older row of a sequence group comes last, but first with `ignore-retract`: Paimon's wrapper that ignores
    retractions hides that `collect` reverses nothing.
    """
    items = Items.of(events)
    array = values.at(items.positions)
    codes = element_codes(array.values)

    def fold(held: ElementIndexes, value: ElementIndexes, op: int) -> ElementIndexes:
        if op == RETRACT:
            return _without(held, value, codes)
        if op == REVERSED and rule.ignore_retract:
            held, value = value, held
        if not rule.distinct:
            return value if held is None else held if value is None else held + value
        if held is None and value is None:
            return None
        every = (held or []) + (value or [])
        first: dict[int, int] = {}
        for place in every:
            first.setdefault(codes[place], place)
        return list(first.values())

    return lists_of(array.type, fold_groups(items, element_indexes(array), events.groups.count, fold), array.values)


def _without(held: ElementIndexes, gone: ElementIndexes, codes: Sequence[int]) -> ElementIndexes:
    if not held or not gone:
        return held
    left: dict[int, int] = {}
    for place in gone:
        left[codes[place]] = left.get(codes[place], 0) + 1
    kept = []
    for place in held:
        if left.get(codes[place], 0):
            left[codes[place]] -= 1
        else:
            kept.append(place)
    return kept


def _entries(array: pa.MapArray) -> pa.StructArray:
    """The entries of all maps as one array of (key, value)."""
    kind = array.type
    return pa.StructArray.from_arrays([array.keys, array.items], fields=[kind.key_field, kind.item_field])


def merge_map(values: Values, events: Events, rule: ColumnRule) -> pa.Array:
    """Maps put into one another: the later value of a key wins; a retraction takes its keys away."""
    items = Items.of(events)
    array = values.at(items.positions)
    codes = element_codes(array.keys)

    def fold(held: ElementIndexes, value: ElementIndexes, op: int) -> ElementIndexes:
        if op == RETRACT:
            if not held or not value:
                return held
            gone = {codes[place] for place in value}
            return [place for place in held if codes[place] not in gone]
        if held is None or value is None:
            return value if held is None else held
        older, newer = (value, held) if op == REVERSED else (held, value)
        merged = {codes[place]: place for place in older}
        merged.update((codes[place], place) for place in newer)
        return list(merged.values())

    folded = fold_groups(items, element_indexes(array), events.groups.count, fold)
    return lists_of(array.type, folded, _entries(array))


def merge_map_with_keytime(values: Values, events: Events, rule: ColumnRule) -> pa.Array:
    """Maps whose values carry a time: of each key the value of the greatest time wins, the earlier one of equals.

    A NULL value removes its key; a value without a time is passed over.
    """
    items = Items.of(events)
    array = values.at(items.positions)
    codes = element_codes(array.keys)
    member = rule.time_member or array.items.type.field(array.items.type.num_fields - 1).name
    times = [None if text is None else text.encode("utf-16-be") for text in array.items.field(member).to_pylist()]
    absent = array.items.is_null().to_pylist()

    def put(held: dict[int, int], place: int) -> None:
        code, time = codes[place], times[place]
        if absent[place]:
            held.pop(code, None)
        elif time is not None:
            old = held.get(code)
            if old is None or absent[old] or times[old] is None or time > times[old]:
                held[code] = place

    def fold(held: ElementIndexes, value: ElementIndexes, op: int) -> ElementIndexes:
        if held is None or value is None:
            return value if held is None else held
        first, second = (value, held) if op == REVERSED else (held, value)
        merged = {codes[place]: place for place in first}
        for place in second:
            put(merged, place)
        return list(merged.values())

    folded = fold_groups(items, element_indexes(array), events.groups.count, fold)
    return lists_of(array.type, folded, _entries(array))
