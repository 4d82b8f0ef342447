"""ALTER TABLE: columns, properties, partitions and tags. The first keyword is taken already."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lakelsm.errors import UnsupportedFeatureError
from lakelsm.expressions.tokens import Tokens
from lakelsm.schema_changes import (
    AddColumn,
    DropColumn,
    MoveColumn,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateColumnComment,
    UpdateColumnNullability,
    UpdateColumnType,
    UpdateComment,
)
from lakelsm.sql.syntax.change_parser import TABLE, static_partition
from lakelsm.sql.syntax.statements import (
    AlterTable,
    CreateTag,
    DeleteTag,
    DropPartition,
    Name,
    RenameTable,
    RenameTag,
    Statement,
)
from lakelsm.sql.syntax.table_parser import DATABASE, column_type, key_values, property_key

_UNITS = ("DAYS", "HOURS", "MINUTES")


def alter(tokens: Tokens) -> Statement:
    """Parse ALTER TABLE."""
    if tokens.peek().text.upper() in DATABASE or tokens.has("VIEW"):
        raise UnsupportedFeatureError(f"SQL: ALTER {tokens.peek().text.upper()} is not supported.")
    tokens.expect("TABLE")
    table = tokens.qualified_name(TABLE)
    for words, parse in _ALTERATIONS.items():
        if tokens.accept(*words):
            return parse(tokens, table)
    for word in ("ADD PARTITION", "RECOVER PARTITIONS", "REPLACE COLUMNS", "SET LOCATION", "SET SERDE"):
        if tokens.has(*word.split()):
            raise UnsupportedFeatureError(f"SQL: ALTER TABLE … {word} is not supported.")
    tokens.fail("ADD, DROP, RENAME, ALTER, SET, UNSET, CREATE TAG, REPLACE TAG or DELETE TAG")


def _rename_table(tokens: Tokens, table: Name) -> RenameTable:
    return RenameTable(table, tokens.qualified_name("the new name of the table"))


def _set_properties(tokens: Tokens, table: Name) -> AlterTable:
    changes: list[SchemaChange] = []
    for key, value in key_values(tokens).items():
        changes.append(UpdateComment(value) if key == "comment" else SetOption(key, value))
    return AlterTable(table, tuple(changes))


def _unset_properties(tokens: Tokens, table: Name) -> AlterTable:
    tokens.accept("IF", "EXISTS")
    tokens.expect("(")
    keys = [property_key(tokens)]
    while tokens.accept(","):
        keys.append(property_key(tokens))
    tokens.expect(")")
    return AlterTable(table, tuple(UpdateComment(None) if key == "comment" else RemoveOption(key) for key in keys))


def _path(tokens: Tokens) -> str | tuple[str, ...]:
    path = tokens.qualified_name("the name of a column")
    return path[0] if len(path) == 1 else path


def _add_columns(tokens: Tokens, table: Name) -> AlterTable:
    in_parentheses = tokens.accept("(")
    changes = [_added_column(tokens)]
    while tokens.accept(","):
        changes.append(_added_column(tokens))
    if in_parentheses:
        tokens.expect(")")
    return AlterTable(table, tuple(changes))


def _added_column(tokens: Tokens) -> AddColumn:
    path = _path(tokens)
    shown = path if isinstance(path, str) else ".".join(path)
    kind = column_type(tokens, shown)
    comment = after = None
    first = False
    while not tokens.at_end and not tokens.has(",") and not tokens.has(")"):
        if tokens.has("NOT", "NULL"):
            raise UnsupportedFeatureError(f"SQL: column '{shown}': a new column can be NULL. Remove NOT NULL.")
        if tokens.has("DEFAULT"):
            raise UnsupportedFeatureError(f"SQL: column '{shown}': DEFAULT is not supported.")
        if tokens.accept("COMMENT"):
            comment = tokens.text("the comment as text")
        elif tokens.accept("FIRST"):
            first = True
        elif tokens.accept("AFTER"):
            after = tokens.name("the name of a column")
        else:
            tokens.fail("COMMENT, FIRST, AFTER, ',' or ')'")
    return AddColumn(path, kind, comment=comment, after=after, first=first)


def _drop_columns(tokens: Tokens, table: Name) -> AlterTable:
    if_exists = tokens.accept("IF", "EXISTS")
    in_parentheses = tokens.accept("(")
    paths = [_path(tokens)]
    while tokens.accept(","):
        paths.append(_path(tokens))
    if in_parentheses:
        tokens.expect(")")
    return AlterTable(table, tuple(map(DropColumn, paths)), if_exists)


def _rename_column(tokens: Tokens, table: Name) -> AlterTable:
    path = _path(tokens)
    tokens.expect("TO")
    return AlterTable(table, (RenameColumn(path, tokens.name("the new name of the column")),))


def _alter_column(tokens: Tokens, table: Name) -> AlterTable:
    path = _path(tokens)
    shown = path if isinstance(path, str) else ".".join(path)
    change: SchemaChange
    if tokens.accept("TYPE"):
        change = UpdateColumnType(path, column_type(tokens, shown))
    elif tokens.accept("COMMENT"):
        change = UpdateColumnComment(path, tokens.text("the comment as text"))
    elif tokens.accept("SET", "NOT", "NULL"):
        change = UpdateColumnNullability(path, False)
    elif tokens.accept("DROP", "NOT", "NULL"):
        change = UpdateColumnNullability(path, True)
    elif tokens.has("SET", "DEFAULT") or tokens.has("DROP", "DEFAULT"):
        raise UnsupportedFeatureError(f"SQL: column '{shown}': DEFAULT is not supported.")
    elif tokens.has("FIRST") or tokens.has("AFTER"):
        if not isinstance(path, str):
            raise UnsupportedFeatureError(f"SQL: column '{shown}': only columns of the table can be moved.")
        first = tokens.accept_one("FIRST", "AFTER") == "FIRST"
        change = MoveColumn(path, first=True) if first else MoveColumn(path, after=tokens.name("the name of a column"))
    else:
        tokens.fail("TYPE, COMMENT, SET NOT NULL, DROP NOT NULL, FIRST or AFTER")
    return AlterTable(table, (change,))


def _drop_partition(tokens: Tokens, table: Name) -> DropPartition:
    return _partitions(tokens, table, if_exists=False)


def _drop_existing_partition(tokens: Tokens, table: Name) -> DropPartition:
    return _partitions(tokens, table, if_exists=True)


def _partitions(tokens: Tokens, table: Name, if_exists: bool) -> DropPartition:
    found = [static_partition(tokens)]
    while tokens.accept(","):
        tokens.expect("PARTITION")
        found.append(static_partition(tokens))
    tokens.accept("PURGE")
    return DropPartition(table, tuple(found), if_exists)


def _create_tag(tokens: Tokens, table: Name) -> CreateTag:
    return _tag(tokens, table, create=True, replace=False, if_not_exists=tokens.accept("IF", "NOT", "EXISTS"))


def _replace_tag(tokens: Tokens, table: Name) -> CreateTag:
    return _tag(tokens, table, create=False, replace=True)


def _create_or_replace_tag(tokens: Tokens, table: Name) -> CreateTag:
    return _tag(tokens, table, create=True, replace=True)


def _tag(tokens: Tokens, table: Name, *, create: bool, replace: bool, if_not_exists: bool = False) -> CreateTag:
    tag = tokens.name("the name of a tag")
    snapshot = tokens.integer("the id of a snapshot") if tokens.accept("AS", "OF", "VERSION") else None
    retain = None
    if tokens.accept("RETAIN"):
        count = tokens.integer("a number")
        unit = tokens.accept_one(*_UNITS, *(unit[:-1] for unit in _UNITS))
        if unit is None:
            tokens.fail("DAYS, HOURS or MINUTES")
        retain = f"{count} {unit.lower()}"
    return CreateTag(
        table, tag, snapshot=snapshot, retain=retain, create=create, replace=replace, if_not_exists=if_not_exists
    )


def _delete_tag(tokens: Tokens, table: Name) -> DeleteTag:
    if_exists = tokens.accept("IF", "EXISTS")
    return DeleteTag(table, tokens.name("the name of a tag"), if_exists)


def _rename_tag(tokens: Tokens, table: Name) -> RenameTag:
    tag = tokens.name("the name of a tag")
    tokens.expect("TO")
    return RenameTag(table, tag, tokens.name("the new name of the tag"))


#: Parsers of what follows the table's name, by its keywords. Longer ones come first.
_ALTERATIONS: Mapping[tuple[str, ...], Callable[[Tokens, Name], Statement]] = {
    ("RENAME", "TO"): _rename_table,
    ("RENAME", "COLUMN"): _rename_column,
    ("RENAME", "TAG"): _rename_tag,
    ("SET", "TBLPROPERTIES"): _set_properties,
    ("UNSET", "TBLPROPERTIES"): _unset_properties,
    ("ADD", "COLUMNS"): _add_columns,
    ("ADD", "COLUMN"): _add_columns,
    ("DROP", "COLUMNS"): _drop_columns,
    ("DROP", "COLUMN"): _drop_columns,
    ("ALTER", "COLUMN"): _alter_column,
    ("CHANGE", "COLUMN"): _alter_column,
    ("DROP", "IF", "EXISTS", "PARTITION"): _drop_existing_partition,
    ("DROP", "PARTITION"): _drop_partition,
    ("CREATE", "OR", "REPLACE", "TAG"): _create_or_replace_tag,
    ("CREATE", "TAG"): _create_tag,
    ("REPLACE", "TAG"): _replace_tag,
    ("DELETE", "TAG"): _delete_tag,
}
