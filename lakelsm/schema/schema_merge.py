"""Schema changes after which a table has the columns and the values of a frame (``merge_schema=True``).

Types alone decide here. Source of the type changes: `type_widening.can_change`, less those that change old values.
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
    """A column of a frame: its name and comment, and Paimon's type of its values (`OnlyNull` where it has none)."""

    name: str
    type: DataType
    comment: str | None = None


def merge_changes(
    schema: TableSchema, given: Sequence[FrameColumn], row_kind: str | None = None, *, safe_casts: bool = True
) -> tuple[SchemaChange, ...]:
    """The changes after which ``schema`` takes the columns of a frame; empty if it already takes them.

    A column that the table does not have is added as nullable. The type of a column becomes the frame's where the frame's
    has values that the column's own does not have, and all of the column's own. Other columns do not change: with
    ``safe_casts`` the write casts them value by value where their types permit it. Columns that the frame lacks are not
    checked here. Raises InvalidInputError, with the column and both types, for a column that can be neither changed nor
    cast, and for a new column whose values are all NULL.
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
            with error_context(f"Column '{name}'"):
                added.append(AddColumn(name, inferred_type(column.type), comment=column.comment))
    return (*changes, *added)


def inferred_type(kind: DataType) -> DataType:
    """The type of a new column for values of a type: it can be NULL, and its times have microseconds or finer.

    Raises InvalidInputError where a part of the values is all NULL, so that its type is not known.
    """
    if isinstance(kind, OnlyNull):
        raise InvalidInputError("it has only NULLs, so its type is not known: cast it, or give the columns' types")
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
    """A column of the frame beside the table's column."""

    is_key: bool
    safe_casts: bool

    def changes(self, path: _Path, source: DataType, target: DataType) -> Iterator[SchemaChange]:
        """The changes of what is at a path, whose values have the type ``source`` in the frame."""
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
        """Members are matched in their order, as rows are written: a new one comes where the frame has it."""
        known = {folded(member.name): member for member in target.fields}
        given = [folded(member.name) for member in source.fields]
        if [name for name in given if name in known] != list(known) or len(set(given)) < len(given):
            raise self._refused(path, source, target, "the members of a ROW must be in the table's order, each once")
        previous: str | None = None
        last = target.fields[-1].name
        for member in source.fields:
            own = known.get(folded(member.name))
            if own is not None:
                yield from self.changes((*path, own.name), member.type, own.type)
                previous = own.name
                continue
            name = (*path, member.name)
            with error_context(f"Column '{'.'.join(name)}'"):
                kind = inferred_type(member.type)
            if previous is None:
                yield AddColumn(name, kind, first=True)
            else:
                yield AddColumn(name, kind, after=None if previous == last else previous)
            last = member.name if previous == last else last
            previous = member.name

    def _check_cast(self, path: _Path, source: DataType, target: DataType) -> None:
        """Raise InvalidInputError unless the write takes values of a type for a type that stays."""
        if not is_assignable(source, target) and not (self.safe_casts and is_castable(source, target)):
            reason = "the type of a key column cannot change" if self.is_key else None
            raise self._refused(path, source, target, reason)

    def _refused(self, path: _Path, source: DataType, target: DataType, reason: str | None) -> InvalidInputError:
        given, own = source.with_nullable(True).sql(), target.with_nullable(True).sql()
        cause = reason or f"a column of type {own} cannot become {given} and keep its values"
        return InvalidInputError(
            f"Column '{'.'.join(path)}' is {given} in the frame and {own} in the table, and {cause}. Cast it to {own} "
            "before the write."
        )


def _wider(source: DataType, target: DataType) -> DataType | None:
    """The type that a column takes for values of ``source``; None where its own has them, or where it cannot change.

    Text and bytes without a declared length ask for none: each value is compared with the length of the column.
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
