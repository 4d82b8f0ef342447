"""The schema changes with which a table can store a frame (``merge_schema=True``).

They depend on types only. Source of the type changes: `type_widening.can_change`, without those that change old values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lakelsm.errors import InvalidInputError, error_context
from lakelsm.schema.identifiers import folded
from lakelsm.schema.row_rules import OnlyNull, is_assignable, is_castable, names_of_table
from lakelsm.schema.table_schema import TableSchema
from lakelsm.schema.type_widening import can_change
from lakelsm.schema_changes import AddColumn, SchemaChange, UpdateColumnType
from lakelsm.types import (
    BINARY_ROOTS,
    MAX_LENGTH,
    STRING_ROOTS,
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    RowType,
)

_MICROS, _NANOS = 6, 9
_TIMES = ("TIMESTAMP", "TIMESTAMP_LTZ")
_Path = tuple[str, ...]


@dataclass(frozen=True)
class FrameColumn:
    """A column of a frame: name, comment, and Paimon's type of its values (`OnlyNull` if all are NULL)."""

    name: str
    type: DataType
    comment: str | None = None


def merge_changes(
    schema: TableSchema, given: Sequence[FrameColumn], row_kind: str | None = None, *, safe_casts: bool = True
) -> tuple[SchemaChange, ...]:
    """Return the changes with which ``schema`` accepts the columns of a frame; empty if it already does.

    A new column is added as nullable. A column gets the type of the frame if that type holds all values of the column's
    type and more. Other columns do not change: with ``safe_casts`` the write casts them value by value if their types
    allow it. Columns that the frame lacks are not checked here. Raises InvalidInputError, with the column and both types,
    for a column that can be neither changed nor cast, and for a new column whose values are all NULL.
    """
    names, row_kind = names_of_table([column.name for column in given], schema, row_kind)
    keys = {*schema.primary_keys, *schema.partition_keys, *schema.bucket_keys}
    changes: list[SchemaChange] = []
    added: list[SchemaChange] = []
    for name, column in zip(names, given):
        if name in schema.field_names:
            merge = _Merge(name in keys, safe_casts)
            changes += merge.changes((name,), column.type, schema.field(name).type)
        elif name != row_kind:
            with error_context(f"column '{name}'"):
                added.append(AddColumn(name, inferred_type(column.type), comment=column.comment))
    return (*changes, *added)


def inferred_type(kind: DataType) -> DataType:
    """Return the type of a new column for values of a type: nullable, with times of at least microseconds.

    Raises InvalidInputError if the values, or a part of them, are all NULL, so that the type is unknown.
    """
    if isinstance(kind, OnlyNull):
        raise InvalidInputError(
            "all values are NULL, so that the type is unknown. Cast the column, or pass the types of the columns."
        )
    if isinstance(kind, ArrayType):
        return ArrayType(inferred_type(kind.element))
    if isinstance(kind, MapType):
        return MapType(inferred_type(kind.key).with_nullable(False), inferred_type(kind.value))
    if isinstance(kind, RowType):
        return RowType(tuple(replace(member, type=inferred_type(member.type)) for member in kind.fields))
    if isinstance(kind, AtomicType) and kind.root in _TIMES:
        kind = replace(kind, precision=_NANOS if kind.precision == _NANOS else _MICROS)
    return kind.with_nullable(True)


@dataclass(frozen=True)
class _Merge:
    """The comparison of a frame's column with the table's column."""

    is_key: bool
    safe_casts: bool

    def changes(self, path: _Path, source: DataType, target: DataType) -> Iterator[SchemaChange]:
        """Yield the changes of the column or part at a path, whose type in the frame is ``source``."""
        if isinstance(source, RowType) and isinstance(target, RowType):
            yield from self._changes_of_row(path, source, target)
        elif isinstance(source, ArrayType) and isinstance(target, ArrayType):
            yield from self.changes((*path, "element"), source.element, target.element)
        elif isinstance(source, MapType) and isinstance(target, MapType):
            self._check_cast(path, source.key, target.key)  # The type of a map's keys cannot change.
            yield from self.changes((*path, "value"), source.value, target.value)
        else:
            wider = None if self.is_key else _wider(source, target)
            if wider is not None:
                yield UpdateColumnType(path[0] if len(path) == 1 else path, wider.with_nullable(True))
            else:
                self._check_cast(path, source, target)

    def _changes_of_row(self, path: _Path, source: RowType, target: RowType) -> Iterator[SchemaChange]:
        """Match members in order, as rows are written; a new member gets its position in the frame."""
        known = {folded(member.name): member for member in target.fields}
        given = [folded(member.name) for member in source.fields]
        if [name for name in given if name in known] != list(known) or len(set(given)) < len(given):
            raise self._refused(path, source, target, "a ROW needs its members in the table's order, each once")
        previous: str | None = None
        last = target.fields[-1].name
        for member in source.fields:
            own = known.get(folded(member.name))
            if own is not None:
                yield from self.changes((*path, own.name), member.type, own.type)
                previous = own.name
                continue
            name = (*path, member.name)
            with error_context(f"column '{'.'.join(name)}'"):
                kind = inferred_type(member.type)
            if previous is None:
                yield AddColumn(name, kind, first=True)
            else:
                yield AddColumn(name, kind, after=None if previous == last else previous)
            last = member.name if previous == last else last
            previous = member.name

    def _check_cast(self, path: _Path, source: DataType, target: DataType) -> None:
        """Raise InvalidInputError unless a write can store values of ``source`` as ``target``."""
        if not is_assignable(source, target) and not (self.safe_casts and is_castable(source, target)):
            reason = "the type of a key column cannot change" if self.is_key else None
            raise self._refused(path, source, target, reason)

    def _refused(self, path: _Path, source: DataType, target: DataType, reason: str | None) -> InvalidInputError:
        given, own = source.with_nullable(True).sql(), target.with_nullable(True).sql()
        cause = reason or f"a column of type {own} cannot become {given} and keep its values"
        return InvalidInputError(
            f"column '{'.'.join(path)}' is {given} in the frame and {own} in the table, and {cause}. Cast it to {own} "
            "before the write."
        )


def _wider(source: DataType, target: DataType) -> DataType | None:
    """Return the wider type of a column for values of ``source``; None if its type holds them, or cannot change.

    Text and bytes without a declared length need no change: each value is compared with the length of the column.
    """
    if not isinstance(source, AtomicType) or not isinstance(target, AtomicType):
        return None
    wider: AtomicType = source
    for roots, root in ((STRING_ROOTS, "VARCHAR"), (BINARY_ROOTS, "VARBINARY")):
        if source.root in roots and target.root in roots:
            wanted, own = source.length or MAX_LENGTH, target.length or MAX_LENGTH
            if wanted == MAX_LENGTH or wanted <= own:
                return None
            wider = AtomicType(root, length=wanted)
            return wider if can_change(target, wider) else None
    if source.root == target.root and source.root in _TIMES:
        is_wider = (source.precision or 0) > (target.precision or 0)
    else:
        is_wider = not is_assignable(source, target) and is_assignable(target, source)
    return wider if is_wider and can_change(target, wider) else None
