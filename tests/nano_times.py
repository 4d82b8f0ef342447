"""Times with nanoseconds, converted between Python values and the ten bytes of rows in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lakelsm.format.data_file.column_evolution import cast_column
from lakelsm.types.nano_timestamps import NANO_TIMESTAMP, nano_timestamps


def clock_type(kind: pa.DataType, unit: str = "us") -> pa.DataType:
    """Return the type with Arrow's timestamps instead of the bytes, at any depth."""
    if pa.types.is_struct(kind):
        return pa.struct([_clock_field(kind.field(at), unit) for at in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(_clock_field(kind.key_field, unit), _clock_field(kind.item_field, unit))
    if pa.types.is_list(kind):
        return pa.list_(_clock_field(kind.value_field, unit))
    return pa.timestamp(unit) if kind == NANO_TIMESTAMP else kind


def _clock_field(field: pa.Field, unit: str) -> pa.Field:
    return field.with_type(clock_type(field.type, unit))


def column_of(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return Python values (times as datetime without zone) as a column of rows in memory."""
    return cast_column(pa.array(values, clock_type(kind)), kind)


def python_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return rows as Python values, with times in microseconds."""
    columns = [cast_column(column, clock_type(column.type)) for column in table.columns]
    rows: list[dict[str, Any]] = pa.table(columns, names=table.column_names).to_pylist()
    return rows


def times_of_nanos(nanos: Sequence[int | None]) -> pa.Array:
    """Return times from nanoseconds since the epoch, of any number of digits."""
    found = [0 if value is None else value for value in nanos]
    validity = pa.array([value is not None for value in nanos])
    micros, rest = (pa.array(part, pa.int64()).to_numpy() for part in zip(*(divmod(value, 1000) for value in found)))
    return nano_timestamps(micros, rest, validity)
