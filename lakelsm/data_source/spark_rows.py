"""Columns of a table as Spark's, and the Arrow form in which Spark takes rows of a Python data source."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

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


def check_given(schema: TableSchema, given: StructType, columns: Sequence[str] | None) -> None:
    """Check the schema that Spark wants from a reader: columns of the table, with the table's types.

    Raises InvalidInputError for other columns or types, and for NOT NULL where the table can have NULL, which Spark would
    read as another value: a schema that the user gave, or that the table had before. ``columns`` are those of the option.
    """
    if columns is not None and list(columns) != given.names:
        raise InvalidInputError(
            f"option 'columns': {', '.join(columns)!r} are not the columns of the schema that is given or registered. "
            "Leave the option out."
        )
    own = {field.name: field for field in to_struct(schema.fields).fields}
    for field in given.fields:
        name = match(field.name, own)
        if name is None:
            raise InvalidInputError(f"column {field.name!r}: the table has no such column. {_REMEDY}.")
        wanted, kind = _text(field.dataType), _text(own[name].dataType)
        if wanted != kind:
            raise InvalidInputError(
                f"column {field.name!r}: the table has type {kind}, and {wanted} is wanted. {_REMEDY}, and cast the "
                "column."
            )
        if own[name].nullable > field.nullable or _is_stricter(field.dataType, own[name].dataType):
            raise InvalidInputError(
                f"column {field.name!r}: the schema says NOT NULL, and the table can have NULL. {_REMEDY}."
            )


def _is_stricter(given: DataType, own: DataType) -> bool:
    """Return whether a type excludes NULL within a value where the table's type, which is equal otherwise, has it."""
    if isinstance(given, ArrayType) and isinstance(own, ArrayType):
        return own.containsNull > given.containsNull or _is_stricter(given.elementType, own.elementType)
    if isinstance(given, MapType) and isinstance(own, MapType):
        inner = _is_stricter(given.keyType, own.keyType) or _is_stricter(given.valueType, own.valueType)
        return own.valueContainsNull > given.valueContainsNull or inner
    if isinstance(given, StructType) and isinstance(own, StructType):
        pairs = zip(given.fields, own.fields)
        return any(each.nullable > one.nullable or _is_stricter(one.dataType, each.dataType) for one, each in pairs)
    return False


def _text(kind: DataType) -> str:
    return kind.simpleString()


def arrow_form(struct: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark expects for rows of these columns."""
    # Without the argument, older releases of PySpark write times in UTC.
    named: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
    return to_arrow_schema(struct, **named)
