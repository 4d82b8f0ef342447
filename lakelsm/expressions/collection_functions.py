"""Functions of arrays, maps and structs in DuckDB's SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lakelsm.expressions.duckdb_casts import DuckExpression, alike, cast, failure, text_of
from lakelsm.expressions.duckdb_functions import Call, accepted
from lakelsm.expressions.duckdb_types import text_literal
from lakelsm.expressions.text_functions import joined_list
from lakelsm.predicate.expression import (
    BOOLEAN,
    INT,
    NULL_TYPE,
    STRING,
    Expression,
    Value,
    common_type,
    is_ordered,
    reduced,
)
from lakelsm.types import INTEGER_ROOTS, ArrayType, DataField, DataType, MapType, RowType


def _listed(arguments: Sequence[Expression]) -> Expression | None:
    """Bind array(…). Without a value that has a type, Spark's type of the elements is VOID, which is refused."""
    found = alike(arguments)
    if not found or all(each.type == NULL_TYPE for each in arguments):
        return None
    return DuckExpression(ArrayType(found[0].type), f"[{', '.join(map(text_of, found))}]")


def _mapped(arguments: Sequence[Expression]) -> Expression | None:
    """Bind map(key, value, …)."""
    keys, values = _listed(arguments[::2]), _listed(arguments[1::2])
    if keys is None or values is None or len(arguments) % 2:
        return None
    assert isinstance(keys.type, ArrayType) and isinstance(values.type, ArrayType)
    if keys.type.element.root in ("FLOAT", "DOUBLE"):
        return None  # In Spark -0.0 becomes 0.0 there.
    kind = MapType(keys.type.element, values.type.element)
    return DuckExpression(kind, f"MAP({text_of(keys)}, {text_of(values)})")


def struct_of(names: Sequence[str], values: Sequence[Expression]) -> Expression | None:
    """Return a struct; None for names that differ in case only, and for NULL without a type."""
    if len({name.lower() for name in names}) < len(names) or not names or any(each.type == NULL_TYPE for each in values):
        return None
    fields = tuple(DataField(at, name, each.type) for at, (name, each) in enumerate(zip(names, values)))
    parts = (f"{text_literal(name)}: {text_of(each)}" for name, each in zip(names, values))
    return DuckExpression(RowType(fields), f"{{{', '.join(parts)}}}")


def _named_struct(arguments: Sequence[Expression]) -> Expression | None:
    """Bind named_struct('name', value, …)."""
    names = [each.value for each in arguments[::2] if isinstance(each, Value) and isinstance(each.value, str)]
    if len(names) * 2 != len(arguments):
        return None
    return struct_of(names, arguments[1::2])


def _size(arguments: Sequence[Expression]) -> Expression | None:
    if len(arguments) != 1 or not isinstance(arguments[0].type, ArrayType | MapType):
        return None
    name = "len" if isinstance(arguments[0].type, ArrayType) else "cardinality"
    return DuckExpression(INT, f"CAST({name}({text_of(arguments[0])}) AS INTEGER)")


def _contains(arguments: Sequence[Expression]) -> Expression | None:
    """Bind array_contains(array, value): NULL if it is not found among elements of which one is NULL."""
    if len(arguments) != 2 or not isinstance(arguments[0].type, ArrayType):
        return None
    array, kind = text_of(arguments[0]), reduced(arguments[0].type.element)
    value = _as_element(arguments[1], kind)
    if value is None or not is_ordered(kind) or arguments[1].type == NULL_TYPE:
        return None
    text = text_of(value)
    has_null = f"len({array}) > len(list_filter({array}, lambda e: e IS NOT NULL))"
    return DuckExpression(
        BOOLEAN,
        f"CASE WHEN {array} IS NULL OR {text} IS NULL THEN NULL WHEN list_contains({array}, {text}) THEN TRUE "
        f"WHEN {has_null} THEN NULL ELSE FALSE END",
    )


def _as_element(value: Expression, kind: DataType) -> Expression | None:
    """Return a value as the type of elements, where it needs no wider one."""
    return cast(value, kind) if common_type(iter((value.type, kind))) == kind else None


def _element_at(arguments: Sequence[Expression]) -> Expression | None:
    """Bind element_at(array, index from 1, or from -1 backwards) and element_at(map, key)."""
    if len(arguments) != 2:
        return None
    holder, index = arguments
    if isinstance(holder.type, MapType):
        return value_at(holder, index)
    if not isinstance(holder.type, ArrayType) or index.type.root not in INTEGER_ROOTS:
        return None
    array, at = text_of(holder), f"CAST({text_of(index)} AS BIGINT)"
    kind = reduced(holder.type.element)
    failed = failure("array index out of bounds", kind)
    return DuckExpression(
        kind, f"CASE WHEN {at} = 0 OR abs({at}) > len({array}) THEN {failed} ELSE {array}[{at}] END"
    )


