"""Execution of statements on a catalog: queries, and calls of the catalog or of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lakelsm.engine import has_session
from lakelsm.local.arrow_input import is_spark_frame
from lakelsm.sql.changes import delete, insert, merge, truncate, update
from lakelsm.sql.context import SqlCatalog, SqlContext
from lakelsm.sql.listings import describe, explain, history, listing
from lakelsm.sql.procedures import call_procedure
from lakelsm.sql.syntax import statements as sql
from lakelsm.sql.syntax.parser import parse_statement
from lakelsm.sql.tables import (
    alter_table,
    create_database,
    create_table,
    create_tag,
    delete_tag,
    drop_database,
    drop_partition,
    drop_table,
    rename_table,
    rename_tag,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_sql(
    catalog: SqlCatalog, text: str, engine: str | None, spark: SparkSession | None, frames: Mapping[str, Any]
) -> Any:
    """Run one statement. Frames of the caller are tables by their names.

    ``engine`` None: Spark if a frame is a Spark DataFrame or a session is given or active, else this process.
    """
    statement = parse_statement(text)
    with_spark = any(map(is_spark_frame, frames.values())) or has_session(spark)
    chosen = engine or ("spark" if with_spark else "local")
    return _RUNS[type(statement)](SqlContext(catalog, frames, chosen, spark), statement)


def _query(context: SqlContext, statement: sql.Query) -> Any:
    return context.query(statement.text)


def _analyze(context: SqlContext, statement: sql.Analyze) -> Any:
    return context.table(statement.table).maintenance.analyze(statement.columns, engine=context.engine)


def _call(context: SqlContext, statement: sql.Call) -> Any:
    return call_procedure(statement, lambda name: context.table(tuple(name.split("."))), context.engine)


_RUNS: Mapping[type, Callable[[SqlContext, Any], Any]] = {
    sql.Query: _query,
    sql.Explain: explain,
    sql.Insert: insert,
    sql.Delete: delete,
    sql.Update: update,
    sql.Merge: merge,
    sql.Truncate: truncate,
    sql.CreateTable: create_table,
    sql.DropTable: drop_table,
    sql.RenameTable: rename_table,
    sql.AlterTable: alter_table,
    sql.DropPartition: drop_partition,
    sql.CreateTag: create_tag,
    sql.DeleteTag: delete_tag,
    sql.RenameTag: rename_tag,
    sql.CreateDatabase: create_database,
    sql.DropDatabase: drop_database,
    sql.Show: listing,
    sql.Describe: describe,
    sql.DescribeHistory: history,
    sql.Analyze: _analyze,
    sql.Call: _call,
}
