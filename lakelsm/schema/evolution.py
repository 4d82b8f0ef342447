"""Schema changes, and how the columns of an old data file map to the table's columns: by field id.

Source: Paimon's `SchemaManager#generateTableSchema`. Type changes are limited to `type_widening.can_widen`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lakelsm.arguments import checked_flag, checked_name, checked_text, option_text, wrong_argument
from lakelsm.errors import InvalidInputError
from lakelsm.options import TableOptions
from lakelsm.options.option_change import check_option_change
from lakelsm.schema.identifiers import check_new_name, hint
from lakelsm.schema.renamed_options import rename_in_options
from lakelsm.schema.table_schema import SCHEMA_VERSION, TableSchema, assign_field_ids, check_columns, check_new_names
from lakelsm.schema.type_widening import can_widen
from lakelsm.schema.validation import validate_changed_table
from lakelsm.types import UNASSIGNED_ID, ArrayType, DataField, DataType, MapType, MultisetType, RowType

ColumnPath = str | tuple[str, ...]
"""A column name, or the path of a nested part: (row, member), (array, 'element'), (map, 'value', member)."""


@dataclass(frozen=True)
class AddColumn:
    """A new nullable column: last, first, or after another one."""

    name: ColumnPath
    type: DataType
    comment: str | None = None
    after: str | None = None
    first: bool = False

    def __post_init__(self) -> None:
        _check_path(self.name)
        _check_type(self.type)
        _check_comment(self.comment)
        _check_place(self.after, self.first)


@dataclass(frozen=True)
class DropColumn:
    """A column goes; its id is never used again."""

    name: ColumnPath

    def __post_init__(self) -> None:
        _check_path(self.name)


@dataclass(frozen=True)
class RenameColumn:
    """A column gets another name and keeps its id."""

    name: ColumnPath
    new_name: str

    def __post_init__(self) -> None:
        _check_path(self.name)
        checked_name("new_name", self.new_name, "the name of a column as text")


@dataclass(frozen=True)
class UpdateColumnType:
    """A column gets a wider type; its nullability stays."""

    name: ColumnPath
    type: DataType

    def __post_init__(self) -> None:
        _check_path(self.name)
        _check_type(self.type)


@dataclass(frozen=True)
class UpdateColumnNullability:
    """A column becomes nullable, or NOT NULL (only if 'alter-column-null-to-not-null.disabled' = 'false')."""

    name: ColumnPath
    nullable: bool

    def __post_init__(self) -> None:
        _check_path(self.name)
        checked_flag("nullable", self.nullable)


@dataclass(frozen=True)
class UpdateColumnComment:
    """A column's comment; None removes it."""

    name: ColumnPath
    comment: str | None

    def __post_init__(self) -> None:
        _check_path(self.name)
        _check_comment(self.comment)


@dataclass(frozen=True)
class MoveColumn:
    """A column goes to the front, after another one, or else to the end."""

    name: str
    after: str | None = None
    first: bool = False

    def __post_init__(self) -> None:
        checked_name("name", self.name, "the name of a column as text")
        _check_place(self.after, self.first)


@dataclass(frozen=True)
class UpdateComment:
    """The table's comment; None removes it."""

    comment: str | None

    def __post_init__(self) -> None:
        _check_comment(self.comment)


@dataclass(frozen=True)
class SetOption:
    """An option gets a value: text, or a number or boolean for its text."""

    key: str
    value: str

    def __post_init__(self) -> None:
        _check_key(self.key)
        object.__setattr__(self, "value", option_text(self.key, self.value))


@dataclass(frozen=True)
class RemoveOption:
    """An option goes back to its default."""

    key: str

    def __post_init__(self) -> None:
        _check_key(self.key)


ColumnChange = (
    AddColumn
    | DropColumn
    | RenameColumn
    | UpdateColumnType
    | UpdateColumnNullability
    | UpdateColumnComment
    | MoveColumn
)
SchemaChange = ColumnChange | UpdateComment | SetOption | RemoveOption

