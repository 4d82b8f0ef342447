"""Paimon's data types as frozen values, with their SQL text and their JSON form in schema files.

Sources of the rules: docs/format.md 3 and 3.2 (type strings), Paimon's `DataType#asSQLString`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from lakelsm.errors import InvalidInputError

MAX_LENGTH = 2147483647  # Persisted: do not change. VARCHAR(MAX_LENGTH) is STRING, VARBINARY(MAX_LENGTH) is BYTES.
UNASSIGNED_ID = -1  # The id of a field that `schema.table_schema` has not numbered yet.

#: Levels of nested types that a column's type may have, its own level included.
MAX_NESTING = 64

JsonType = str | dict[str, Any]

_PLAIN_ROOTS = frozenset(
    ["BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE", "VARIANT", "BLOB"]
)
_LENGTH_ROOTS = frozenset(["CHAR", "VARCHAR", "BINARY", "VARBINARY"])
_TIME_PRECISION_DEFAULTS = {"TIME": 0, "TIMESTAMP": 6, "TIMESTAMP_LTZ": 6}  # Persisted: do not change.
ATOMIC_ROOTS = frozenset(_PLAIN_ROOTS | _LENGTH_ROOTS | set(_TIME_PRECISION_DEFAULTS) | {"DECIMAL"})

STRING_ROOTS = frozenset(["CHAR", "VARCHAR"])
BINARY_ROOTS = frozenset(["BINARY", "VARBINARY"])
#: The width of each integer type in bits, in ascending order.
INTEGER_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
INTEGER_ROOTS = frozenset(INTEGER_BITS)
#: The maximum precision of a DECIMAL.
MAX_DECIMAL_DIGITS = 38
NUMERIC_ROOTS = frozenset(INTEGER_ROOTS | {"FLOAT", "DOUBLE", "DECIMAL"})


class DataType(ABC):
    """The base of all types. Types are equal if their content is; ``nullable`` is a part of the type."""

    nullable: bool

    @property
    @abstractmethod
    def root(self) -> str:
        """The name of the type without parameters, such as 'INT' or 'ARRAY'."""

    def with_nullable(self, nullable: bool) -> DataType:
        """Return the same type with the given nullability at its top level."""
        if self.nullable == nullable:
            return self
        return replace(self, nullable=nullable)  # type: ignore[type-var]

    def sql(self) -> str:
        """Return Paimon's text of the type, which `parse_type` reads. It does not contain the ids of ROW fields."""
        return self._text() if self.nullable else f"{self._text()} NOT NULL"

    @abstractmethod
    def _text(self) -> str: ...

    def __str__(self) -> str:
        return self.sql()


