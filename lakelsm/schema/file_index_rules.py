"""Which columns can have which index of a data file (Paimon's `SchemaValidation#validateFileIndex`)."""

from __future__ import annotations

from collections.abc import Mapping

from lakelsm.errors import InvalidInputError
from lakelsm.options import TableOptions
from lakelsm.options.file_index_options import BITMAP, BLOOM_FILTER, columns_key
from lakelsm.schema.table_schema import TableSchema
from lakelsm.types import BINARY_ROOTS, INTEGER_ROOTS, STRING_ROOTS, AtomicType, DataType

_FILTERED = frozenset(
    {*INTEGER_ROOTS, *STRING_ROOTS, *BINARY_ROOTS, "FLOAT", "DOUBLE", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"}
)
_ROOTS: Mapping[str, frozenset[str]] = {
    BLOOM_FILTER: _FILTERED,
    BITMAP: (_FILTERED - BINARY_ROOTS) | {"BOOLEAN"},
}


def can_have_index(kind: str, data_type: DataType) -> bool:
    """Whether a column of the type can have an index of a type that lakelsm knows."""
    return isinstance(data_type, AtomicType) and data_type.root in _ROOTS[kind]


def check_file_indexes(schema: TableSchema, options: TableOptions) -> None:
    """Raises InvalidInputError for an index of a column that does not exist, or that its type cannot have."""
    for index in options.file_indexes:
        key = columns_key(index.kind)
        column = index.column.partition("[")[0] if index.is_nested else index.column
        if column not in schema.field_names:
            raise InvalidInputError(
                f"option '{key}' names the column '{column}', which the table does not have; it has "
                f"{', '.join(schema.field_names)}"
            )
        data_type = schema.field(column).type
        if not index.is_nested and not can_have_index(index.kind, data_type):
            raise InvalidInputError(
                f"option '{key}' names the column '{column}' of type {data_type.sql()}, which cannot have such an index; "
                "leave it out"
            )
