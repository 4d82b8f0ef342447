"""Rows for users in Arrow: the table's types, without the ids and the stored forms of the engine."""

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


def output_schema(fields: Sequence[DataField], all_nullable: bool = False, timestamps: str = "ns") -> pa.Schema:
    """Return the schema of rows for users. ``all_nullable``: retractions may have nothing but their key.

    ``timestamps`` is the form of TIMESTAMP(7..9) (`TIMESTAMP_FORMS`).
    """
    return pa.schema(
        [pa.field(f.name, output_arrow(f.type, timestamps), f.type.nullable or all_nullable) for f in fields]
    )


def output_rows(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the columns of ``schema``, taken from ``rows`` by name.

    Raises UnsupportedFeatureError, with the column's name, for a time that its Arrow type cannot hold.
    """
    columns = []
    for field in schema:
        try:
            columns.append(cast_column(rows.column(field.name), field.type))
        except UnsupportedFeatureError as error:
            raise UnsupportedFeatureError(f"column '{field.name}': {error}") from error
    return pa.Table.from_arrays(columns, schema=schema)


def as_pandas(rows: pa.Table) -> pandas.DataFrame:
    """Return rows as a pandas DataFrame. Raises UnsupportedFeatureError for a value that pandas cannot hold."""
    try:
        return rows.to_pandas()
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise UnsupportedFeatureError(
            f"pandas cannot hold the rows: {error}. Read them as Arrow (Table.to_arrow), or leave the column out."
        ) from error


def check_polars() -> None:
    """Raise InvalidInputError if Polars is not installed."""
    try:
        import polars  # noqa: F401
    except ImportError as error:
        raise InvalidInputError("to_polars needs the package polars. Install lakelsm[polars].") from error


def as_polars(rows: pa.Table) -> polars.DataFrame:
    """Return rows as a Polars DataFrame. Raises UnsupportedFeatureError for a type or value that Polars lacks."""
    import polars

    try:
        return polars.DataFrame(rows)
    except polars.exceptions.PolarsError as error:
        raise UnsupportedFeatureError(
            f"Polars cannot hold the rows: {error}. Read them as Arrow (Table.to_arrow), or leave the column out."
        ) from error


__all__ = ["as_pandas", "as_polars", "check_polars", "output_rows", "output_schema"]
