"""Rows as users get them in Arrow: the table's types, without the ids and forms that the engine works with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.format.data_file.column_evolution import cast_column
from lakelsm.types import DataField, output_arrow

if TYPE_CHECKING:
    import pandas
    import polars


def shown_schema(fields: Sequence[DataField], all_nullable: bool = False, timestamps: str = "ns") -> pa.Schema:
    """The schema of rows with these columns; ``all_nullable``: retractions may have their key alone.

    TIMESTAMP(7..9) have the form ``timestamps`` (`TIMESTAMP_FORMS`).
    """
    return pa.schema(
        [pa.field(f.name, output_arrow(f.type, timestamps), f.type.nullable or all_nullable) for f in fields]
    )


def shown_rows(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of ``schema``, taken from ``rows`` by name.

    Raises UnsupportedFeatureError for a time that its type in Arrow cannot hold, and names the column.
    """
    columns = []
    for field in schema:
        try:
            columns.append(cast_column(rows.column(field.name), field.type))
        except UnsupportedFeatureError as error:
            raise UnsupportedFeatureError(f"column {field.name!r}: {error}") from error
    return pa.Table.from_arrays(columns, schema=schema)


def as_pandas(rows: pa.Table) -> pandas.DataFrame:
    """Rows as a pandas DataFrame. Raises UnsupportedFeatureError for a value that pandas cannot hold."""
    try:
        return rows.to_pandas()
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise UnsupportedFeatureError(
            f"pandas cannot hold the rows: {error}. Take them as Arrow (Table.to_arrow), or leave the column out."
        ) from error


def check_polars() -> None:
    """Raise InvalidInputError where Polars is not installed."""
    try:
        import polars  # noqa: F401
    except ImportError as error:
        raise InvalidInputError("to_polars needs the package polars: install lakelsm[polars].") from error


def as_polars(rows: pa.Table) -> polars.DataFrame:
    """Rows as a Polars DataFrame. Raises UnsupportedFeatureError for a type or value that Polars lacks."""
    import polars

    try:
        return polars.DataFrame(rows)
    except Exception as error:
        raise UnsupportedFeatureError(
            f"Polars cannot hold the rows: {error}. Take them as Arrow (Table.to_arrow), or leave the column out."
        ) from error


__all__ = ["as_pandas", "as_polars", "check_polars", "shown_rows", "shown_schema"]
