"""Columns of a table as Spark's, and the Arrow form in which Spark takes rows of a Python data source."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DataType, StructType

from lakelsm.errors import InvalidInputError
from lakelsm.schema.identifiers import match
from lakelsm.schema.table_schema import TableSchema
from lakelsm.spark.spark_types import to_struct

_REMEDY = "Load the table without a schema, or register its catalog, again"


def source_struct(schema: TableSchema, columns: Sequence[str] | None) -> StructType:
    """Return the Spark schema of columns of a table, with their names as given (None: all columns).

    All columns are nullable, as in `Table.read`.
    """
    struct = to_struct(schema.fields)
    fields = {field.name: field for field in struct.fields}
    names = schema.field_names if columns is None else columns
    own = [schema.column_name(name) for name in names]
    if len(set(own)) < len(own):
        raise InvalidInputError(f"option 'columns': a column is named twice in {', '.join(names)!r}.")
    found = StructType()
    for name, field in zip(names, (fields[each] for each in own)):
        found = found.add(name, field.dataType, True, field.metadata)
    return found


def check_given(schema: TableSchema, given: StructType) -> None:
    """Check the schema that Spark wants from a reader: columns of the table, with the table's types.

    Raises InvalidInputError for other columns or types: a schema that the user gave, or that the table had before.
    """
    own = {field.name: field.dataType for field in to_struct(schema.fields).fields}
    for field in given.fields:
        name = match(field.name, own)
        if name is None:
            raise InvalidInputError(f"column {field.name!r}: the table has no such column. {_REMEDY}.")
        if _text(field.dataType) != _text(own[name]):
            raise InvalidInputError(
                f"column {field.name!r}: the table has type {_text(own[name])}, and {_text(field.dataType)} is wanted. "
                f"{_REMEDY}, and cast the column."
            )


def _text(kind: DataType) -> str:
    return kind.simpleString()


def arrow_form(struct: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark expects for rows of these columns."""
    # Without the argument, older releases of PySpark write times in UTC.
    named: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
    return to_arrow_schema(struct, **named)
