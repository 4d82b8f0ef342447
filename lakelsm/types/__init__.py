"""Paimon's types: values, text and JSON forms, and the mapping to Arrow."""

from __future__ import annotations

from lakelsm.types.arrow_types import arrow_field, field_from_arrow, from_arrow, python_arrow, to_arrow
from lakelsm.types.data_types import (
    BINARY_ROOTS,
    INTEGER_ROOTS,
    MAX_LENGTH,
    NUMERIC_ROOTS,
    STRING_ROOTS,
    UNASSIGNED_ID,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    JsonType,
    MapType,
    MultisetType,
    RowType,
    VectorType,
    check_nesting,
    field_to_json,
    rows_within,
    same_layout,
    type_to_json,
)
from lakelsm.types.type_text import field_from_json, parse_columns, parse_type

__all__ = [
    "BINARY_ROOTS",
    "INTEGER_ROOTS",
    "MAX_LENGTH",
    "NUMERIC_ROOTS",
    "STRING_ROOTS",
    "UNASSIGNED_ID",
    "ArrayType",
    "AtomicType",
    "DataField",
    "DataType",
    "JsonType",
    "MapType",
    "MultisetType",
    "RowType",
    "VectorType",
    "arrow_field",
    "check_nesting",
    "field_from_arrow",
    "field_from_json",
    "field_to_json",
    "from_arrow",
    "parse_columns",
    "parse_type",
    "python_arrow",
    "rows_within",
    "same_layout",
    "to_arrow",
    "type_to_json",
]
