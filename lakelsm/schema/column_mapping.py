"""How the columns of an old data file map to the table's columns: by field id."""

from __future__ import annotations

from lakelsm.schema.table_schema import TableSchema
from lakelsm.types import DataField


def column_mapping(
    file_schema: TableSchema, table_schema: TableSchema
) -> list[tuple[DataField, DataField | None]]:
    """(table column, the file's column of the same id or None) for every table column, in the table's order.

    The file's column gives the name to read by and the type to cast from; None reads as null.
    """
    by_id = {column.id: column for column in file_schema.fields}
    return [(column, by_id.get(column.id)) for column in table_schema.fields]
