"""What rows must be like to be written to a table, and the words for what they are not.

The words are the same whatever the rows come in; only their types have the names of the world that they come from.
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

#: The roots that hold every value of an atomic type, beside its own.
_WIDER: dict[str, frozenset[str]] = {
    "TINYINT": frozenset(["SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "TIME"]),
    "SMALLINT": frozenset(["INT", "BIGINT", "FLOAT", "DOUBLE", "TIME"]),
    "INT": frozenset(["BIGINT", "DOUBLE", "TIME"]),
    "FLOAT": frozenset(["DOUBLE"]),
    "DATE": frozenset(["TIMESTAMP"]),
    **dict.fromkeys(STRING_ROOTS, STRING_ROOTS),
    **dict.fromkeys(BINARY_ROOTS, BINARY_ROOTS),
}

#: The roots that hold some values of an atomic type exactly. Each value is checked.
_CASTS: dict[str, frozenset[str]] = {
    **dict.fromkeys(NUMERIC_ROOTS, NUMERIC_ROOTS),
    "BIGINT": NUMERIC_ROOTS | {"TIME"},
    **dict.fromkeys(STRING_ROOTS, frozenset(["DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ"])),
    "TIMESTAMP": frozenset(["DATE"]),
}
#: Floats as large as this are some of the whole numbers there, and do not fit a DECIMAL.
WHOLE_FLOATS = {"FLOAT": 2**24, "DOUBLE": 2**53}
#: What a text must look like for a column of a root.
TEXT_FORMS = {
    "DATE": "'2026-01-31'",
    "TIME": "'12:30:00'",
    "TIMESTAMP": "'2026-01-31 12:30:00', without a time zone",
    "TIMESTAMP_LTZ": "'2026-01-31 12:30:00Z' or '2026-01-31 12:30:00+02:00'",
}
#: Characters of a value that an error shows.
SHOWN_VALUE = 60

_COUNT = AtomicType("INT", nullable=False)


def refused_rows(fault: str) -> InvalidInputError:
    """The error for a row that has a fault."""
    return InvalidInputError(f"The write was refused and nothing of it is visible: {fault}")


# -- columns ---------------------------------------------------------------------------------------------------------


def names_of_table(given: Sequence[str], schema: TableSchema, row_kind: str | None) -> tuple[list[str], str | None]:
    """The names of a frame's columns and of its row kind column as the table has them: `ID` is `id`."""
    counts = Counter(map(folded, given))
    twice = sorted({name for name in given if counts[folded(name)] > 1})
    if twice:
        raise InvalidInputError(
            f"The DataFrame has column {', '.join(twice)} more than once: rename or drop one (Spark ignores case)."
        )
    known = {folded(name): name for name in schema.field_names}
    names = [known.get(folded(name), name) for name in given]
    return names, None if row_kind is None else match(row_kind, names) or row_kind


def untouched_columns(names: Iterable[str], schema: TableSchema, options: TableOptions) -> list[str]:
    """Columns that a frame may leave out, as its rows do not touch them: in `partial-update`, those that can be NULL."""
    if options.merge_engine is not MergeEngine.PARTIAL_UPDATE:
        return []
    kept = {*names, *schema.primary_keys, *schema.partition_keys}
    return [field.name for field in schema.fields if field.name not in kept and field.type.nullable]


def check_columns(
    given: Sequence[str], schema: TableSchema, row_kind: str | None, fixed: Mapping[str, object]
) -> None:
    """Raise InvalidInputError unless a frame has the table's columns; ``fixed`` ones may be missing."""
    if row_kind is not None and row_kind not in given:
        raise InvalidInputError(f"Row kind column '{row_kind}' is not in the DataFrame, which has {', '.join(given)}.")
    missing = [name for name in schema.field_names if name not in given and name not in fixed]
    if missing:
        raise InvalidInputError(
            f"The DataFrame lacks column {', '.join(missing)} of the table: add it (as NULL where the row has none)."
        )
    extra = [name for name in given if name not in schema.field_names and name != row_kind]
    if extra:
        raise InvalidInputError(
            f"The table has no column {', '.join(extra)}: drop it from the DataFrame or add it to the table first "
            "(merge_schema=True does)."
        )


def key_schema(schema: TableSchema, given: Sequence[str]) -> TableSchema:
    """The table with the columns of its primary key alone, for a frame of keys that has the columns ``given``."""
    names, _ = names_of_table(given, schema, None)
    others = [name for name in names if name not in schema.primary_keys]
    missing = [name for name in schema.primary_keys if name not in names]
    if others or missing:
        wrong = f"lacks {', '.join(missing)}" if missing else f"has {', '.join(others)} too"
        raise InvalidInputError(
            f"keys must have the columns of the primary key, {', '.join(schema.primary_keys)}, and no others; it {wrong}."
        )
    return replace(schema, fields=tuple(field for field in schema.fields if field.name in schema.primary_keys))


