"""Statements of SQL as frozen values. Queries and expressions are the text that the user wrote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, TypeAlias

from lakelsm.schema_changes import SchemaChange
from lakelsm.types import DataType

#: The parts of a table's or database's name: (database, table) or (table,).
Name: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Query:
    """SELECT, VALUES, WITH … SELECT, or a set operation of these."""

    text: str


@dataclass(frozen=True)
class Explain:
    """EXPLAIN of a query."""

    query: Query
    mode: str | None = None


@dataclass(frozen=True)
class Insert:
    """INSERT INTO or INSERT OVERWRITE.

    ``partition`` has the columns of the PARTITION clause with the texts of their values, None for a dynamic one.
    ``columns`` are those that the query's columns are for, in order (None: all, by position).
    """

    table: Name
    query: Query
    _: KW_ONLY
    columns: tuple[str, ...] | None = None
    by_name: bool = False
    partition: Mapping[str, str | None] = field(default_factory=dict)
    overwrite: bool = False


@dataclass(frozen=True)
class Delete:
    """DELETE FROM. ``where`` None deletes all rows."""

    table: Name
    where: str | None
    alias: str | None = None


@dataclass(frozen=True)
class Update:
    """UPDATE. ``values`` are expressions by column path; ``where`` None updates all rows."""

    table: Name
    values: Mapping[str, str]
    where: str | None
    alias: str | None = None


@dataclass(frozen=True)
class MergeClause:
    """WHEN … THEN … of a MERGE.

    ``matched``: the rows that it is for: 'matched', 'not matched' (by target) or 'not matched by source'. ``action``:
    'update', 'delete' or 'insert'. ``values`` are expressions by column, None for ``*``.
    """

    matched: str
    condition: str | None
    action: str
    values: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Merge:
    """MERGE INTO. ``source`` is a table name or a query in parentheses, as it is written."""

    table: Name
    source: str
    on: str
    clauses: tuple[MergeClause, ...]
    _: KW_ONLY
    alias: str | None = None
    source_alias: str | None = None
    with_schema_evolution: bool = False


@dataclass(frozen=True)
class Truncate:
    """TRUNCATE TABLE, of all rows or of the partitions that PARTITION names."""

    table: Name
    partition: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Column:
    """A column of CREATE TABLE."""

    name: str
    type: DataType
    comment: str | None = None


@dataclass(frozen=True)
class CreateTable:
    """CREATE TABLE, with columns, as a query (CTAS), or like another table.

    ``replace``: the table of this name is replaced; for REPLACE TABLE it ``must_exist``.
    """

    table: Name
    _: KW_ONLY
    columns: tuple[Column, ...] = ()
    partition_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    if_not_exists: bool = False
    replace: bool = False
    must_exist: bool = False
    query: Query | None = None
    like: Name | None = None


@dataclass(frozen=True)
class DropTable:
    """DROP TABLE."""

    table: Name
    if_exists: bool = False


@dataclass(frozen=True)
class RenameTable:
    """ALTER TABLE … RENAME TO."""

    table: Name
    new_name: Name


@dataclass(frozen=True)
class AlterTable:
    """ALTER TABLE with changes of columns or properties. ``if_exists``: columns that do not exist are not dropped."""

    table: Name
    changes: tuple[SchemaChange, ...]
    if_exists: bool = False


@dataclass(frozen=True)
class DropPartition:
    """ALTER TABLE … DROP PARTITION: the partitions by the texts of their values."""

    table: Name
    partitions: tuple[Mapping[str, str], ...]
    if_exists: bool = False


@dataclass(frozen=True)
class CreateTag:
    """ALTER TABLE … CREATE or REPLACE TAG. ``retain`` is a duration as options have it, None for ever."""

    table: Name
    tag: str
    _: KW_ONLY
    snapshot: int | None = None
    retain: str | None = None
    create: bool = True
    replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class DeleteTag:
    """ALTER TABLE … DELETE TAG. Paimon takes several names, separated by commas."""

    table: Name
    tag: str
    if_exists: bool = False


@dataclass(frozen=True)
class RenameTag:
    """ALTER TABLE … RENAME TAG."""

    table: Name
    tag: str
    new_name: str


@dataclass(frozen=True)
class CreateDatabase:
    """CREATE DATABASE."""

    name: str
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropDatabase:
    """DROP DATABASE."""

    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class Show:
    """SHOW of 'tables', 'databases', 'partitions', 'tblproperties', 'create table', 'columns', 'tags' or 'branches'.

    ``subject`` is a table or a database; ``like`` a pattern of names; ``key`` a property.
    """

    what: str
    subject: Name | None = None
    _: KW_ONLY
    like: str | None = None
    key: str | None = None
    partition: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Describe:
    """DESCRIBE of a table, and with ``extended`` also its keys, options and location."""

    table: Name
    extended: bool = False


@dataclass(frozen=True)
class DescribeHistory:
    """DESCRIBE HISTORY of a table."""

    table: Name
    limit: int | None = None


@dataclass(frozen=True)
class Analyze:
    """ANALYZE TABLE … COMPUTE STATISTICS. ``columns`` empty: none; None: all."""

    table: Name
    columns: tuple[str, ...] | None


@dataclass(frozen=True)
class Call:
    """CALL of a procedure. Arguments are by position or by name; names are in lower case."""

    procedure: str
    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)


Statement: TypeAlias = (
    Query
    | Explain
    | Insert
    | Delete
    | Update
    | Merge
    | Truncate
    | CreateTable
    | DropTable
    | RenameTable
    | AlterTable
    | DropPartition
    | CreateTag
    | DeleteTag
    | RenameTag
    | CreateDatabase
    | DropDatabase
    | Show
    | Describe
    | DescribeHistory
    | Analyze
    | Call
)
