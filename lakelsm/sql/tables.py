"""Execution of CREATE, ALTER and DROP: of tables, databases, partitions and tags."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.expressions.tokens import TokenKind, text_value, tokenize
from lakelsm.results import CommitResult, PartitionDropResult, TagInfo
from lakelsm.schema_changes import DropColumn, RemoveOption, SetOption
from lakelsm.sql.context import SqlContext
from lakelsm.sql.local.query_result import QueryResult
from lakelsm.sql.procedures import delete_each
from lakelsm.sql.syntax import statements as sql
from lakelsm.sql.syntax.query_text import quoted
from lakelsm.sql.table_replacement import replace_table
from lakelsm.table.table import Table
from lakelsm.types import INTEGER_ROOTS, DataField, RowType

#: Properties of CREATE TABLE that are not options of the table.
_PRIMARY_KEY, _PARTITION, _COMMENT = "primary-key", "partition", "comment"
ValueT = TypeVar("ValueT")
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")


def create_table(context: SqlContext, statement: sql.CreateTable) -> Table | CommitResult:
    """Execute CREATE [OR REPLACE] TABLE or REPLACE TABLE, with columns, as a query, or like another table."""
    name = context.full_name(statement.table)
    if statement.replace and (statement.must_exist or context.catalog.table_exists(name)):
        return replace_table(context.catalog, name, partial(_create, context, statement))
    return _create(context, statement, name)


def _create(context: SqlContext, statement: sql.CreateTable, name: str) -> Table | CommitResult:
    if statement.query is not None and statement.if_not_exists and context.catalog.table_exists(name):
        return context.catalog.table(name)
    properties = dict(statement.properties)
    key = _names(properties.pop(_PRIMARY_KEY, None))
    partition_by = statement.partition_by or _names(properties.pop(_PARTITION, None))
    comment = statement.comment if statement.comment is not None else properties.pop(_COMMENT, None)
    if statement.like is not None:
        return _create_like(context, statement, name, properties, comment)
    if not key:
        raise UnsupportedFeatureError(
            f"SQL: CREATE TABLE {name} has no primary key, and append tables are not supported. "
            "Add TBLPROPERTIES ('primary-key' = '…')."
        )
    if statement.query is None:
        schema: Any = [
            DataField(at, column.name, column.type, column.comment) for at, column in enumerate(statement.columns)
        ]
    else:
        found = context.query(statement.query.text)
        schema = found.to_reader() if isinstance(found, QueryResult) else found
    return context.catalog.create_table(
        name,
        schema,
        primary_key=key,
        partition_by=partition_by,
        options=properties or None,
        comment=comment,
        if_not_exists=statement.if_not_exists and statement.query is None,
        load=statement.query is not None,
    )


def _names(text: str | None) -> tuple[str, ...]:
    return () if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


def _create_like(
    context: SqlContext, statement: sql.CreateTable, name: str, properties: Mapping[str, str], comment: str | None
) -> Table:
    assert statement.like is not None
    for key in (_PRIMARY_KEY, _PARTITION):
        if key in statement.properties:
            raise InvalidInputError(f"SQL: CREATE TABLE {name} LIKE: property {key!r} is that of the other table.")
    schema = context.table(statement.like).schema
    return context.catalog.create_table(
        name,
        list(schema.fields),
        primary_key=schema.primary_keys,
        partition_by=schema.partition_keys,
        options={**schema.options, **properties} or None,
        comment=schema.comment if comment is None else comment,
        if_not_exists=statement.if_not_exists,
    )


def drop_table(context: SqlContext, statement: sql.DropTable) -> None:
    """Execute DROP TABLE."""
    name = context.full_name(statement.table)
    if not statement.if_exists or context.catalog.table_exists(name):
        context.catalog.drop_table(name)


def rename_table(context: SqlContext, statement: sql.RenameTable) -> Table:
    """Execute ALTER TABLE … RENAME TO: a new name without a database stays in the database."""
    name = context.full_name(statement.table)
    new_name = statement.new_name
    if len(new_name) == 1:
        new_name = (name.partition(".")[0], *new_name)
    return context.catalog.rename_table(name, context.full_name(new_name))


def alter_table(context: SqlContext, statement: sql.AlterTable) -> Table:
    """Execute ALTER TABLE with changes of columns or properties."""
    name, changes = context.full_name(statement.table), statement.changes
    for change in changes:
        if isinstance(change, SetOption | RemoveOption) and change.key in (_PRIMARY_KEY, _PARTITION):
            raise InvalidInputError(f"Table {name}: property {change.key!r} cannot change. Create a new table.")
    if statement.if_exists:
        fields = context.catalog.table(name).schema.fields
        changes = tuple(each for each in changes if not isinstance(each, DropColumn) or _has_column(fields, each.name))
        if not changes:
            return context.catalog.table(name)
    return context.catalog.alter_table(name, *changes)


def _has_column(fields: Sequence[DataField], path: str | Sequence[str]) -> bool:
    """Return whether there is a column, or a field of a STRUCT within one."""
    first, *rest = (path,) if isinstance(path, str) else path
    found = next((field for field in fields if field.name == first), None)
    if found is None or not rest:
        return found is not None
    return _has_column(found.type.fields if isinstance(found.type, RowType) else (), rest)


def partition_columns(table: Table, partition: Mapping[str, ValueT]) -> dict[str, ValueT]:
    """Return a PARTITION clause with the table's own names. Raises InvalidInputError for other and repeated columns."""
    known = {name.lower(): name for name in table.schema.partition_keys}
    for name in partition:
        if name.lower() not in known:
            raise InvalidInputError(
                f"Table {table.name}: {name!r} is not a partition column. Partition columns: {', '.join(known.values())}."
            )
    found = {known[name.lower()]: value for name, value in partition.items()}
    if len(found) < len(partition):
        raise InvalidInputError(f"Table {table.name}: PARTITION names a column twice: {', '.join(partition)}.")
    return found


