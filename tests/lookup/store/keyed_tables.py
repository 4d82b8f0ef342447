"""Keys of every type and rows of them, with a dict that says which rows have which key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from lakelsm.merge.key_order import order_keys
from lakelsm.types import DataField, parse_type, to_arrow
from lakelsm.types.nano_timestamps import nano_timestamps

_FEW_TEXTS = st.text("abé", max_size=12)
_TIMES = st.integers(-(10**6), 10**6).map(lambda seconds: datetime(1970, 1, 1) + timedelta(seconds=seconds))

#: Values of each type, few enough to be repeated.
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "TINYINT": st.integers(-4, 4),
    "SMALLINT": st.integers(-300, 300),
    "INT": st.integers(-(2**31), 2**31 - 1) | st.integers(-3, 3),
    "BIGINT": st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3),
    "BOOLEAN": st.booleans(),
    "FLOAT": st.sampled_from([0.0, -0.0, 1.5, -2.25, float("nan"), float("inf")]),
    "DOUBLE": st.sampled_from([0.0, -0.0, 1.5, -2.25, float("nan"), float("-inf")]),
    "STRING": _FEW_TEXTS,
    "BYTES": st.binary(max_size=9),
    "DATE": st.integers(-400, 400).map(lambda days: date(1970, 1, 1) + timedelta(days=days)),
    "TIME(3)": st.integers(0, 86_399).map(lambda seconds: (datetime(2000, 1, 1) + timedelta(seconds=seconds)).time()),
    "DECIMAL(10, 2)": st.integers(-(10**9), 10**9).map(lambda cents: Decimal(cents) / 100),
    "DECIMAL(38, 0)": st.integers(-(10**30), 10**30).map(Decimal) | st.integers(-2, 2).map(Decimal),
    "TIMESTAMP(3)": _TIMES,
    "TIMESTAMP(6)": _TIMES,
    "TIMESTAMP(9)": st.integers(-(10**5), 10**5),
}


def fields_of(types: Sequence[str]) -> tuple[DataField, ...]:
    """Return the columns k0, k1 ... of a key."""
    return tuple(DataField(at, f"k{at}", parse_type(each)) for at, each in enumerate(types))


def column_of(field: DataField, values: Sequence[Any]) -> pa.Array:
    """Return values in their stored type; TIMESTAMP(9) has microseconds, which are valid nanoseconds."""
    if field.type.sql().startswith("TIMESTAMP(9)"):
        valid = pa.array([value is not None for value in values], pa.bool_())
        numbers = np.array([value or 0 for value in values], dtype=np.int64)
        return nano_timestamps(numbers, np.abs(numbers) % 1000, valid)
    return pa.array(values, to_arrow(field.type))


def keys_table(fields: Sequence[DataField], keys: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Return keys as a table for searches."""
    return pa.table({field.name: column_of(field, [key[at] for key in keys]) for at, field in enumerate(fields)})


def expected_rows(stored: pa.Table, searched: pa.Table) -> list[tuple[int, int]]:
    """Return pairs of a key's index and a row index, found with the engine's order of keys only."""
    if not len(searched) or not len(stored):
        return []
    both = pa.concat_tables([stored.select(searched.column_names), searched])
    ordered = order_keys(both.columns).tolist()
    has_null = [any(value is None for value in row) for row in zip(*(column.to_pylist() for column in both.columns))]
    rows: dict[Any, list[int]] = defaultdict(list)
    for row in range(len(stored)):
        if not has_null[row]:
            rows[ordered[row]].append(row)
    positions = range(len(searched))
    return [
        (at, row) for at in positions if not has_null[len(stored) + at] for row in rows.get(ordered[len(stored) + at], [])
    ]
