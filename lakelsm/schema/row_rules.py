"""The rules for rows that are written to a table, and the texts of errors.

Both engines use these rules and texts; only the names of types are those of the input (Spark or Arrow).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lakelsm.errors import InvalidInputError
from lakelsm.options import MergeEngine, TableOptions
from lakelsm.schema.identifiers import folded, match
from lakelsm.schema.table_schema import TableSchema
from lakelsm.schema.type_widening import INTEGER_DIGITS
from lakelsm.types import (
    BINARY_ROOTS,
    INTEGER_ROOTS,
    MAX_LENGTH,
    NUMERIC_ROOTS,
    STRING_ROOTS,
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
)

DAY_MILLIS = 86_400_000

_KINDS = "+I, -U, +U or -D"

#: The other roots that can hold every value of an atomic type.
_WIDER: dict[str, frozenset[str]] = {
    "TINYINT": frozenset(["SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "TIME"]),
    "SMALLINT": frozenset(["INT", "BIGINT", "FLOAT", "DOUBLE", "TIME"]),
    "INT": frozenset(["BIGINT", "DOUBLE", "TIME"]),
    "FLOAT": frozenset(["DOUBLE"]),
    "DATE": frozenset(["TIMESTAMP"]),
    **dict.fromkeys(STRING_ROOTS, STRING_ROOTS),
    **dict.fromkeys(BINARY_ROOTS, BINARY_ROOTS),
}

#: The roots that can hold some values of an atomic type exactly. Each value is checked.
_CASTS: dict[str, frozenset[str]] = {
    **dict.fromkeys(NUMERIC_ROOTS, NUMERIC_ROOTS),
    "BIGINT": NUMERIC_ROOTS | {"TIME"},
    **dict.fromkeys(STRING_ROOTS, frozenset(["DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"])),
    "TIMESTAMP": frozenset(["DATE"]),
}
#: From these values on, floats do not have every whole number, and do not fit a DECIMAL.
WHOLE_FLOATS = {"FLOAT": 2**24, "DOUBLE": 2**53}
#: The form of texts for columns of a root.
TEXT_FORMS = {
    "DATE": "'2026-01-31'",
    "TIME": "'12:30:00'",
    "TIMESTAMP": "'2026-01-31 12:30:00', without a time zone",
    "TIMESTAMP_LTZ": "'2026-01-31 12:30:00Z' or '2026-01-31 12:30:00+02:00'",
}
#: The maximum number of characters of a value in an error.
SHOWN_VALUE = 60

_COUNT = AtomicType("INT", nullable=False)


def refused_rows(fault: str) -> InvalidInputError:
    """Return the error for a write that is refused because of a row."""
    return InvalidInputError(f"Nothing was written: {fault.removesuffix('.')}.")


# -- columns ---------------------------------------------------------------------------------------------------------


def names_of_table(given: Sequence[str], schema: TableSchema, row_kind: str | None) -> tuple[list[str], str | None]:
    """Return the names of a frame's columns and of its row kind column in the table's case: `ID` becomes `id`."""
    counts = Counter(map(folded, given))
    twice = sorted({name for name in given if counts[folded(name)] > 1})
    if twice:
        raise InvalidInputError(
            f"column {', '.join(twice)} occurs more than once in the frame. Rename or drop one (Spark ignores case)."
        )
    known = {folded(name): name for name in schema.field_names}
    names = [known.get(folded(name), name) for name in given]
    return names, None if row_kind is None else match(row_kind, names) or row_kind


def untouched_columns(names: Iterable[str], schema: TableSchema, options: TableOptions) -> list[str]:
    """Return the columns that a frame may lack, because it does not change them: nullable ones in `partial-update`."""
    if options.merge_engine is not MergeEngine.PARTIAL_UPDATE:
        return []
    kept = {*names, *schema.primary_keys, *schema.partition_keys}
    return [field.name for field in schema.fields if field.name not in kept and field.type.nullable]


def check_columns(
    given: Sequence[str], schema: TableSchema, row_kind: str | None, fixed: Mapping[str, object]
) -> None:
    """Raise InvalidInputError unless a frame has the table's columns; those of ``fixed`` may be missing."""
    if row_kind is not None and row_kind not in given:
        raise InvalidInputError(f"row_kind: column '{row_kind}' is not in the frame. Columns: {', '.join(given)}.")
    missing = [name for name in schema.field_names if name not in given and name not in fixed]
    if missing:
        raise InvalidInputError(
            f"the frame lacks column {', '.join(missing)} of the table. Add it (NULL where a row has no value)."
        )
    extra = [name for name in given if name not in schema.field_names and name != row_kind]
    if extra:
        raise InvalidInputError(
            f"the table has no column {', '.join(extra)}. Drop it from the frame, or add it to the table "
            "(merge_schema=True does)."
        )