def partition_condition(table: Table, partition: Mapping[str, str]) -> str:
    """Return the condition that selects a partition of a PARTITION clause. Values are literals."""
    parts = []
    for name, value in partition_columns(table, partition).items():
        field = table.schema.field(name)
        given = literal_value(value)
        typed = typed_value(given, field)
        text = value if typed == given else f"'{typed}'" if isinstance(typed, str) else str(typed)
        parts.append(f"{quoted(field.name)} IS NULL" if typed is None else f"{quoted(field.name)} = {text}")
    return " AND ".join(parts)


def literal_value(text: str) -> Any:
    """Return the value of a literal as it is written in a PARTITION clause: text, a whole number, a boolean or NULL."""
    tokens = [token for token in tokenize(text) if token.kind is not TokenKind.END]
    if tokens and tokens[0].text.upper() in ("DATE", "TIMESTAMP") and len(tokens) == 2:
        tokens = tokens[1:]
    negative = len(tokens) == 2 and tokens[0].text == "-"
    token = tokens[-1] if tokens and (len(tokens) == 1 or negative) else None
    if token is not None and token.kind is TokenKind.TEXT and not negative:
        return text_value(token.text)
    if token is not None and token.kind is TokenKind.NUMBER and token.text.isdigit():
        return -int(token.text) if negative else int(token.text)
    words = {"TRUE": True, "FALSE": False, "NULL": None}
    if token is not None and token.text.upper() in words and not negative:
        return words[token.text.upper()]
    raise UnsupportedFeatureError(
        f"SQL: PARTITION value {text!r} is not a literal of a text, date, whole number or boolean, or NULL."
    )


def typed_value(value: Any, field: DataField) -> Any:
    """The value of a PARTITION literal as the type of its column: Spark casts texts, and numbers for texts."""
    root = field.type.root
    if isinstance(value, int) and root in ("CHAR", "VARCHAR"):
        return str(value).lower()
    if isinstance(value, str) and root in INTEGER_ROOTS and _WHOLE.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, str) and root == "BOOLEAN" and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if isinstance(value, str) and (root in INTEGER_ROOTS or root == "BOOLEAN"):
        raise InvalidInputError(f"SQL: PARTITION ({field.name}): {value!r} is not {field.type.sql()}.")
    return value


def drop_partition(context: SqlContext, statement: sql.DropPartition) -> PartitionDropResult:
    """Execute ALTER TABLE … DROP PARTITION."""
    table = context.table(statement.table)
    conditions = [partition_condition(table, each) for each in statement.partitions]
    result = table.maintenance.drop_partitions(" OR ".join(f"({each})" for each in conditions))
    if not result.partitions and not statement.if_exists:
        raise InvalidInputError(f"Table {table.name}: the partition to drop does not exist. Add IF EXISTS to ignore it.")
    return result


def create_tag(context: SqlContext, statement: sql.CreateTag) -> TagInfo:
    """Execute ALTER TABLE … CREATE TAG, REPLACE TAG, CREATE OR REPLACE TAG."""
    tags = context.table(statement.table).tags
    exists = statement.replace and statement.create and statement.tag in {tag.name for tag in tags.list()}
    if exists or not statement.create:
        return tags.replace(statement.tag, statement.snapshot, time_retained=statement.retain)
    return tags.create(
        statement.tag, statement.snapshot, time_retained=statement.retain, if_not_exists=statement.if_not_exists
    )


def delete_tag(context: SqlContext, statement: sql.DeleteTag) -> list[Any]:
    """Execute ALTER TABLE … DELETE TAG, of several tags separated by commas."""
    tags = context.table(statement.table).tags
    known = {tag.name for tag in tags.list()}
    names = [name.strip() for name in statement.tag.split(",")]
    return delete_each((name for name in names if name in known or not statement.if_exists), tags.delete)


def rename_tag(context: SqlContext, statement: sql.RenameTag) -> TagInfo:
    """Execute ALTER TABLE … RENAME TAG."""
    return context.table(statement.table).tags.rename(statement.tag, statement.new_name)


def create_database(context: SqlContext, statement: sql.CreateDatabase) -> None:
    """Execute CREATE DATABASE."""
    context.catalog.create_database(statement.name, if_not_exists=statement.if_not_exists)


def drop_database(context: SqlContext, statement: sql.DropDatabase) -> None:
    """Execute DROP DATABASE."""
    context.catalog.drop_database(statement.name, cascade=statement.cascade, if_exists=statement.if_exists)
