"""Arrow values of Python values without pandas: `pa.array` and `pa.scalar` import it (0.15 s) for pandas' own values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone
from itertools import accumulate, chain
from typing import Any

import numpy as np
import pyarrow as pa

_UNITS = {"ms": timedelta(milliseconds=1), "us": timedelta(microseconds=1)}
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def array_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return an Arrow array of type ``kind``. None becomes NULL.

    Booleans, texts, bytes, integers, doubles, times (datetimes, or integers in the type's unit) and lists of these are
    converted without pandas; `pa.array` converts other types. Raises OverflowError for an integer outside the type's
    range.
    """
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        texts = [b"" if value is None else value.encode() for value in values]
        return _of_buffers(values, kind, _offsets(texts, kind), pa.py_buffer(b"".join(texts)))
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        texts = [b"" if value is None else value for value in values]
        return _of_buffers(values, kind, _offsets(texts, kind), pa.py_buffer(b"".join(texts)))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lists = [() if value is None else value for value in values]
        child = array_of(list(chain.from_iterable(lists)), kind.value_type)
        return _of_buffers(values, kind, _offsets(lists, kind), child=child)
    if pa.types.is_boolean(kind):
        return _of_buffers(values, kind, _bits(values))
    is_time = pa.types.is_timestamp(kind) and kind.unit in _UNITS
    if is_time:
        values = [_ticks(value, kind) if isinstance(value, datetime) else value for value in values]
    if not (is_time or pa.types.is_integer(kind) or pa.types.is_float64(kind)):
        return pa.array(values, kind)
    code = "f" if pa.types.is_float64(kind) else "u" if pa.types.is_unsigned_integer(kind) else "i"
    numbers = np.array([0 if value is None else value for value in values], f"{code}{kind.bit_width // 8}")
    return _of_buffers(values, kind, pa.py_buffer(numbers))


def scalar_of(value: Any, kind: pa.DataType) -> pa.Scalar:
    """Return an Arrow scalar of type ``kind``, as `array_of`."""
    return array_of([value], kind)[0]


def _of_buffers(values: Sequence[Any], kind: pa.DataType, *buffers: pa.Buffer, child: pa.Array | None = None) -> pa.Array:
    valid = np.array([value is not None for value in values], bool)
    validity = None if valid.all() else _bits(valid)
    return pa.Array.from_buffers(kind, len(values), [validity, *buffers], children=[] if child is None else [child])


def _bits(values: Iterable[Any]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(np.fromiter(map(bool, values), bool), bitorder="little"))


def _offsets(values: Iterable[Sequence[Any]], kind: pa.DataType) -> pa.Buffer:
    is_large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind) or pa.types.is_large_list(kind)
    return pa.py_buffer(np.array([0, *accumulate(map(len, values))], np.int64 if is_large else np.int32))


def _ticks(time: datetime, kind: pa.DataType) -> int:
    """Return a time in the type's unit since the epoch in UTC. A time without a zone counts as UTC."""
    aware = time if time.tzinfo else time.replace(tzinfo=timezone.utc)
    return (aware - _EPOCH) // _UNITS[kind.unit]
