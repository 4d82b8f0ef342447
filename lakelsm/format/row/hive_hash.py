"""Hive's hash of bucket keys, for tables with ``bucket-function.type`` = hive.

Sources: upstream `paimon-core/.../bucket/HiveBucketFunction.java` and `HiveHasher.java`.
Arithmetic is modulo 2^32.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.format.row.binary_row_slots import (
    TIMESTAMP_ROOTS,
    Words,
    byte_layout,
    decimal_words,
    normalise,
    null_mask,
    primitive_values,
    require_row_type,
)
from lakelsm.types import BINARY_ROOTS, STRING_ROOTS, DataType

UInts = npt.NDArray[np.uint32]

_FACTOR = np.uint32(31)  # Persisted: do not change
_LIMB = np.uint64(0xFFFFFFFF)


def hive_hashes(arrays: Sequence[pa.Array], types: Sequence[DataType]) -> UInts:
    """Return 31 * hash + field hash over the fields of each row; a null field hashes to 0.

    Raises UnsupportedFeatureError for timestamps and nested types, for which Paimon has no such hash.
    """
    total = np.zeros(len(arrays[0]), dtype=np.uint32)
    for array, data_type in zip(arrays, types, strict=True):
        total = total * _FACTOR + _field_hashes(array, data_type)
    return total


def _field_hashes(array: pa.Array, data_type: DataType) -> UInts:
    atomic = require_row_type(data_type)
    if atomic.root in TIMESTAMP_ROOTS:
        raise UnsupportedFeatureError(
            f"option 'bucket-function.type' = 'hive': a bucket key of type {atomic.sql()} is not supported."
        )
    plain = normalise(array, atomic)
    nulls = null_mask(plain)
    if atomic.root in STRING_ROOTS or atomic.root in BINARY_ROOTS:
        hashes = _bytes_hashes(plain)
    elif atomic.root == "DECIMAL":
        hashes = _decimal_hashes(plain, atomic.scale or 0)
    elif atomic.root in ("FLOAT", "DOUBLE"):
        hashes = _float_hashes(primitive_values(plain))
    elif atomic.root == "BIGINT":
        hashes = _fold(primitive_values(plain).view(np.uint64))
    else:
        if atomic.root == "BOOLEAN":
            plain = plain.cast(pa.int8())
        hashes = primitive_values(plain).astype(np.int32).view(np.uint32)
    if nulls is not None:
        hashes[nulls] = 0
    return hashes


def _fold(longs: Words) -> UInts:
    folded: UInts = (longs ^ (longs >> np.uint64(32))).astype(np.uint32)
    return folded


def _float_hashes(values: npt.NDArray[np.floating]) -> UInts:
    """Return the hash of Java's canonical bits: both zeros are 0, and every NaN has an empty payload."""
    canonical = np.where(values == 0, values.dtype.type(0), values)
    canonical = np.where(np.isnan(values), values.dtype.type(np.nan), canonical)
    if values.dtype == np.float32:
        bits: UInts = canonical.view(np.uint32)
        return bits
    return _fold(canonical.view(np.uint64))


def _bytes_hashes(array: pa.Array) -> UInts:
    """Return the 31-polynomial of the signed bytes: terms weighted by their distance from the end, then summed."""
    offsets, data = byte_layout(array)
    base = int(offsets[0])
    starts, ends = offsets[:-1] - base, offsets[1:] - base
    signed = data[base : int(offsets[-1])].view(np.int8).astype(np.int32).view(np.uint32)
    lengths = ends - starts
    powers = np.ones(int(lengths.max(initial=0)) + 1, dtype=np.uint32)
    powers[1:] = _FACTOR
    np.multiply.accumulate(powers, out=powers)
    distance = np.repeat(ends, lengths) - 1 - np.arange(len(signed), dtype=np.int64)
    sums = np.zeros(len(signed) + 1, dtype=np.uint32)
    np.cumsum(signed * powers[distance], out=sums[1:], dtype=np.uint32)
    hashes: UInts = sums[ends] - sums[starts]
    return hashes


def _decimal_hashes(array: pa.Array, scale: int) -> UInts:
    """Return Java's BigDecimal hash of the value without trailing zeros of its fraction."""
    low, high = decimal_words(array)
    negative = high.view(np.int64) < 0
    low = np.where(negative, ~low + np.uint64(1), low)
    high = np.where(negative, ~high + (low == 0), high)
    limbs = [high >> np.uint64(32), high & _LIMB, low >> np.uint64(32), low & _LIMB]
    scales = np.full(len(low), scale, dtype=np.uint32)
    for _ in range(scale):
        quotients, rest = _divide_by_ten(limbs)
        strip = (rest == 0) & (scales > 0)
        if not strip.any():
            break
        limbs = [np.where(strip, new, old) for new, old in zip(quotients, limbs, strict=True)]
        scales -= strip
    zero = (limbs[0] | limbs[1] | limbs[2] | limbs[3]) == 0
    digest = np.zeros(len(low), dtype=np.uint32)
    for limb in limbs:
        digest = digest * _FACTOR + limb.astype(np.uint32)
    digest = np.where(negative, np.uint32(0) - digest, digest)
    hashes: UInts = np.where(zero, np.uint32(0), digest * _FACTOR + scales)
    return hashes


def _divide_by_ten(limbs: Sequence[Words]) -> tuple[list[Words], Words]:
    rest = np.zeros(len(limbs[0]), dtype=np.uint64)
    quotients = []
    for limb in limbs:
        value = (rest << np.uint64(32)) | limb
        quotient = value // np.uint64(10)
        quotients.append(quotient)
        rest = value - quotient * np.uint64(10)
    return quotients, rest
