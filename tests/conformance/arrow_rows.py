"""Rows of cases in Arrow, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lakelsm.types import DataField
from tests.conformance.table_case import KindedRow
from tests.conformance.values import arrow_type


def to_table(fields: Sequence[DataField], kind_column: str, rows: Sequence[KindedRow]) -> pa.Table:
    """Return the rows in their order; the last column has their kinds."""
    arrow_fields = [pa.field(field.name, arrow_type(field.type)) for field in fields]
    schema = pa.schema([*arrow_fields, pa.field(kind_column, pa.string())])
    columns = [[row.values[i] for row in rows] for i in range(len(fields))] + [[row.kind for row in rows]]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """Return all rows as tuples of Python values."""
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
