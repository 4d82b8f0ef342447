"""Types and literals of expressions as DuckDB has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.predicate.expression import NULL_TYPE, reduced
from lakelsm.types import ArrayType, AtomicType, DataField, DataType, MapType, MultisetType, RowType

_PLAIN = {
    "BOOLEAN": "BOOLEAN",
    "TINYINT": "TINYINT",
    "SMALLINT": "SMALLINT",
    "INT": "INTEGER",
    "BIGINT": "BIGINT",
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
    "VARCHAR": "VARCHAR",
    "VARBINARY": "BLOB",
    "DATE": "DATE",
    "TIMESTAMP_LTZ": "TIMESTAMPTZ",
}


def expression_type(kind: DataType, atomic: Callable[[DataType], DataType] = reduced) -> DataType:
    """Return the type that a column's type has in expressions, in nested types too; ``atomic`` has the atomic types.

    So types that differ in lengths, the numbers of fields or NOT NULL are equal.
    """
    if isinstance(kind, ArrayType):
        return ArrayType(expression_type(kind.element, atomic))
    if isinstance(kind, MapType):
        return MapType(expression_type(kind.key, atomic), expression_type(kind.value, atomic))
    if isinstance(kind, MultisetType):
        return MultisetType(expression_type(kind.element, atomic))
    if isinstance(kind, RowType):
        fields = (DataField(at, each.name, expression_type(each.type, atomic)) for at, each in enumerate(kind.fields))
        return RowType(tuple(fields))
    return atomic(kind)


def type_text(kind: DataType) -> str:
    """Return the name of a type of expressions. Raises UnsupportedFeatureError for one that has no equal."""
    kind = reduced(kind)
    if kind == NULL_TYPE:
        return '"NULL"'
    if isinstance(kind, AtomicType):
        if kind.root == "DECIMAL":
            return f"DECIMAL({kind.precision}, {kind.scale})"
        if kind.root == "TIMESTAMP":
            return "TIMESTAMP_NS" if (kind.precision or 0) > 6 else "TIMESTAMP"
        if kind.root in _PLAIN and not (kind.root == "TIMESTAMP_LTZ" and (kind.precision or 0) > 6):
            return _PLAIN[kind.root]
    if isinstance(kind, ArrayType):
        return f"{type_text(kind.element)}[]"
    if isinstance(kind, MapType):
        return f"MAP({type_text(kind.key)}, {type_text(kind.value)})"
    if isinstance(kind, MultisetType):
        return f"MAP({type_text(kind.element)}, INTEGER)"
    if isinstance(kind, RowType):
        return f"STRUCT({', '.join(f'{identifier(field.name)} {type_text(field.type)}' for field in kind.fields)})"
    raise UnsupportedFeatureError(f"SQL in this process has no type {kind.sql()}. Pass engine='spark' to use it.")


def identifier(name: str) -> str:
    """Return a name in quotes."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    """Return a text literal."""
    if "\0" in text:
        parts = (f"'{part}'" for part in text.replace("'", "''").split("\0"))
        return "(" + " || chr(0) || ".join(parts) + ")"
    return "'" + text.replace("'", "''") + "'"


def literal(value: Any, kind: DataType) -> str:
    """Return a value of a type, as `lakelsm.predicate.expression.Value` has it."""
    if value is None:
        return f"CAST(NULL AS {type_text(kind)})"
    if isinstance(value, bytes):
        return "from_hex(" + text_literal(value.hex()) + ")"
    if kind.root == "VARCHAR":
        return text_literal(value)
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return f"CAST({text_literal(str(value))} AS {type_text(kind)})"
