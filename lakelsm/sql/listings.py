"""Execution of SHOW and DESCRIBE: their rows as `ResultTable`, with the columns that Spark has for them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelsm.errors import InvalidInputError
from lakelsm.options.other_keys import holds_secret
from lakelsm.secret_values import REDACTED
from lakelsm.sql.context import DEFAULT_DATABASE, SqlContext
from lakelsm.sql.syntax import statements as sql
from lakelsm.sql.syntax.query_text import quoted
from lakelsm.sql.tables import partition_condition
from lakelsm.table.result_table import ResultTable
from lakelsm.table.table import Table
from lakelsm.types import ArrayType, DataType, MapType, RowType
from lakelsm.types.python_arrays import array_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


#: Paimon's names of types, and Spark's.
_SPARK_NAMES = {
    "TIMESTAMP(6)": "TIMESTAMP_NTZ",
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": "TIMESTAMP",
    "BYTES": "BINARY",
}


def _result(context: SqlContext, name: str, columns: Mapping[str, Sequence[Any]]) -> ResultTable:
    rows = pa.table({key: array_of(values, pa.string()) for key, values in columns.items()})

    def frame(spark: SparkSession) -> DataFrame:
        from lakelsm.frames.system_frames import shown_frame

        return shown_frame(spark, rows)

    return ResultTable(name, rows, frame, context.spark)


def listing(context: SqlContext, statement: sql.Show) -> ResultTable:
    """Execute SHOW."""
    return _LISTINGS[statement.what](context, statement)


def _is_like(pattern: str | None, name: str) -> bool:
    """Return whether a name matches a pattern of SHOW: ``*`` is any text, ``|`` separates alternatives, in any case."""
    if pattern is None:
        return True
    parts = (re.escape(part.strip()).replace(r"\*", ".*") for part in pattern.split("|"))
    return any(re.fullmatch(part, name, re.IGNORECASE) for part in parts)


def _databases(context: SqlContext, statement: sql.Show) -> ResultTable:
    names = [name for name in context.catalog.list_databases() if _is_like(statement.like, name)]
    return _result(context, "databases", {"namespace": names})


def _tables(context: SqlContext, statement: sql.Show) -> ResultTable:
    database = statement.subject[0] if statement.subject else DEFAULT_DATABASE
    if statement.subject and database not in context.catalog.list_databases():
        raise InvalidInputError(f"Database {database} does not exist.")
    names = [name.partition(".")[2] for name in context.catalog.list_tables(database)]
    names = [name for name in names if _is_like(statement.like, name)]
    return _result(context, "tables", {"namespace": [database] * len(names), "tableName": names})


def _partitions(context: SqlContext, statement: sql.Show) -> ResultTable:
    table = _table(context, statement)
    if not table.schema.partition_keys:
        raise InvalidInputError(f"Table {table.name} has no partitions.")
    where = partition_condition(table, statement.partition) if statement.partition else None
    rows = table.inspect.partitions(where).to_arrow()
    return _result(context, "partitions", {"partition": rows.column("partition").to_pylist()})


def _properties(context: SqlContext, statement: sql.Show) -> ResultTable:
    table = _table(context, statement)
    options = {**_key_properties(table), **_options(table)}
    if statement.key is not None:
        options = {statement.key: options.get(statement.key, f"Table {table.name} has no property {statement.key!r}.")}
    return _result(context, "tblproperties", {"key": sorted(options), "value": [options[key] for key in sorted(options)]})


def _key_properties(table: Table) -> dict[str, str]:
    schema = table.schema
    return {"primary-key": ",".join(schema.primary_keys)} if schema.primary_keys else {}


def _options(table: Table) -> dict[str, str]:
    """Return the options of a table; those that may hold a secret are hidden."""
    return {key: REDACTED if holds_secret(key) else text for key, text in table.schema.options.items()}


def _table(context: SqlContext, statement: sql.Show) -> Table:
    assert statement.subject is not None
    return context.table(statement.subject)


def _create_table(context: SqlContext, statement: sql.Show) -> ResultTable:
    table = _table(context, statement)
    schema = table.schema
    lines = []
    for field in schema.fields:
        comment = "" if field.description is None else f" COMMENT {_text(field.description)}"
        lines.append(f"  {quoted(field.name)} {_spark_type(field.type)}{comment}")
    parts = [f"CREATE TABLE {'.'.join(map(quoted, table.name.split('.')))} (\n" + ",\n".join(lines) + ")"]
    parts.append("USING paimon")
    if schema.partition_keys:
        parts.append(f"PARTITIONED BY ({', '.join(map(quoted, schema.partition_keys))})")
    if schema.comment:
        parts.append(f"COMMENT {_text(schema.comment)}")
    options = {**_key_properties(table), **_options(table)}
    properties = ",\n".join(f"  {_text(key)} = {_text(options[key])}" for key in sorted(options))
    parts.append(f"TBLPROPERTIES (\n{properties})")
    return _result(context, "create table", {"createtab_stmt": ["\n".join(parts)]})


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _spark_type(kind: DataType) -> str:
    """Return a type in Spark's words; NOT NULL follows a type that excludes NULL. Spark has no words for some lengths."""
    text = kind.with_nullable(True).sql()
    if isinstance(kind, ArrayType):
        text = f"ARRAY<{_spark_type(kind.element)}>"
    elif isinstance(kind, MapType):
        text = f"MAP<{_spark_type(kind.key)}, {_spark_type(kind.value)}>"
    elif isinstance(kind, RowType):
        fields = (f"{quoted(each.name)}: {_spark_type(each.type)}" for each in kind.fields)
        text = f"STRUCT<{', '.join(fields)}>"
    text = _SPARK_NAMES.get(text, text)
    return text if kind.nullable else f"{text} NOT NULL"


