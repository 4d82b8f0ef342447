"""Aggregate functions whose values are serialized sets: rbm32 (Roaring), theta_sketch and hll_sketch (DataSketches)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pyarrow as pa
from pyroaring import BitMap

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.merge.collection_functions import fold_groups
from lakelsm.merge.events import Events, Items, Values
from lakelsm.merge.merge_spec import ColumnRule

SKETCHES = ("theta_sketch", "hll_sketch")
#: Where a theta sketch of more than one hash has its sampling probability, and the one that Java writes.
_PROBABILITY_AT, _PROBABILITY = 12, struct.pack("<f", 1.0)  # Persisted: do not change.

#: A theta sketch of one hash: its length, and the flag by which Java marks it.
_SINGLE_LENGTH, _FLAGS_AT, _SINGLE_ITEM = 16, 5, 0x20  # Persisted: do not change.

Union = Callable[[bytes, bytes], bytes]


def sketches_installed() -> bool:
    """Whether the package ``datasketches`` is there, which theta_sketch and hll_sketch need."""
    return find_spec("datasketches") is not None


def bitmap_union(values: Values, events: Events, rule: ColumnRule) -> pa.Array:
    """The union of 32-bit Roaring bitmaps (portable format)."""
    return _unite(values, events, rule, _unite_bitmaps)


def theta_union(values: Values, events: Events, rule: ColumnRule) -> pa.Array:
    """The union of compact theta sketches."""
    return _unite(values, events, rule, _unite_theta)


def hll_union(values: Values, events: Events, rule: ColumnRule) -> pa.Array:
    """The union of HLL sketches, as HLL_4."""
    return _unite(values, events, rule, _unite_hll)


def _unite(values: Values, events: Events, rule: ColumnRule, union: Union) -> pa.Array:
    items = Items.of(events, values.valid)
    array = values.at(items.positions)

    def fold(held: bytes | None, value: bytes, op: int) -> bytes:
        return value if held is None else union(held, value)

    try:
        return pa.array(fold_groups(items, array.to_pylist(), events.groups.count, fold), array.type)
    except (ValueError, RuntimeError, IndexError) as error:
        raise InvalidInputError(
            f"column '{rule.name}' holds bytes that are no value of aggregate function '{rule.function}': {error}"
        ) from error


def _unite_bitmaps(first: bytes, second: bytes) -> bytes:
    united = BitMap.deserialize(first) | BitMap.deserialize(second)
    united.run_optimize()
    return bytes(united.serialize())


def _unite_theta(first: bytes, second: bytes) -> bytes:
    sketches = _library()
    union = sketches.theta_union()
    for data in (first, second):
        union.update(sketches.compact_theta_sketch.deserialize(data))
    return _as_java(bytes(union.get_result().serialize()))


def _as_java(theta: bytes) -> bytes:
    """The same compact sketch with the bytes that Java sets and C++ leaves out."""
    data = bytearray(theta)
    if data[0] & 0x3F >= 2:
        data[_PROBABILITY_AT : _PROBABILITY_AT + 4] = _PROBABILITY
    elif len(data) == _SINGLE_LENGTH:
        data[_FLAGS_AT] |= _SINGLE_ITEM
    return bytes(data)


def _unite_hll(first: bytes, second: bytes) -> bytes:
    sketches = _library()
    held, value = (sketches.hll_sketch.deserialize(data) for data in (first, second))
    union = sketches.hll_union(value.lg_config_k)
    for sketch in (value, held):
        union.update(sketch)
    return bytes(union.get_result(sketches.tgt_hll_type.HLL_4).serialize_compact())


def _library() -> Any:
    try:
        return import_module("datasketches")
    except ImportError:
        raise UnsupportedFeatureError(
            "aggregate functions 'theta_sketch' and 'hll_sketch' need the package datasketches; install it"
        ) from None