@dataclass(frozen=True)
class AtomicType(DataType):
    """A type without nested types.

    ``root`` is one of ATOMIC_ROOTS. Missing parameters get Paimon's defaults: length 1, DECIMAL(10, 0),
    TIME(0), TIMESTAMP(6). Raises InvalidInputError for an unknown root and for a parameter out of range.
    """

    root: str = ""
    _: KW_ONLY
    length: int | None = None
    precision: int | None = None
    scale: int | None = None
    nullable: bool = True

    def __post_init__(self) -> None:
        if self.root in _LENGTH_ROOTS:
            self._default("length", 1)
            self._check("length", 1, MAX_LENGTH)
            self._only("length")
        elif self.root == "DECIMAL":
            self._default("precision", 10)
            self._default("scale", 0)
            self._check("precision", 1, MAX_DECIMAL_DIGITS)
            self._check("scale", 0, self.precision or 0)
            self._only("precision", "scale")
        elif self.root in _TIME_PRECISION_DEFAULTS:
            self._default("precision", _TIME_PRECISION_DEFAULTS[self.root])
            self._check("precision", 0, 9)
            self._only("precision")
        elif self.root in _PLAIN_ROOTS:
            self._only()
        else:
            raise InvalidInputError(f"'{self.root}' is not a type. Use one of {', '.join(sorted(ATOMIC_ROOTS))}.")

    def _default(self, attribute: str, value: int) -> None:
        if getattr(self, attribute) is None:
            object.__setattr__(self, attribute, value)

    def _check(self, attribute: str, low: int, high: int) -> None:
        value = getattr(self, attribute)
        if not low <= value <= high:
            raise InvalidInputError(f"{attribute} {value} of type {self.root} is out of range. Use {low} to {high}.")

    def _only(self, *allowed: str) -> None:
        for attribute in ("length", "precision", "scale"):
            if attribute not in allowed and getattr(self, attribute) is not None:
                raise InvalidInputError(f"type {self.root} has no {attribute}. Remove it.")

    def _text(self) -> str:
        if self.root in _LENGTH_ROOTS:
            if self.length == MAX_LENGTH and self.root in ("VARCHAR", "VARBINARY"):
                return "STRING" if self.root == "VARCHAR" else "BYTES"
            return f"{self.root}({self.length})"
        if self.root == "DECIMAL":
            return f"DECIMAL({self.precision}, {self.scale})"
        if self.root == "TIMESTAMP_LTZ":
            return f"TIMESTAMP({self.precision}) WITH LOCAL TIME ZONE"
        if self.root in _TIME_PRECISION_DEFAULTS:
            return f"{self.root}({self.precision})"
        return self.root


@dataclass(frozen=True)
class ArrayType(DataType):
    """ARRAY<element>."""

    element: DataType
    nullable: bool = True

    @property
    def root(self) -> str:
        """Always 'ARRAY'."""
        return "ARRAY"

    def _text(self) -> str:
        return f"ARRAY<{self.element.sql()}>"


@dataclass(frozen=True)
class MapType(DataType):
    """MAP<key, value>."""

    key: DataType
    value: DataType
    nullable: bool = True

    @property
    def root(self) -> str:
        """Always 'MAP'."""
        return "MAP"

    def _text(self) -> str:
        return f"MAP<{self.key.sql()}, {self.value.sql()}>"


@dataclass(frozen=True)
class MultisetType(DataType):
    """MULTISET<element>: stored as a map of each element to its count."""

    element: DataType
    nullable: bool = True

    @property
    def root(self) -> str:
        """Always 'MULTISET'."""
        return "MULTISET"

    def _text(self) -> str:
        return f"MULTISET<{self.element.sql()}>"


@dataclass(frozen=True)
class VectorType(DataType):
    """VECTOR<element, length>: a list of fixed length."""

    element: DataType
    length: int
    nullable: bool = True

    @property
    def root(self) -> str:
        """Always 'VECTOR'."""
        return "VECTOR"

    def _text(self) -> str:
        return f"VECTOR<{self.element.sql()}, {self.length}>"


@dataclass(frozen=True)
class DataField:
    """A named column or ROW member. Its id is unique in the table and is never assigned again (docs/format.md 3.3)."""

    id: int
    name: str
    type: DataType
    description: str | None = None
    _: KW_ONLY
    default_value: str | None = None

    def sql(self) -> str:
        """Return the field's text within a ROW: quoted name, type, and the comment as a string."""
        name = self.name.replace("`", "``")
        comment = "" if self.description is None else " '" + self.description.replace("'", "''") + "'"
        return f"`{name}` {self.type.sql()}{comment}"


@dataclass(frozen=True)
class RowType(DataType):
    """ROW<fields>: a nested record. Each member has its own field id."""

    fields: tuple[DataField, ...]
    nullable: bool = True

    @property
    def root(self) -> str:
        """Always 'ROW'."""
        return "ROW"

    def _text(self) -> str:
        return f"ROW<{', '.join(field.sql() for field in self.fields)}>"


