"""INT96 timestamps in Parquet files (docs/format.md 6.3): nanoseconds of the day and a Julian day, for millennia.

Arrow's clocks lose some of these values (64-bit nanoseconds overflow outside 1677 to 2262), so the values are read and
written as their twelve bytes (see `parquet_footer`). Java Paimon writes times before 1970 with negative nanoseconds of
the day, which Spark truncates towards zero. lakelsm never writes negative ones, and records this in each file's metadata.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakelsm.types.nano_timestamps import (
    NANO_TIMESTAMP,
    Longs,
    micros_and_nanos,
    nano_timestamps,
    timestamp_out_of_range,
    validity_buffer,
)

INT96 = pa.binary(12)

#: Metadata key and value of files whose INT96 times Spark reads correctly. Persisted: do not change
FLOORED_TIMES = (b"lakelsm.int96", b"floored")

_LAYOUT = np.dtype([("nanos", "<i8"), ("day", "<i4")])
_JULIAN_EPOCH = 2_440_588
_MICROS_PER_DAY = 86_400_000_000
#: Maximum number of days whose microseconds fit 64 bits with any nanoseconds of the day added.
_MAX_DAYS = ((1 << 63) - (1 << 54)) // _MICROS_PER_DAY


def have_int96(schema: pq.ParquetSchema, names: Collection[str]) -> bool:
    """Return whether one of the top-level columns of a file is INT96 or contains INT96 values."""
    return any(leaf.physical_type == "INT96" for leaf in leaves_of(schema, names))


def leaves_of(schema: pq.ParquetSchema, names: Collection[str]) -> list[pq.ColumnSchema]:
    """Return the leaves of top-level columns. Column `a` also gets the leaf of a column `a.b`, whose path is equal."""
    starts = tuple(f"{name}." for name in names)
    leaves = (schema.column(at) for at in range(len(schema)))
    return [leaf for leaf in leaves if f"{leaf.path}.".startswith(starts)]


def from_int96(values: pa.Array) -> pa.Array:
    """Convert INT96 values to `NANO_TIMESTAMP`.

    Raises UnsupportedFeatureError for a time outside the range of 64-bit microseconds.
    """
    days, nanos = _days_and_nanos(values)
    if len(days) and max(int(days.max()), -int(days.min())) > _MAX_DAYS:
        raise timestamp_out_of_range()
    micros = nanos // 1_000
    validity = values.is_valid() if values.null_count else None
    return nano_timestamps(days * _MICROS_PER_DAY + micros, nanos - micros * 1_000, validity)


def to_int96(times: pa.Array) -> pa.Array:
    """Convert `NANO_TIMESTAMP` to INT96. Every time has an INT96 value."""
    micros, nanos = micros_and_nanos(times)
    days = micros // _MICROS_PER_DAY
    values = np.empty(len(times), dtype=_LAYOUT)
    values["nanos"] = (micros - days * _MICROS_PER_DAY) * 1_000 + nanos
    values["day"] = days + _JULIAN_EPOCH
    buffer = validity_buffer(times.is_valid()) if times.null_count else None
    return pa.Array.from_buffers(INT96, len(times), [buffer, pa.py_buffer(values)])


def stored_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in a file: INT96 instead of `NANO_TIMESTAMP`, at any depth."""
    if pa.types.is_struct(kind):
        return pa.struct([stored_field(kind.field(at)) for at in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(stored_field(kind.key_field), stored_field(kind.item_field))
    if pa.types.is_list(kind):
        return pa.list_(stored_field(kind.value_field))
    return INT96 if kind == NANO_TIMESTAMP else kind


def stored_field(field: pa.Field) -> pa.Field:
    """Return the field with its `stored_type`."""
    return field.with_type(stored_type(field.type))


def _days_and_nanos(values: pa.Array) -> tuple[Longs, Longs]:
    """Return days since the epoch and nanoseconds of the day as stored; 0 for NULL."""
    buffer = values.buffers()[1]
    if buffer is None:
        return np.zeros(len(values), dtype=np.int64), np.zeros(len(values), dtype=np.int64)
    raw = np.frombuffer(buffer, _LAYOUT, len(values), values.offset * _LAYOUT.itemsize)
    parts: list[Any] = [raw["day"].astype(np.int64) - _JULIAN_EPOCH, raw["nanos"].astype(np.int64)]
    if values.null_count:
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        parts = [np.where(valid, part, 0) for part in parts]
    return parts[0], parts[1]
