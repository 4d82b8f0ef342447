"""TIMESTAMP(7..9) in memory: microseconds and nanoseconds in ten bytes, whose order is the order of the times.

Arrow's nanoseconds have 64 bits and cover only the years 1677 to 2262; Paimon's times cover millennia. Eight bytes are
the microseconds since the epoch (big-endian, sign bit flipped), two bytes the nanoseconds within the microsecond
(0..999). Equal times have equal bytes, so merging, sorting and comparing need no special case. In files they are INT96.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakelsm.errors import UnsupportedFeatureError

NANO_TIMESTAMP = pa.binary(10)

_LAYOUT = np.dtype([("micros", ">u8"), ("nanos", ">u2")])
_SIGN = np.uint64(1 << 63)
_NANOS_PER_UNIT = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_MICROS_PER_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1}

#: The range of microseconds to which any nanoseconds can be added without an overflow of 64 bits.
_MAX_MICROS = (1 << 63) // 1_000 - 2

Longs = npt.NDArray[np.int64]


def nano_timestamps(micros: Longs, nanos: npt.NDArray[Any], validity: pa.Array | None = None) -> pa.Array:
    """Return times from microseconds since the epoch and nanoseconds within the microsecond.

    ``validity`` is a Boolean array, False where the time is NULL. None means that no time is NULL.
    """
    values = np.empty(len(micros), dtype=_LAYOUT)
    values["micros"] = micros.view(np.uint64) ^ _SIGN
    values["nanos"] = nanos
    buffer = None if validity is None else validity_buffer(validity)
    return pa.Array.from_buffers(NANO_TIMESTAMP, len(values), [buffer, pa.py_buffer(values)])


def micros_and_nanos(times: pa.Array) -> tuple[Longs, Longs]:
    """Return the microseconds since the epoch (floored) and the nanoseconds within each; those of NULL are arbitrary."""
    buffer = times.buffers()[1]
    if buffer is None:
        return np.zeros(len(times), dtype=np.int64), np.zeros(len(times), dtype=np.int64)
    values = np.frombuffer(buffer, _LAYOUT, len(times), times.offset * _LAYOUT.itemsize)
    return (values["micros"].astype(np.uint64) ^ _SIGN).view(np.int64), values["nanos"].astype(np.int64)


def with_nanoseconds(times: pa.Array) -> pa.Array:
    """Convert Arrow timestamps of any unit. Raises UnsupportedFeatureError for times beyond 64-bit microseconds."""
    validity = times.is_valid() if times.null_count else None
    raw = pc.fill_null(times.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    if times.type.unit == "ns":
        micros = raw // 1_000
        return nano_timestamps(micros, raw - micros * 1_000, validity)
    factor = _MICROS_PER_UNIT[times.type.unit]
    bound = (1 << 63) // factor
    if len(raw) and (int(raw.max()) >= bound or int(raw.min()) < -bound):
        raise timestamp_out_of_range()
    return nano_timestamps(raw * factor, np.zeros(len(raw), dtype=np.int64), validity)


def without_nanoseconds(times: pa.Array, target: pa.DataType) -> pa.Array:
    """Convert `NANO_TIMESTAMP` to Arrow timestamps of nanoseconds, or of a coarser unit (floored).

    Raises UnsupportedFeatureError for a time outside the range of Arrow's nanoseconds.
    """
    micros, nanos = micros_and_nanos(times)
    fine = target.unit == "ns"
    values = _nanoseconds(micros, nanos, times) if fine else micros // _MICROS_PER_UNIT[target.unit]
    buffer = validity_buffer(times.is_valid()) if times.null_count else None
    return pa.Array.from_buffers(target, len(values), [buffer, pa.py_buffer(values)])


def timestamp_texts(times: pa.Array) -> pa.Array:
    """Return `NANO_TIMESTAMP` values as text, '0001-01-01 00:00:00.000000000': ISO 8601 with a space, nine digits."""
    if not len(times):
        return pa.array([], pa.string())
    micros, nanos = micros_and_nanos(times)
    is_null = times.is_null().to_numpy(zero_copy_only=False)
    clock = np.datetime_as_string(np.where(is_null, 0, micros).astype("datetime64[us]"), unit="us")
    digits = pc.utf8_lpad(pa.array(np.where(is_null, 0, nanos)).cast(pa.string()), 3, "0")
    texts = pc.binary_join_element_wise(pc.replace_substring(pa.array(clock, pa.string()), "T", " "), digits, "")
    return pc.if_else(pa.array(is_null), pa.scalar(None, pa.string()), texts)


def _nanoseconds(micros: Longs, nanos: Longs, times: pa.Array) -> Longs:
    if times.null_count:
        micros = np.where(times.is_valid().to_numpy(zero_copy_only=False), micros, 0)
    if len(micros) and (int(micros.max()) > _MAX_MICROS or int(micros.min()) < -_MAX_MICROS):
        raise UnsupportedFeatureError(
            "a timestamp is outside the years 1678 to 2261, the range of Arrow's nanoseconds. Leave the column out, "
            "or pass timestamps='us' (microseconds) or timestamps='text' to a call that returns Arrow."
        )
    return micros * 1_000 + nanos


def nanos_of(time: pa.Scalar) -> int:
    """Return the nanoseconds since the epoch of a time of any Arrow time type."""
    if time.type != NANO_TIMESTAMP:
        return int(time.value) * _NANOS_PER_UNIT[time.type.unit]
    micros, nanos = micros_and_nanos(pa.repeat(time, 1))
    return int(micros[0]) * 1_000 + int(nanos[0])


def timestamp_out_of_range() -> UnsupportedFeatureError:
    """Return the error for a time outside the range of 64-bit microseconds."""
    return UnsupportedFeatureError("a timestamp is outside the years -290307 to 294246, the range of lakelsm and Spark")


def validity_buffer(validity: pa.Array) -> pa.Buffer:
    """Return the validity bits of a Boolean array without nulls, from bit 0."""
    flags = validity.to_numpy(zero_copy_only=False)
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


__all__ = [
    "NANO_TIMESTAMP",
    "micros_and_nanos",
    "nano_timestamps",
    "nanos_of",
    "timestamp_out_of_range",
    "timestamp_texts",
    "validity_buffer",
    "with_nanoseconds",
    "without_nanoseconds",
]