def value_at(holder: Expression, key: Expression) -> Expression | None:
    """Return the value of a map for a key; NULL if the map does not have it."""
    assert isinstance(holder.type, MapType)
    found = _as_element(key, reduced(holder.type.key))
    if found is None:
        return None
    return DuckExpression(reduced(holder.type.value), f"{text_of(holder)}[{text_of(found)}]")


def _of_map(name: str, part: Callable[[MapType], DataType]) -> Call:
    def call(arguments: Sequence[Expression]) -> Expression | None:
        if len(arguments) != 1 or not isinstance(arguments[0].type, MapType):
            return None
        return DuckExpression(ArrayType(part(arguments[0].type)), f"{name}({text_of(arguments[0])})")

    return call


def _has_key(arguments: Sequence[Expression]) -> Expression | None:
    if len(arguments) != 2 or not isinstance(arguments[0].type, MapType) or arguments[1].type == NULL_TYPE:
        return None
    key = _as_element(arguments[1], reduced(arguments[0].type.key))
    if key is None:
        return None
    map_text, text = text_of(arguments[0]), text_of(key)
    found = f"list_contains(map_keys({map_text}), {text})"
    return DuckExpression(BOOLEAN, f"CASE WHEN {map_text} IS NOT NULL AND {text} IS NOT NULL THEN {found} END")


def _sorted_array(arguments: Sequence[Expression]) -> Expression | None:
    """Bind sort_array(array [, ascending]): NULL is less than other values."""
    ascending = arguments[1] if len(arguments) == 2 else Value(BOOLEAN, True)
    if not 1 <= len(arguments) <= 2 or not isinstance(ascending, Value) or ascending.value not in (True, False):
        return None
    kind = arguments[0].type
    if not isinstance(kind, ArrayType) or not is_ordered(reduced(kind.element)):
        return None
    order = "'ASC', 'NULLS FIRST'" if ascending.value else "'DESC', 'NULLS LAST'"
    return DuckExpression(kind, f"list_sort({text_of(arguments[0])}, {order})")


def _array_join(arguments: Sequence[Expression]) -> Expression | None:
    """Bind array_join(texts, separator): NULL is left out."""
    if len(arguments) != 2 or not isinstance(arguments[0].type, ArrayType):
        return None
    separator = accepted(arguments[1], "s")
    if separator is None or arguments[0].type.element.root != "VARCHAR":
        return None
    return DuckExpression(STRING, joined_list(text_of(arguments[0]), separator))


COLLECTION_FUNCTIONS: Mapping[str, Call] = {
    "array": _listed,
    "map": _mapped,
    "named_struct": _named_struct,
    "size": _size,
    "cardinality": _size,
    "array_size": lambda arguments: None if _is_map(arguments) else _size(arguments),
    "array_contains": _contains,
    "element_at": _element_at,
    "map_keys": _of_map("map_keys", lambda kind: kind.key),
    "map_values": _of_map("map_values", lambda kind: kind.value),
    "map_contains_key": _has_key,
    "sort_array": _sorted_array,
    "array_join": _array_join,
}


def _is_map(arguments: Sequence[Expression]) -> bool:
    return len(arguments) == 1 and isinstance(arguments[0].type, MapType)


@dataclass(frozen=True)
class GeneratedColumn:
    """A column of the rows that explode makes: its name, its type, and the list of its values in DuckDB's SQL."""

    name: str
    type: DataType
    text: str


def generated_columns(argument: Expression, *, with_position: bool) -> list[GeneratedColumn] | None:
    """Return the columns of the rows that explode makes of an array or map; None for another type."""
    text, kind = text_of(argument), argument.type
    if isinstance(kind, ArrayType):
        found = [GeneratedColumn("col", reduced(kind.element), text)]
    elif isinstance(kind, MapType):
        found = [
            GeneratedColumn("key", reduced(kind.key), f"map_keys({text})"),
            GeneratedColumn("value", reduced(kind.value), f"map_values({text})"),
        ]
    else:
        return None
    positions = GeneratedColumn("pos", INT, f"CAST(range(len({found[0].text})) AS INTEGER[])")
    return [positions, *found] if with_position else found
