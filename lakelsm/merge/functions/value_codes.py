"""Codes for the elements of collections of any type: equal elements have equal codes."""

from __future__ import annotations

import math
import struct
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def element_codes(elements: pa.Array) -> list[int]:
    """Return one code for each element. Elements are equal as in Java's ``equals``: NaN equals NaN, -0.0 is not 0.0."""
    kind = elements.type
    if pa.types.is_floating(kind):
        return _codes_of([hashable(value) for value in elements.to_pylist()])
    if pa.types.is_nested(kind):
        return _codes_of([hashable(value) for value in elements.to_pylist()])
    indices = elements.dictionary_encode().indices.fill_null(-1)
    codes: list[int] = indices.to_numpy(zero_copy_only=False).astype(np.int64).tolist()
    return codes


def row_codes(elements: pa.StructArray, members: tuple[str, ...]) -> tuple[list[int], list[bool]]:
    """Return codes of some members of rows as tuples, and whether any of the members is NULL."""
    columns = [elements.field(name) for name in members]
    codes = _codes_of(list(zip(*map(element_codes, columns))))
    nulls = np.logical_or.reduce([column.is_null().to_numpy(zero_copy_only=False) for column in columns])
    return codes, nulls.tolist()


def differs(left: pa.Table, right: pa.Table, columns: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Return which rows of two tables differ in a column; NULL equals NULL, floats are equal as in `element_codes`."""
    different = np.zeros(len(left), dtype=bool)
    for name in columns:
        one, other = left.column(name).combine_chunks(), right.column(name).combine_chunks()
        if pa.types.is_nested(one.type):
            codes = np.array(element_codes(pa.concat_arrays([one, other])), dtype=np.int64)
            different |= codes[: len(one)] != codes[len(one) :]
            continue
        valid, other_valid = (array.is_valid().to_numpy(zero_copy_only=False) for array in (one, other))
        if pa.types.is_floating(one.type):
            # Compare the bits, so that -0.0 is not 0.0; all NaN are made equal first.
            one, other = (pc.if_else(pc.is_nan(array), math.nan, array) for array in (one, other))
            one, other = (array.view(pa.int64() if one.type.bit_width == 64 else pa.int32()) for array in (one, other))
        unequal = pc.not_equal(one, other).fill_null(False).to_numpy(zero_copy_only=False)
        different |= unequal | (valid != other_valid)
    return different


def hashable(value: Any) -> Hashable:
    """Convert a value of pyarrow's ``to_pylist`` to a key of a dict. Maps compare as sets of pairs."""
    if isinstance(value, dict):
        return tuple(hashable(member) for member in value.values())
    if isinstance(value, list):
        if value and isinstance(value[0], tuple):
            return frozenset((hashable(key), hashable(entry)) for key, entry in value)
        return tuple(map(hashable, value))
    if isinstance(value, float):
        return b"NaN" if math.isnan(value) else struct.pack("<d", value)
    return value if isinstance(value, Hashable) else repr(value)


def _codes_of(values: list[Any]) -> list[int]:
    codes: dict[Hashable, int] = {}
    return [codes.setdefault(value, len(codes)) for value in values]
