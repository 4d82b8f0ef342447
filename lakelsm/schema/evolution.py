"""The next schema of a table after schema changes.

Source: Paimon's `SchemaManager#generateTableSchema`. Type changes are limited to `type_widening.can_change`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from lakelsm.errors import InvalidInputError
from lakelsm.options import TableOptions
from lakelsm.options.field_options import FIELDS_PREFIX, split_field_key
from lakelsm.options.file_index_options import FILE_INDEX_PREFIX, INDEX_OPTIONS, columns_key, split_index_key
from lakelsm.options.option_change import check_option_change
from lakelsm.schema.identifiers import check_new_name, unknown_column
from lakelsm.schema.table_schema import SCHEMA_VERSION, TableSchema, assign_field_ids, check_columns, check_new_names
from lakelsm.schema.type_widening import can_change, can_widen
from lakelsm.schema.validation import validate_changed_table
from lakelsm.schema_changes import (
    AddColumn,
    ColumnChange,
    DropColumn,
    MoveColumn,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateColumnNullability,
    UpdateColumnType,
    UpdateComment,
    column_path,
)
from lakelsm.types import UNASSIGNED_ID, ArrayType, DataField, DataType, MapType, MultisetType, RowType

_Fields = tuple[DataField, ...]
_Edit = Callable[[_Fields, str], _Fields]


def apply_changes(
    schema: TableSchema, changes: Sequence[SchemaChange], now_millis: int, has_snapshots: bool = True
) -> TableSchema:
    """Return the next schema (id + 1) after all changes, validated. The given schema is not modified.

    `has_snapshots`: the table has data, so that its immutable options cannot change. Raises InvalidInputError with the
    column or option that cannot change in this way.
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
            if isinstance(change, RenameColumn) and len(path := column_path(change.name)) == 1:
                options = rename_in_options(options, path[0], change.new_name)
    changed = replace(
        changed, id=schema.id + 1, options=options, time_millis=now_millis, version=SCHEMA_VERSION
    )
    check_columns(changed.fields, changed.primary_keys, changed.partition_keys)
    validate_changed_table(changed, touched)
    return changed


def _change_column(schema: TableSchema, change: ColumnChange) -> TableSchema:
    if isinstance(change, AddColumn):
        return _add_column(schema, change)
    if isinstance(change, MoveColumn):
        moved = _insert(_without(schema.fields, change.name), _find(schema.fields, change.name), change)
        return replace(schema, fields=moved)
    path = column_path(change.name)
    if isinstance(change, DropColumn):
        _refuse_key(schema, path, "drop", primary=True)
        fields = _edit_fields(schema.fields, path, _without)
        return replace(schema, fields=fields)
    if isinstance(change, RenameColumn):
        return _rename_column(schema, path, change.new_name)
    if isinstance(change, UpdateColumnType):
        _refuse_key(schema, path, "change the type of", primary=True)
        edit = _each(lambda field: _widened(field, change.data_type, path))
    elif isinstance(change, UpdateColumnNullability):
        if change.nullable:
            _refuse_key(schema, path, "make nullable", primary=True)
        options = TableOptions.parse(schema.options, for_reads=True)
        locked = options.alter_column_null_to_not_null_disabled
        edit = _each(lambda field: _with_nullability(field, change.nullable, locked, path))
    else:
        edit = _each(lambda field: replace(field, description=change.comment))
    return replace(schema, fields=_edit_fields(schema.fields, path, edit))


def _add_column(schema: TableSchema, change: AddColumn) -> TableSchema:
    path = column_path(change.name)
    if not change.data_type.nullable:
        raise InvalidInputError(
            f"column '{'.'.join(path)}' cannot be added as NOT NULL, because existing rows have no value. Add it as "
            f"{change.data_type.with_nullable(True).sql()}."
        )
    new = DataField(UNASSIGNED_ID, path[-1], change.data_type, change.comment)
    check_new_names([new])
    (new,), highest = assign_field_ids([new], schema.highest_field_id)
    options = TableOptions.parse(schema.options, for_reads=True)
    before_partition = options.add_column_before_partition and len(path) == 1

    def insert(fields: _Fields, name: str) -> _Fields:
        _refuse_existing(fields, name)
        if change.first or change.after is not None or not before_partition:
            return _insert(fields, new, change)
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
            f"column '{'.'.join(path)}' cannot change from {field.type.sql()} to {new.sql()} without loss of values. "
            "Choose a wider type, or add a new column."
        )
    if not can_change(field.type, new):
        raise InvalidInputError(
            f"column '{'.'.join(path)}' cannot change from {field.type.sql()} to {new.sql()}: Java Paimon could not read "
            "the table afterwards. Add a new column."
        )
    if _contains_row(new) and field.type.with_nullable(True) != new.with_nullable(True):
        raise InvalidInputError(f"column '{'.'.join(path)}': change its members one by one, by their paths.")
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
            f"column '{'.'.join(path)}' cannot become NOT NULL, because rows may have NULL. If none has, first set "
            "'alter-column-null-to-not-null.disabled' = 'false'."
        )
    return replace(field, type=field.type.with_nullable(nullable))