def kind_column(options: TableOptions, row_kind: str | None) -> str | None:
    """The column that gives row kinds; None where every row is +I."""
    if row_kind is not None and options.rowkind_field is not None and row_kind != options.rowkind_field:
        raise InvalidInputError(
            f"The table takes row kinds from its column '{options.rowkind_field}' (rowkind.field): leave row_kind out."
        )
    return row_kind or options.rowkind_field


# -- types -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OnlyNull(DataType):
    """The type of what a frame has no value of: all is NULL. No column of a table has it."""

    nullable: bool = True

    @property
    def root(self) -> str:
        return "NULL"

    def _text(self) -> str:
        return "NULL"


def is_assignable(source: DataType, target: DataType) -> bool:
    """Whether every value of ``source`` is one of ``target``. NULL and lengths are judged row by row, and times that are
    finer than the column's are floored.
    """
    return _every(source, target, _is_assignable_atom)


def is_castable(source: DataType, target: DataType) -> bool:
    """Whether values of ``source`` are written to a column ``target`` where each of them fits (``cast='safe'``).

    A number fits where the column has the same number. For a float as a DECIMAL, or a DECIMAL or DOUBLE as another float,
    it is the one of the float's shortest decimal text (0.1). Floats from `WHOLE_FLOATS` on fit no DECIMAL. A text fits a
    time where it is one in ISO 8601 form. Times that are finer than the column's are floored.
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
    """The types of the keys and values of a map; the values of a MULTISET are its counts."""
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
    """Whether values of the types are equal or not by what they are, without a cast that a user should ask for."""
    numbers = (*INTEGER_ROOTS, "DECIMAL")
    return is_assignable(source, target) or (source.root in numbers and target.root in numbers)


def not_assignable(field: DataField, source: str, target: str, remedy: str | None = None) -> InvalidInputError:
    """The error for a column of another type; ``source`` and ``target`` are types by their names in the frame's world."""
    return InvalidInputError(
        f"Column '{field.name}' is {source} in the DataFrame and {target} in the table ({field.type.sql()}): "
        f"{remedy or f'cast it to {target} before the write'}."
    )


# -- values ----------------------------------------------------------------------------------------------------------


def does_not_fit(source: DataType, target: DataType) -> str:
    """The end of the fault of a value that its column does not have, which begins with the row, column and value."""
    fault = f" does not fit {target.with_nullable(True).sql()}"
    if source.root in STRING_ROOTS and target.root in TEXT_FORMS:
        fault += f", which takes text such as {TEXT_FORMS[target.root]}"
    return fault


def unfit_value(row: int, column: str, fault: str) -> InvalidInputError:
    """The error for a value that its column does not have (`does_not_fit`). Rows are counted from 1."""
    return refused_rows(f"row {row} of column '{column}': {fault}")


def shortened(text: str) -> str:
    """A value as an error shows it: in one line, the start of a long one."""
    text = " ".join(text.split())
    return text if len(text) <= SHOWN_VALUE else text[:SHOWN_VALUE] + "…"


def longest_value(kind: DataType) -> int | None:
    """The characters or bytes that a value may have; None where there is no bound."""
    limit = kind.length if isinstance(kind, AtomicType) else None
    return limit if limit is not None and limit < MAX_LENGTH else None


def too_long(field: DataField) -> str:
    """The fault of a value that is longer than its column allows."""
    fault = f"a value of column '{field.name}' is longer than {field.type.sql()} allows"
    if longest_value(field.type) == 1:
        fault += ", which is what the type means without a length: declare STRING or BYTES for values of any length"
    return fault


def null_column(name: str, schema: TableSchema) -> str:
    """The fault of NULL in a column that is NOT NULL."""
    what = "key column" if name in schema.primary_keys else "NOT NULL column"
    return f"{what} '{name}' is NULL in a row of the DataFrame: filter or fill such rows"


def null_part(path: str) -> str:
    """The fault of NULL in a part of a value that is NOT NULL; parts are ``r.x``, ``a.element``, ``m.value``."""
    return f"'{path}', which is NOT NULL, is NULL in a row of the DataFrame: filter or fill such rows"


def no_time_of_day(path: str, kind: DataType) -> str:
    """The fault of a TIME."""
    return f"'{path}' ({kind.sql()}) is a number of milliseconds from 0 to {DAY_MILLIS - 1}, and a row has another"


def other_partition(name: str, fixed: object) -> str:
    """The fault of a row that lies in another partition than the one that is overwritten."""
    return f"a row's '{name}' is not the overwritten partition's '{fixed}'"


def kinds_are_no_text(name: str) -> InvalidInputError:
    """The error for a row kind column of another type."""
    return InvalidInputError(f"Row kind column '{name}' must be a string of {_KINDS}.")


def no_row_kind(name: str) -> str:
    """The fault of an unknown row kind, without the kind, which follows."""
    return f"row kind of column '{name}' must be {_KINDS} and cannot be null: "