_Fields = tuple[DataField, ...]
_Edit = Callable[[_Fields, str], _Fields]


def check_changes(changes: Sequence[object]) -> None:
    """Raises InvalidInputError unless there are changes, and nothing else."""
    for change in changes:
        if not isinstance(change, SchemaChange):
            remedy = " (write *changes to pass those of a list)" if isinstance(change, (list, tuple)) else ""
            raise wrong_argument("a change", change, f"AddColumn, SetOption or another schema change{remedy}")
    if not changes:
        raise InvalidInputError("alter_table has no changes: pass AddColumn(…), SetOption(…) or other schema changes.")


def apply_changes(
    schema: TableSchema, changes: Sequence[SchemaChange], now_millis: int, has_snapshots: bool = True
) -> TableSchema:
    """The next schema (id + 1) after all changes, validated. The given schema stays as it is.

    `has_snapshots` tells whether the table has data: options fixed for life may change only before.
    Raises InvalidInputError naming the column or option that cannot change so.
    """
    changed, options = schema, dict(schema.options)
    touched: dict[str, str] = {}
    for change in changes:
        if isinstance(change, SetOption):
            if has_snapshots:
                check_option_change(schema.options, change.key, change.value)
            options[change.key] = touched[change.key] = change.value
        elif isinstance(change, RemoveOption):
            if has_snapshots and change.key in options:
                check_option_change(schema.options, change.key, None)
            options.pop(change.key, None)
            touched.pop(change.key, None)
        elif isinstance(change, UpdateComment):
            changed = replace(changed, comment=change.comment)
        else:
            changed = _change_column(changed, change)
            if isinstance(change, RenameColumn) and len(path := _path(change.name)) == 1:
                options = rename_in_options(options, path[0], change.new_name)
    changed = replace(
        changed, id=schema.id + 1, options=options, time_millis=now_millis, version=SCHEMA_VERSION
    )
    check_columns(changed.fields, changed.primary_keys, changed.partition_keys)
    validate_changed_table(changed, touched)
    return changed


def column_mapping(
    file_schema: TableSchema, table_schema: TableSchema
) -> list[tuple[DataField, DataField | None]]:
    """(table column, the file's column of the same id or None) for every table column, in the table's order.

    The file's column gives the name to read by and the type to cast from; None reads as null.
    """
    by_id = {column.id: column for column in file_schema.fields}
    return [(column, by_id.get(column.id)) for column in table_schema.fields]


def _change_column(schema: TableSchema, change: ColumnChange) -> TableSchema:
    if isinstance(change, AddColumn):
        return _add_column(schema, change)
    if isinstance(change, MoveColumn):
        moved = _place(_without(schema.fields, change.name), _find(schema.fields, change.name), change)
        return replace(schema, fields=moved)
    path = _path(change.name)
    if isinstance(change, DropColumn):
        _refuse_key(schema, path, "drop", primary=True)
        fields = _edit_fields(schema.fields, path, _without)
        return replace(schema, fields=fields)
    if isinstance(change, RenameColumn):
        return _rename_column(schema, path, change.new_name)
    if isinstance(change, UpdateColumnType):
        _refuse_key(schema, path, "change the type of", primary=True)
        edit = _each(lambda field: _widened(field, change.type, path))
    elif isinstance(change, UpdateColumnNullability):
        if change.nullable:
            _refuse_key(schema, path, "make nullable", primary=True)
        locked = TableOptions.parse(schema.options).alter_column_null_to_not_null_disabled
        edit = _each(lambda field: _with_nullability(field, change.nullable, locked, path))
    else:
        edit = _each(lambda field: replace(field, description=change.comment))
    return replace(schema, fields=_edit_fields(schema.fields, path, edit))