def key_schema(schema: TableSchema, given: Sequence[str]) -> TableSchema:
    """Return the table's schema with only its primary key columns, for a frame of keys with the columns ``given``."""
    names, _ = names_of_table(given, schema, None)
    others = [name for name in names if name not in schema.primary_keys]
    missing = [name for name in schema.primary_keys if name not in names]
    if others or missing:
        wrong = f"{', '.join(missing)} is missing" if missing else f"{', '.join(others)} is not one of them"
        raise InvalidInputError(
            f"keys: expected the columns of the primary key ({', '.join(schema.primary_keys)}); {wrong}."
        )
    return replace(schema, fields=tuple(field for field in schema.fields if field.name in schema.primary_keys))


def kind_column(options: TableOptions, row_kind: str | None) -> str | None:
    """Return the column with the row kinds; None if every row is +I."""
    if row_kind is not None and options.rowkind_field is not None and row_kind != options.rowkind_field:
        raise InvalidInputError(
            f"row_kind: the table has row kinds in its column '{options.rowkind_field}' (rowkind.field). Leave row_kind "
            "out."
        )
    return row_kind or options.rowkind_field


# -- types -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OnlyNull(DataType):
    """The type of a frame's column, or part of one, that is always NULL. No column of a table has it."""

    nullable: bool = True

    @property
    def root(self) -> str:
        return "NULL"

    def _text(self) -> str:
        return "NULL"


def is_assignable(source: DataType, target: DataType) -> bool:
    """Return whether ``target`` can hold every value of ``source``.

    NULL and lengths are checked row by row. Times that are finer than the column are rounded down.
    """
    return _every(source, target, _is_assignable_atom)


def is_castable(source: DataType, target: DataType) -> bool:
    """Return whether values of ``source`` may be written to a column ``target`` if each of them fits (``cast='safe'``).

    A number fits if the column can hold the same number. For a float as a DECIMAL, and for a DECIMAL or DOUBLE as another
    float, the number is that of the float's shortest decimal text (0.1). Floats from `WHOLE_FLOATS` on do not fit a
    DECIMAL. A text fits a time if it is one in ISO 8601 form. Times that are finer than the column are rounded down.
    """
    return _every(source, target, _is_castable_atom)


def _every(source: DataType, target: DataType, holds: Callable[[AtomicType, AtomicType], bool]) -> bool:
    if isinstance(source, OnlyNull):
        return True
    if isinstance(target, AtomicType):
        return isinstance(source, AtomicType) and holds(source, target)
    if isinstance(source, ArrayType) and isinstance(target, ArrayType):
        return _every(source.element, target.element, holds)
    if isinstance(source, (MapType, MultisetType)) and isinstance(target, (MapType, MultisetType)):
        parts = zip(entry_types(source), entry_types(target))
        return all(_every(given, wanted, holds) for given, wanted in parts)
    if isinstance(source, RowType) and isinstance(target, RowType):
        pairs = zip(source.fields, target.fields)
        alike = [folded(member.name) for member in source.fields] == [folded(member.name) for member in target.fields]
        return alike and all(_every(a.type, b.type, holds) for a, b in pairs)
    return False


def entry_types(kind: MapType | MultisetType) -> tuple[DataType, DataType]:
    """Return the types of the keys and values of a map; the values of a MULTISET are its counts."""
    return (kind.key, kind.value) if isinstance(kind, MapType) else (kind.element, _COUNT)