def check_nesting(name: str, data_type: DataType) -> None:
    """Raise InvalidInputError if the type of column ``name`` has more than MAX_NESTING levels of nested types."""
    level: list[DataType] = [data_type]
    for _ in range(MAX_NESTING):
        level = [part for outer in level for part in _parts(outer)]
        if not level:
            return
    raise too_deep(f"the type of column {name!r}")


def too_deep(what: str) -> InvalidInputError:
    """Return the error for a type with too many nested levels; ``what`` names the type."""
    return InvalidInputError(f"{what} has more than {MAX_NESTING} levels of nested types. Use fewer.")


def _parts(data_type: DataType) -> Sequence[DataType]:
    if isinstance(data_type, RowType):
        return [member.type for member in data_type.fields]
    if isinstance(data_type, (ArrayType, MultisetType, VectorType)):
        return [data_type.element]
    return [data_type.key, data_type.value] if isinstance(data_type, MapType) else []


def has_nanoseconds(data_type: DataType) -> bool:
    """Return whether the type, or a type nested in it, is TIMESTAMP(7..9): finer than the microseconds of Spark."""
    if isinstance(data_type, AtomicType):
        return data_type.root in ("TIMESTAMP", "TIMESTAMP_LTZ") and (data_type.precision or 0) > 6
    return any(map(has_nanoseconds, _parts(data_type)))


def same_layout(one: DataType, other: DataType) -> bool:
    """Return whether values of one type are valid values of the other: the types differ in nullability and comments only.

    Members of ROW are compared by field id, so a member that was dropped and added again differs.
    """
    if isinstance(one, RowType) and isinstance(other, RowType):
        return len(one.fields) == len(other.fields) and all(
            (a.id, a.name) == (b.id, b.name) and same_layout(a.type, b.type) for a, b in zip(one.fields, other.fields)
        )
    if isinstance(one, (ArrayType, MultisetType)) and isinstance(other, (ArrayType, MultisetType)):
        return type(one) is type(other) and same_layout(one.element, other.element)
    if isinstance(one, MapType) and isinstance(other, MapType):
        return same_layout(one.key, other.key) and same_layout(one.value, other.value)
    return one.with_nullable(True) == other.with_nullable(True)


def nested_row_fields(data_type: DataType) -> Iterator[tuple[DataField, ...]]:
    """Yield the members of a ROW type, or of each ROW type that is the type's element, key or value."""
    if isinstance(data_type, RowType):
        yield data_type.fields
    elif isinstance(data_type, (ArrayType, MultisetType, VectorType)):
        yield from nested_row_fields(data_type.element)
    elif isinstance(data_type, MapType):
        yield from nested_row_fields(data_type.key)
        yield from nested_row_fields(data_type.value)


def type_to_json(data_type: DataType) -> JsonType:
    """Return the type as a schema file stores it: text for atomic types, an object for others (docs/format.md 3.2)."""
    if isinstance(data_type, AtomicType):
        return data_type.sql()
    head = data_type.root if data_type.nullable else f"{data_type.root} NOT NULL"
    if isinstance(data_type, (ArrayType, MultisetType)):
        return {"type": head, "element": type_to_json(data_type.element)}
    if isinstance(data_type, VectorType):
        return {"type": head, "element": type_to_json(data_type.element), "length": data_type.length}
    if isinstance(data_type, MapType):
        return {"type": head, "key": type_to_json(data_type.key), "value": type_to_json(data_type.value)}
    if isinstance(data_type, RowType):
        return {"type": head, "fields": [field_to_json(field) for field in data_type.fields]}
    raise InvalidInputError(f"type {data_type!r} has no form in schema files")


def field_to_json(field: DataField) -> dict[str, Any]:
    """Return the field as an object of a schema file, without `description` and `defaultValue` if they are None."""
    document: dict[str, Any] = {"id": field.id, "name": field.name, "type": type_to_json(field.type)}
    if field.description is not None:
        document["description"] = field.description
    if field.default_value is not None:
        document["defaultValue"] = field.default_value
    return document
