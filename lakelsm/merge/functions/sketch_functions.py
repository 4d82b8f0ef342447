"""Aggregate functions whose values are serialized sets: rbm32 and rbm64 (Roaring), theta_sketch and hll_sketch
(Apache DataSketches).

Sketches are united two at a time, in the order of Java: the bytes are those of Java except for one field of an HLL
sketch of registers. This field, a running estimate, depends on the order in which a library visits hashes; a union of
two such sketches invalidates it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pyarrow as pa
from pyroaring import BitMap, BitMap64

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.format.index.roaring64 import decode_roaring64, encode_roaring64
from lakelsm.merge.events import REVERSED, Events, Items, Values
from lakelsm.merge.functions.collection_functions import fold_groups
from lakelsm.merge.merge_spec import ColumnRule

#: Offset of the sampling probability in a theta sketch of more than one hash, and the value that Java writes.
_PROBABILITY_AT, _PROBABILITY = 12, struct.pack("<f", 1.0)  # Persisted: do not change.

#: A theta sketch of one hash: its length, the offset of its flags, and the flag that Java sets.
_SINGLE_LENGTH, _FLAGS_AT, _SINGLE_ITEM = 16, 5, 0x20  # Persisted: do not change.

#: An empty theta sketch: its length, the offset of the seed hash in other sketches, and the value that Java writes.
_EMPTY_LENGTH, _SEED_AT, _NO_SEED = 8, 6, b"\x00\x00"  # Persisted: do not change.

#: (accumulator, value) -> accumulator. An accumulator is bytes until there is a second value; of a sketch it stays
#: bytes.
Union = Callable[[Any, bytes], Any]


def bitmap_union(values: Values, events: Events, rule: ColumnRule) -> pa.Array:
    """Return the union of 32-bit Roaring bitmaps (portable format)."""
    return _unite(values, events, rule, _unite_bitmaps, _bitmap_bytes)


def bitmap64_union(values: Values, events: Events, rule: ColumnRule) -> pa.Array:
    """Return the union of 64-bit Roaring bitmaps (the format of `lakelsm.format.index.roaring64`)."""
    return _unite(values, events, rule, _unite_bitmaps64, encode_roaring64)


def theta_union(values: Values, events: Events, rule: ColumnRule) -> pa.Array:
    """Return the union of compact theta sketches."""
    return _unite(values, events, rule, _unite_theta, bytes, ordered=True)


def hll_union(values: Values, events: Events, rule: ColumnRule) -> pa.Array:
    """Return the union of HLL sketches, as HLL_4."""
    return _unite(values, events, rule, _unite_hll, bytes, ordered=True)


def _unite(
    values: Values,
    events: Events,
    rule: ColumnRule,
    union: Union,
    as_bytes: Callable[[Any], bytes],
    ordered: bool = False,
) -> pa.Array:
    """Unite the values of each key. ``ordered``: an older row of a sequence group is the first operand of the union."""
    items = Items.of(events, values.valid)
    array = values.at(items.positions)

    def fold(accumulator: Any, value: bytes, op: int) -> Any:
        if accumulator is None:
            return value
        return union(value, accumulator) if ordered and op == REVERSED else union(accumulator, value)

    try:
        folded = fold_groups(items, array.to_pylist(), events.groups.count, fold)
        united = [value if value is None or isinstance(value, bytes) else as_bytes(value) for value in folded]
    except (ValueError, RuntimeError, IndexError) as error:
        raise InvalidInputError(
            f"column '{rule.name}': the bytes are not a value of aggregate function '{rule.function}' ({error}). "
            f"Write {_CONTENT[str(rule.function)]}."
        ) from error
    return pa.array(united, array.type)


#: The values of a function, for messages.
_CONTENT = {
    "hll_sketch": "HLL sketches of Apache DataSketches",
    "rbm32": "32-bit Roaring bitmaps in the portable format",
    "rbm64": "64-bit Roaring bitmaps as Java's Roaring64Bitmap serializes them",
    "theta_sketch": "compact theta sketches of Apache DataSketches",
}


def _unite_bitmaps(accumulator: BitMap | bytes, value: bytes) -> BitMap:
    bitmap = BitMap.deserialize(accumulator) if isinstance(accumulator, bytes) else accumulator
    bitmap |= BitMap.deserialize(value)
    return bitmap


def _bitmap_bytes(bitmap: BitMap) -> bytes:
    bitmap.run_optimize()
    return bytes(bitmap.serialize())


def _unite_bitmaps64(accumulator: BitMap64 | bytes, value: bytes) -> BitMap64:
    bitmap = decode_roaring64(accumulator) if isinstance(accumulator, bytes) else accumulator
    bitmap |= decode_roaring64(value)
    return bitmap


def _unite_theta(first: bytes, second: bytes) -> bytes:
    sketches = _library()
    union = sketches.theta_union()
    for data in (first, second):
        union.update(sketches.compact_theta_sketch.deserialize(data))
    return _as_java(bytes(union.get_result().serialize()))


def _as_java(theta: bytes) -> bytes:
    """Return the same compact sketch with the bytes that Java sets and C++ does not."""
    data = bytearray(theta)
    if data[0] & 0x3F >= 2:
        data[_PROBABILITY_AT : _PROBABILITY_AT + 4] = _PROBABILITY
    elif len(data) == _SINGLE_LENGTH:
        data[_FLAGS_AT] |= _SINGLE_ITEM
    elif len(data) == _EMPTY_LENGTH:
        data[_SEED_AT:] = _NO_SEED
    return bytes(data)


def _unite_hll(first: bytes, second: bytes) -> bytes:
    sketches = _library()
    accumulator, value = (sketches.hll_sketch.deserialize(data) for data in (first, second))
    union = sketches.hll_union(value.lg_config_k)
    for sketch in (value, accumulator):
        union.update(sketch)
    return bytes(union.get_result(sketches.tgt_hll_type.HLL_4).serialize_compact())


def _library() -> Any:
    try:
        return import_module("datasketches")
    except ImportError:
        raise UnsupportedFeatureError(
            "aggregate functions 'theta_sketch' and 'hll_sketch' need the package datasketches. Install it."
        ) from None