def _is_castable_atom(source: AtomicType, target: AtomicType) -> bool:
    return _is_assignable_atom(source, target) or target.root in _CASTS.get(source.root, ())


def _is_assignable_atom(source: AtomicType, target: AtomicType) -> bool:
    if target.root != "DECIMAL":
        return source.root == target.root or target.root in _WIDER.get(source.root, ())
    scale = target.scale or 0
    whole = (target.precision or 0) - scale
    if source.root == "DECIMAL":
        given = source.scale or 0
        return scale >= given and whole >= (source.precision or 0) - given
    return whole >= INTEGER_DIGITS.get(source.root, MAX_LENGTH)


def is_comparable(source: DataType, target: DataType) -> bool:
    """Return whether values of the types can be compared for equality without an explicit cast by the user."""
    numbers = (*INTEGER_ROOTS, "DECIMAL")
    return is_assignable(source, target) or (source.root in numbers and target.root in numbers)


def not_assignable(field: DataField, source: str, target: str, remedy: str | None = None) -> InvalidInputError:
    """Return the error for a column of another type; ``source`` and ``target`` are names of types in Spark or Arrow."""
    text = remedy or f"cast it to {target} before the write"
    return InvalidInputError(
        f"column '{field.name}' is {source} in the frame and {target} in the table ({field.type.sql()}). "
        f"{text[:1].upper()}{text[1:]}."
    )


# -- values ----------------------------------------------------------------------------------------------------------


def does_not_fit(source: DataType, target: DataType) -> str:
    """Return the end of the text on a value that does not fit its column; row, column and value precede it."""
    fault = f" does not fit {target.with_nullable(True).sql()}"
    if source.root in STRING_ROOTS and target.root in TEXT_FORMS:
        fault += f". Use text such as {TEXT_FORMS[target.root]}"
    return fault


def unfit_value(row: int, column: str, fault: str) -> InvalidInputError:
    """Return the error for a value that does not fit its column (`does_not_fit`). Rows are counted from 1."""
    return refused_rows(f"row {row}, column '{column}': {fault}")


def shortened(text: str) -> str:
    """Return a value for an error: in one line, without the end of a long one."""
    text = " ".join(text.split())
    return text if len(text) <= SHOWN_VALUE else text[:SHOWN_VALUE] + "…"


def longest_value(kind: DataType) -> int | None:
    """Return the maximum characters or bytes of a value; None if there is no limit."""
    limit = kind.length if isinstance(kind, AtomicType) else None
    return limit if limit is not None and limit < MAX_LENGTH else None


def too_long(field: DataField) -> str:
    """Return the text on a value that is longer than its column allows."""
    fault = f"a value of column '{field.name}' is longer than {field.type.sql()} allows"
    if longest_value(field.type) == 1:
        fault += ", the meaning of the type without a length. Declare STRING or BYTES for values of any length"
    return fault


def null_column(name: str, schema: TableSchema) -> str:
    """Return the text on NULL in a column that is NOT NULL."""
    what = "key column" if name in schema.primary_keys else "NOT NULL column"
    return f"{what} '{name}' is NULL in a row. Remove or fill such rows"


def null_part(path: str) -> str:
    """Return the text on NULL in a NOT NULL part of a value, such as ``r.x``, ``a.element`` or ``m.value``."""
    return f"'{path}', which is NOT NULL, is NULL in a row. Remove or fill such rows"


def invalid_time_of_day(path: str, kind: DataType) -> str:
    """Return the text on a number that is not a time of day."""
    return f"'{path}' ({kind.sql()}) has a number outside 0 to {DAY_MILLIS - 1} (milliseconds) in a row"


def other_partition(name: str, fixed: object) -> str:
    """Return the text on a row that is not in the overwritten partition."""
    return f"a row is not in the overwritten partition, where column '{name}' is '{fixed}'"


def wrong_row_kind_type(name: str) -> InvalidInputError:
    """Return the error for a row kind column that is not a text."""
    return InvalidInputError(f"row kind column '{name}': expected texts, {_KINDS}.")


def unknown_row_kind(name: str) -> str:
    """Return the text on an unknown row kind, which the caller appends."""
    return f"row kind column '{name}': expected {_KINDS}, got "