def _columns(context: SqlContext, statement: sql.Show) -> ResultTable:
    return _result(context, "columns", {"col_name": _table(context, statement).schema.field_names})


def _tags(context: SqlContext, statement: sql.Show) -> ResultTable:
    return _result(context, "tags", {"tag": [tag.name for tag in _table(context, statement).tags.list()]})


def _branches(context: SqlContext, statement: sql.Show) -> ResultTable:
    return _result(context, "branches", {"branch": [each.name for each in _table(context, statement).branches.list()]})


_LISTINGS = {
    "databases": _databases,
    "tables": _tables,
    "partitions": _partitions,
    "tblproperties": _properties,
    "create table": _create_table,
    "columns": _columns,
    "tags": _tags,
    "branches": _branches,
}


def describe(context: SqlContext, statement: sql.Describe) -> ResultTable:
    """Execute DESCRIBE: the columns with their types, partition columns, and with EXTENDED what else the schema has."""
    table = context.table(statement.table)
    schema = table.schema
    rows = [(field.name, _spark_type(field.type), field.description) for field in schema.fields]
    if schema.partition_keys:
        rows += [("# Partition Information", "", ""), ("# col_name", "data_type", "comment")]
        rows += [row for row in rows[: len(schema.fields)] if row[0] in schema.partition_keys]
    if statement.extended:
        options = _options(table)
        shown = ", ".join(f"{key}={options[key]}" for key in sorted(options))
        rows += [
            ("", "", ""),
            ("# Detailed Table Information", "", ""),
            ("Name", table.name, ""),
            ("Primary Key", ",".join(schema.primary_keys), ""),
            ("Comment", schema.comment or "", ""),
            ("Table Properties", f"[{shown}]", ""),
        ]
    names = ("col_name", "data_type", "comment")
    return _result(context, "describe", {name: [row[at] for row in rows] for at, name in enumerate(names)})


def explain(context: SqlContext, statement: sql.Explain) -> ResultTable:
    """Execute EXPLAIN: a line for each table of the query, then the lines of the engine's plan."""
    return _result(context, "plan", {"plan": context.explain(statement.query.text, statement.mode)})


def history(context: SqlContext, statement: sql.DescribeHistory) -> ResultTable:
    """Execute DESCRIBE HISTORY: the newest snapshots, newest first."""
    table = context.table(statement.table)
    return table.inspect.history() if statement.limit is None else table.inspect.history(statement.limit)