def _add_column(schema: TableSchema, change: AddColumn) -> TableSchema:
    path = _path(change.name)
    if not change.type.nullable:
        raise InvalidInputError(
            f"column '{'.'.join(path)}' cannot be added as NOT NULL, because the rows there are have no "
            "value; "
            f"add it as {change.type.with_nullable(True).sql()}"
        )
    new = DataField(UNASSIGNED_ID, path[-1], change.type, change.comment)
    check_new_names([new])
    (new,), highest = assign_field_ids([new], schema.highest_field_id)
    before_partition = TableOptions.parse(schema.options).add_column_before_partition and len(path) == 1

    def insert(fields: _Fields, name: str) -> _Fields:
        _refuse_existing(fields, name)
        if change.first or change.after is not None or not before_partition:
            return _place(fields, new, change)
        index = next((i for i, f in enumerate(fields) if f.name in schema.partition_keys), len(fields))
        return (*fields[:index], new, *fields[index:])

    return replace(schema, fields=_edit_fields(schema.fields, path, insert), highest_field_id=highest)


def _rename_column(schema: TableSchema, path: tuple[str, ...], new_name: str) -> TableSchema:
    _refuse_key(schema, path, "rename", primary=False)
    check_new_name(new_name)

    def rename(fields: _Fields, name: str) -> _Fields:
        _find(fields, name)
        _refuse_existing(fields, new_name)
        return tuple(replace(field, name=new_name) if field.name == name else field for field in fields)

    primary = schema.primary_keys
    if len(path) == 1:
        primary = tuple(new_name if name == path[0] else name for name in primary)
    return replace(schema, fields=_edit_fields(schema.fields, path, rename), primary_keys=primary)


def _widened(field: DataField, new: DataType, path: tuple[str, ...]) -> DataField:
    if not can_widen(field.type, new):
        raise InvalidInputError(
            f"column '{'.'.join(path)}' cannot change from {field.type.sql()} to {new.sql()} without losing "
            "values; choose a wider type, or add a column and fill it"
        )
    if _contains_row(new) and field.type.with_nullable(True) != new.with_nullable(True):
        raise InvalidInputError(f"change the members of '{'.'.join(path)}' one by one, by their path")
    return replace(field, type=new.with_nullable(field.type.nullable))


def _contains_row(data_type: DataType) -> bool:
    if isinstance(data_type, MapType):
        return _contains_row(data_type.key) or _contains_row(data_type.value)
    if isinstance(data_type, (ArrayType, MultisetType)):
        return _contains_row(data_type.element)
    return isinstance(data_type, RowType)


def _with_nullability(field: DataField, nullable: bool, locked: bool, path: tuple[str, ...]) -> DataField:
    if locked and field.type.nullable and not nullable:
        raise InvalidInputError(
            f"column '{'.'.join(path)}' cannot become NOT NULL, because rows may hold nulls; set option "
            "'alter-column-null-to-not-null.disabled' = 'false' first if they hold none"
        )
    return replace(field, type=field.type.with_nullable(nullable))


def _edit_fields(fields: _Fields, path: tuple[str, ...], edit: _Edit) -> _Fields:
    """The fields after `edit(siblings, last name)` was applied where the path ends."""
    if len(path) == 1:
        edited = edit(fields, path[0])
        if not edited:
            raise InvalidInputError(f"column '{path[0]}' is the only one; a table or ROW keeps at least one")
        return edited
    target = _find(fields, path[0])
    changed = replace(target, type=_edit_type(target.type, path[1:], edit))
    return tuple(changed if field is target else field for field in fields)


def _edit_type(data_type: DataType, path: tuple[str, ...], edit: _Edit) -> DataType:
    if isinstance(data_type, RowType):
        return replace(data_type, fields=_edit_fields(data_type.fields, path, edit))
    if isinstance(data_type, (ArrayType, MultisetType)) and path[0] == "element":
        return replace(data_type, element=_edit_part("element", data_type.element, path, edit))
    if isinstance(data_type, MapType) and path[0] == "value":
        return replace(data_type, value=_edit_part("value", data_type.value, path, edit))
    raise InvalidInputError(
        f"type {data_type.sql()} has no part '{path[0]}'; a path goes on by member, element or value"
    )


