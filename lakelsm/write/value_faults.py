"""What is wrong with a value of a type, at any depth, as Spark expressions: NULL where a part is NOT NULL, no time."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakelsm.types import ArrayType, AtomicType, DataType, MapType, MultisetType, RowType

#: A column -> whether its row has a certain fault.
Finds = Callable[[Column], Column]

_COUNT = AtomicType("INT", nullable=False)
_DAY_MILLIS = 86_400_000


def value_faults(kind: DataType, path: str) -> list[tuple[Finds, str]]:
    """What finds each possible fault in a value of the type, with its description for the user.

    ``path`` names the value; parts are ``r.x``, ``a.element``, ``m.value``. Whether the value itself can be NULL is the
    caller's to check. A part of a row that is NULL itself is not there, and has no fault.
    """
    if isinstance(kind, RowType):
        found: list[tuple[Finds, str]] = []
        for member in kind.fields:
            where = f"{path}.{member.name}"
            if not member.type.nullable:
                found.append((_member_is_null(member.name), _null_fault(where)))
            found += [(_in_member(member.name, finds), text) for finds, text in value_faults(member.type, where)]
        return found
    if isinstance(kind, ArrayType):
        return _in_elements(lambda column: column, kind.element, f"{path}.element")
    if isinstance(kind, (MapType, MultisetType)):
        key, value = (kind.key, kind.value) if isinstance(kind, MapType) else (kind.element, _COUNT)
        keys = _in_elements(F.map_keys, key.with_nullable(True), f"{path}.key")  # Spark has no map with a NULL key.
        return keys + _in_elements(F.map_values, value, f"{path}.value")
    if kind.root == "TIME":
        text = f"'{path}' ({kind.sql()}) is a number of milliseconds from 0 to {_DAY_MILLIS - 1}, and a row has another"
        return [(lambda column: (column < 0) | (column >= _DAY_MILLIS), text)]
    return []


def _null_fault(path: str) -> str:
    return f"'{path}', which is NOT NULL, is NULL in a row of the DataFrame: filter or fill such rows"


def _member_is_null(name: str) -> Finds:
    return lambda row: row.isNotNull() & row.getField(name).isNull()


def _in_member(name: str, finds: Finds) -> Finds:
    return lambda row: finds(row.getField(name))


def _in_elements(elements: Finds, kind: DataType, path: str) -> list[tuple[Finds, str]]:
    found = [] if kind.nullable else [(_exists(elements, lambda element: element.isNull()), _null_fault(path))]
    return found + [(_exists(elements, finds), text) for finds, text in value_faults(kind, path)]


def _exists(elements: Finds, finds: Finds) -> Finds:
    return lambda column: F.exists(elements(column), lambda element: finds(element))


__all__ = ["Finds", "value_faults"]
