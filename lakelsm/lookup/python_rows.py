"""One key, and its rows, as Python values: what lookups of many have in Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.local.shown_rows import shown_rows, shown_schema
from lakelsm.types import DataField, to_arrow


def key_row(key: Sequence[Any], fields: Sequence[DataField]) -> pa.Table:
    """A key of these columns, whose values are as `pa.Array.to_pylist` has stored ones, as a row of stored types."""
    values = [pa.array([value], to_arrow(field.type)) for value, field in zip(key, fields, strict=True)]
    return pa.Table.from_arrays(values, [field.name for field in fields])


def python_rows(rows: pa.Table, fields: Sequence[DataField]) -> list[tuple[Any, ...]]:
    """These columns of rows, as Python values as users get them.

    Raises UnsupportedFeatureError for a time that Python does not have.
    """
    if not fields:
        return [()] * len(rows)
    try:
        return list(zip(*(column.to_pylist() for column in shown_rows(rows, shown_schema(fields)).columns)))
    except (ValueError, OverflowError) as error:
        raise no_python_time(error) from error


def no_python_time(error: Exception) -> UnsupportedFeatureError:
    """The error for a row that Python cannot have."""
    return UnsupportedFeatureError(
        f"a row has a time that Python does not have ({error}): look its key up as one of many, in Arrow, or leave the "
        "column out."
    )