def _edit_part(name: str, data_type: DataType, path: tuple[str, ...], edit: _Edit) -> DataType:
    edited = _edit_fields((DataField(UNASSIGNED_ID, name, data_type),), path, edit)
    if [field.name for field in edited] != [name]:
        raise InvalidInputError(
            f"the {name} of an ARRAY or MAP can only change its type, nullability or members"
        )
    return edited[0].type


def _each(change: Callable[[DataField], DataField]) -> _Edit:
    def edit(fields: _Fields, name: str) -> _Fields:
        target = _find(fields, name)
        return tuple(change(field) if field is target else field for field in fields)

    return edit


def _path(name: ColumnPath) -> tuple[str, ...]:
    return (name,) if isinstance(name, str) else tuple(name)


def _check_path(name: object) -> None:
    wanted = "the name of a column, or the path of a nested one such as ('row', 'member')"
    if not isinstance(name, (str, tuple, list)) or not name:
        raise wrong_argument("name", name, wanted)
    for part in [name] if isinstance(name, str) else name:
        checked_name("name", part, wanted)


def _check_type(data_type: object) -> None:
    if not isinstance(data_type, DataType):
        remedy = f"lakelsm.types.parse_type({data_type!r})" if isinstance(data_type, str) else "parse_type('BIGINT')"
        raise wrong_argument("type", data_type, f"a type of lakelsm.types: write {remedy}")


def _check_comment(comment: str | None) -> None:
    checked_text("comment", comment, "a text", optional=True, blank=True)


def _check_place(after: str | None, first: bool) -> None:
    checked_name("after", after, "the name of a column as text", optional=True)
    if checked_flag("first", first) and after is not None:
        raise InvalidInputError(f"first is True and after is {after!r}; give one of them.")


def _check_key(key: str) -> None:
    checked_name("key", key, "the key of an option as text")


def _find(fields: _Fields, name: str) -> DataField:
    for field in fields:
        if field.name == name:
            return field
    names = [field.name for field in fields]
    raise InvalidInputError(f"no column '{name}'{hint(name, names)}; there are {', '.join(names)}")


def _without(fields: _Fields, name: str) -> _Fields:
    target = _find(fields, name)
    return tuple(field for field in fields if field is not target)


def _place(fields: _Fields, field: DataField, where: AddColumn | MoveColumn) -> _Fields:
    if where.first:
        return (field, *fields)
    if where.after is None:
        return (*fields, field)
    index = fields.index(_find(fields, where.after)) + 1
    return (*fields[:index], field, *fields[index:])


def _refuse_existing(fields: _Fields, name: str) -> None:
    if any(field.name == name for field in fields):
        raise InvalidInputError(f"column '{name}' exists already; choose another name")


def _refuse_key(schema: TableSchema, path: tuple[str, ...], action: str, primary: bool) -> None:
    if len(path) > 1:
        return
    if path[0] in schema.partition_keys:
        raise InvalidInputError(f"cannot {action} the partition column '{path[0]}'; create a new table")
    if primary and path[0] in schema.primary_keys:
        raise InvalidInputError(f"cannot {action} the primary key column '{path[0]}'; create a new table")


__all__ = [
    "AddColumn",
    "ColumnPath",
    "DropColumn",
    "MoveColumn",
    "RemoveOption",
    "RenameColumn",
    "SchemaChange",
    "SetOption",
    "UpdateColumnComment",
    "UpdateColumnNullability",
    "UpdateColumnType",
    "UpdateComment",
    "apply_changes",
    "can_widen",
    "check_changes",
    "column_mapping",
]