def _edit_fields(fields: _Fields, path: tuple[str, ...], edit: _Edit) -> _Fields:
    """Apply `edit(siblings, last name)` at the end of the path and return all fields."""
    if len(path) == 1:
        edited = edit(fields, path[0])
        if not edited:
            raise InvalidInputError(f"column '{path[0]}' is the only one; a table or ROW needs at least one.")
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
        f"type {data_type.sql()} has no part '{path[0]}'. A path continues with a member, 'element' or 'value'."
    )


def _edit_part(name: str, data_type: DataType, path: tuple[str, ...], edit: _Edit) -> DataType:
    edited = _edit_fields((DataField(UNASSIGNED_ID, name, data_type),), path, edit)
    if [field.name for field in edited] != [name]:
        raise InvalidInputError(
            f"the {name} of an ARRAY or MAP can only change its type, nullability or members."
        )
    return edited[0].type


def _each(change: Callable[[DataField], DataField]) -> _Edit:
    def edit(fields: _Fields, name: str) -> _Fields:
        target = _find(fields, name)
        return tuple(change(field) if field is target else field for field in fields)

    return edit


def _find(fields: _Fields, name: str) -> DataField:
    for field in fields:
        if field.name == name:
            return field
    names = [field.name for field in fields]
    raise InvalidInputError(unknown_column(name, names))


def _without(fields: _Fields, name: str) -> _Fields:
    target = _find(fields, name)
    return tuple(field for field in fields if field is not target)


def _insert(fields: _Fields, field: DataField, where: AddColumn | MoveColumn) -> _Fields:
    if where.first:
        return (field, *fields)
    if where.after is None:
        return (*fields, field)
    index = fields.index(_find(fields, where.after)) + 1
    return (*fields[:index], field, *fields[index:])


def _refuse_existing(fields: _Fields, name: str) -> None:
    if any(field.name == name for field in fields):
        raise InvalidInputError(f"column '{name}' already exists. Choose another name.")


def _refuse_key(schema: TableSchema, path: tuple[str, ...], action: str, primary: bool) -> None:
    if len(path) > 1:
        return
    if path[0] in schema.partition_keys:
        raise InvalidInputError(f"column '{path[0]}': cannot {action} a partition column. Create a new table.")
    if primary and path[0] in schema.primary_keys:
        raise InvalidInputError(f"column '{path[0]}': cannot {action} a primary key column. Create a new table.")


_NAMES_IN_VALUE = (
    *map(columns_key, INDEX_OPTIONS),
    "bucket-key",
    "sequence.field",
    "rowkind.field",
    "record-level.time-field",
    "partial-update.remove-record-on-sequence-group",
    "changelog-producer.row-deduplicate-ignore-fields",
)
_NAMES_IN_FIELD_VALUE = ("sequence-group",)


def rename_in_options(options: Mapping[str, str], old: str, new: str) -> dict[str, str]:
    """Rename column `old` to `new` in the keys (`fields.<columns>.<name>`) and values of options."""
    renamed: dict[str, str] = {}
    for key, text in options.items():
        split = split_field_key(key)
        if split is not None:
            columns, name = split
            moved = text if name not in _NAMES_IN_FIELD_VALUE else _rename(text, old, new)
            renamed[f"{FIELDS_PREFIX}{_rename(columns, old, new)}.{name}"] = moved
        elif (of_index := split_index_key(key)) is not None and of_index[1]:
            kind, column, name = of_index
            renamed[f"{FILE_INDEX_PREFIX}{kind}.{_rename(column, old, new)}.{name}"] = text
        elif key in _NAMES_IN_VALUE:
            renamed[key] = _rename(text, old, new)
        else:
            renamed[key] = text
    return renamed


def _rename(names: str, old: str, new: str) -> str:
    return ",".join(new if name.strip() == old else name for name in names.split(","))
