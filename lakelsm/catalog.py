"""Catalog: the tables of a warehouse directory, in the layout of Paimon's file-system catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

from lakelsm.arguments import checked_choice, checked_flag, checked_location, checked_names, checked_text, option_texts
from lakelsm.engine import ENGINES, checked_session, forget_table, opened_storage
from lakelsm.environment import SYSTEM
from lakelsm.errors import (
    CommitOutcomeUnknownError,
    InvalidInputError,
    LakelsmError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedFeatureError,
    error_context,
)
from lakelsm.format.paths import BRANCH_SEPARATOR, DATABASE_SUFFIX, MAIN_BRANCH, TablePaths, database_path, table_path
from lakelsm.format.table_name import SYSTEM_DATABASE, TableName, checked_database
from lakelsm.inferred_columns import given_columns
from lakelsm.operation_log import CATALOG_LOG, current_line, log_step, logged_call
from lakelsm.options.catalog_options import CatalogOptions
from lakelsm.plan.fallback_branch import check_fallback
from lakelsm.results import RegistrationResult
from lakelsm.schema.table_schema import create_schema
from lakelsm.schema.validation import validate_table
from lakelsm.schema_changes import SchemaChange, check_changes
from lakelsm.secret_values import shown_text
from lakelsm.snapshots.branch_store import BranchStore
from lakelsm.snapshots.schema_store import SchemaStore
from lakelsm.snapshots.snapshot_manager import SnapshotManager
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage.object_location import is_object_uri
from lakelsm.table import Table
from lakelsm.table.schema_alteration import alter_schema
from lakelsm.text_table import listed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Catalog:
    """The databases and tables of a warehouse directory (``<warehouse>/<database>.db/<table>``).

    ``warehouse`` is a path (a relative one is resolved now), a ``file:`` URI, or the URI of an object store
    (``s3://bucket/warehouse``, gs, abfss). ``spark`` is the Spark session; by default the active one, else a new local
    one whose workers run this Python. ``storage_options`` are the endpoint and the credentials of an object store
    (docs/object-stores.md); missing ones come from the environment, else from ``spark.hadoop.fs.s3a.*`` of the session.
    ``options`` are defaults for tables that do not set them: 'lakelsm.time-zone' (docs/options.md). Raises
    InvalidInputError for other options.
    """

    def __init__(
        self,
        warehouse: str,
        spark: SparkSession | None = None,
        *,
        storage_options: Mapping[str, object] | None = None,
        options: Mapping[str, object] | None = None,
    ) -> None:
        self._options = CatalogOptions.parse(option_texts("options", options))
        self._spark = checked_session(spark)
        self._file_io, self._root = opened_storage(checked_location("warehouse", warehouse), spark, storage_options)

    @logged_call("Table")
    def create_table(
        self,
        name: str,
        schema: object,
        *,
        primary_key: str | Sequence[str],
        partition_by: Sequence[str] = (),
        options: Mapping[str, object] | None = None,
        comment: str | None = None,
        if_not_exists: bool = False,
        load: bool = False,
    ) -> Table:
        """Create a table 'database.table' and return it; its `schema` shows the columns.

        ``schema`` is DDL text in Paimon's types, a mapping of names to such types, a pyarrow or Spark schema, or a
        frame (pandas, Polars, pyarrow, Spark). The columns of a frame are inferred from its types: all except those of
        the key can be NULL, and timestamps have at least microseconds. Column names must differ by more than case,
        which Spark ignores. ``load`` also writes the rows of the frame; if that fails, the table is dropped again
        unless a snapshot was committed. Values of ``options`` are texts, numbers or booleans.

        Raises InvalidInputError for a wrong schema or option, UnsupportedFeatureError for a feature that is not
        supported, TableAlreadyExistsError unless ``if_not_exists``, which returns an existing table unchanged.
        """
        paths = self._paths(name)
        checked_flag("load", load)
        if checked_flag("if_not_exists", if_not_exists) and load:
            raise InvalidInputError(
                f"Table {name}: load=True cannot be combined with if_not_exists=True, because an existing table may have "
                "these rows. Pass one of the two."
            )
        with error_context(f"Table {name}"):
            given = given_columns(schema)
            if load and given.rows is None:
                raise InvalidInputError("load: schema has no rows. Pass a frame with rows as schema, or leave load out.")
            key = [primary_key] if isinstance(primary_key, str) else primary_key
            created = create_schema(given.columns, key, partition_by, options, comment, SYSTEM.clock())
        file_io = self._file_io.within(paths.root)
        if if_not_exists and SchemaStore(file_io, paths).ids():
            current_line().set_nothing_done()
            return self.table(name)  # An existing table is not compared with the arguments.
        with error_context(f"Table {name}"):
            validate_table(created)
            check_fallback(paths, BranchStore(self._file_io, paths), {}, created.options)
        has_database = not load or TableName.parse(name).database in self.list_databases()
        self._make_directory(paths.schema_dir, paths.root)
        try:
            SchemaStore(file_io, paths).create_table(created)
        except TableAlreadyExistsError as error:
            raise TableAlreadyExistsError(
                f"Table {name} already exists: open it with table({name!r}), or pass if_not_exists=True."
            ) from error
        if load:
            self._load(self.table(name), paths, given.rows, has_database=has_database)
        return self.table(name)

    def table(self, name: str) -> Table:
        """Open a table, or with 'database.table$branch_name' one of its branches.

        Raises TableNotFoundError, with the existing tables or branches.
        """
        return Table(self._opened(TableName.parse(name)), self._spark)

    @logged_call("Table")
    def alter_table(self, name: str, *changes: SchemaChange) -> Table:
        """Change columns, options or the comment of a table, in one new schema. Data files do not change.

        'database.table$branch_name' changes one branch only; other branches keep their schema.

        'deletion-vectors.enabled' of a table with data changes only if 'deletion-vectors.modifiable' = 'true' was set
        before, and if a full compaction has merged all rows (to enable vectors) or rewritten all files with masked rows
        (to disable them). Run no compaction at the same time.
        """
        check_changes(changes)
        store = self._opened(TableName.parse(name))
        schema_id = alter_schema(store, lambda newest: changes).id
        current_line().add(lambda: {"schema_id": schema_id})
        return self.table(name)

    @logged_call("Table")
    def drop_table(self, name: str) -> None:
        """Delete a table with all its files. Raises TableNotFoundError if it does not exist.

        The schemas are deleted last: after an interrupted deletion the table still exists, and can be dropped again.
        """
        paths = self._paths(name)
        self._require(TableName.parse(name))
        self._delete(paths)

    @logged_call("Table")
    def rename_table(self, name: str, new_name: str) -> Table:
        """Rename a table, also into another database, and return it under its new name.

        The directory is renamed in one step, and no row is copied. Stop writers first: a concurrent write fails. Raises
        TableNotFoundError, TableAlreadyExistsError if the new name exists, InvalidInputError for an unknown database,
        and UnsupportedFeatureError on an object store, which cannot rename directories.
        """
        paths, target = self._paths(name), self._paths(new_name, "new_name")
        parsed = TableName.parse(new_name)
        self.table(name)  # Refuses a table that cannot be opened before anything changes.
        if not is_object_uri(self._root) and parsed.database not in self.list_databases():
            raise self._unknown_database(parsed.database)
        if not self._file_io.rename_dir(paths.root, target.root):
            raise TableAlreadyExistsError(
                f"Table {name} cannot be renamed to {new_name}: {target.root} already exists. Choose another name."
            )
        for root in (paths.root, target.root):
            forget_table(root)
        current_line().add(lambda: {"new_name": new_name})
        return self.table(new_name)

    def sql(self, text: str, engine: str | None = None, **frames: Any) -> Any:
        """Run one SQL statement, in Spark's dialect, on the tables of the catalog (docs/sql.md).

        A query returns a DataFrame on Spark, else a `QueryResult`. SHOW and DESCRIBE return a `ResultTable`; other
        statements return what the call of the table or the catalog returns. ``frames`` are tables by name: Spark
        DataFrames, Arrow tables, pandas or Polars frames. ``engine`` is 'spark' or 'local' (this process, with the extra
        ``lakelsm[sql]``); by default Spark if a frame is a DataFrame or a session is given, active, or that of
        spark-submit. A name without a database is one of ``frames`` or of the database 'default'. Raises
        InvalidInputError, with line and column, for text that is no statement, and UnsupportedFeatureError for a
        statement or an expression that the engine does not run.
        """
        from lakelsm.sql.run import run_sql

        checked_text("text", text, "an SQL statement as text")
        return run_sql(self, text, checked_choice("engine", engine, ENGINES), self._spark, frames)

    def register(
        self, spark: SparkSession, databases: Sequence[str] | None = None, *, pinned: bool = False
    ) -> RegistrationResult:
        """Give tables their names ``database.table`` in `spark.sql` (docs/sql.md): of ``databases``, or of all.

        They become external tables of Spark's session catalog. Queries read the newest snapshot, and INSERT INTO writes.
        Call it again after a table is created, altered, renamed or dropped. ``pinned`` instead makes temporary views
        `` `database.table` ``, native reads of the newest snapshot. A warning names each table that is left out. Raises
        InvalidInputError for an unknown database, and, before anything changes, if other tables have such names.
        """
        from lakelsm.data_source.registration import Registration

        known = self.list_databases()
        wanted = known if databases is None else checked_names("databases", databases, "a list of names of databases")
        for name in wanted:
            if name not in known:
                raise self._unknown_database(name)
        tables = {name: self.list_tables(name) for name in wanted}
        zone = self._options.lakelsm_time_zone
        made = Registration(spark, self._root, databases=known, file_io=self._file_io, time_zone=zone)
        return made.views(tables) if checked_flag("pinned", pinned) else made.tables(tables)

    def table_exists(self, name: str) -> bool:
        """Return whether a table, or a branch of one, has this name. lakelsm may be unable to open it."""
        return self._exists(TableName.parse(name))

    @logged_call("Database")
    def create_database(self, name: str, *, if_not_exists: bool = False) -> None:
        """Create a database, an empty directory. `create_table` creates the database of its table too.

        Raises InvalidInputError if it exists, unless ``if_not_exists``; UnsupportedFeatureError on an object store,
        which has no empty directories.
        """
        directory = self._database_directory(name)
        checked_flag("if_not_exists", if_not_exists)
        if name in self.list_databases():
            if if_not_exists:
                current_line().set_nothing_done()
                return
            raise InvalidInputError(f"Database {name} already exists. Pass if_not_exists=True to keep it.")
        if is_object_uri(self._root):
            raise UnsupportedFeatureError(
                f"Database {name}: an object store has no empty directories. Create the first table of the database."
            )
        self._make_directory(directory, directory)

    @logged_call("Database")
    def drop_database(self, name: str, *, cascade: bool = False, if_exists: bool = False) -> None:
        """Delete an empty database, or with ``cascade`` a database with all its tables and files.

        ``cascade`` also deletes a table that is created concurrently. Raises InvalidInputError for a database that is
        not empty, and for one that does not exist unless ``if_exists``.
        """
        directory = self._database_directory(name)
        checked_flag("cascade", cascade)
        checked_flag("if_exists", if_exists)
        if name not in self.list_databases():
            if if_exists:
                current_line().set_nothing_done()
                return
            raise self._unknown_database(name)
        own = {entry.name for entry in self._file_io.entries(self._root) if entry.is_directory}
        if f"{name}{DATABASE_SUFFIX}" not in own:
            raise InvalidInputError(f"Database {name}: {directory} is a symbolic link. Delete it and its target.")
        if cascade:
            tables = self.list_tables(name)
            for table in tables:
                self._delete(self._paths(table))
            current_line().add(lambda: {"tables": len(tables)})
            self._file_io.delete_dir(directory)
        elif not self._file_io.delete_empty_dir(directory):
            content = self.list_tables(name) or [f"{directory}/{each}" for each in self._file_io.list(directory)]
            raise InvalidInputError(
                f"Database {name} is not empty: it contains {listed(content)}. Drop these first, or pass cascade=True to "
                "delete everything in it."
            )

    def list_databases(self) -> list[str]:
        """Return the names of the databases, sorted."""
        names = self._file_io.directories(self._root)
        return sorted(name.removesuffix(DATABASE_SUFFIX) for name in names if name.endswith(DATABASE_SUFFIX))

    def list_tables(self, database: str | None = None) -> list[str]:
        """Return the tables of a database, or by default of all databases, as ``database.table``, sorted.

        A database that does not exist has no tables.
        """
        if database is None:
            return [table for each in self.list_databases() for table in self.list_tables(each)]
        directory = database_path(self._root, checked_database(database))
        return sorted(
            f"{database}.{name}"
            for name in self._file_io.directories(directory)
            if self._file_io.exists(TablePaths(table_path(self._root, database, name)).schema_file(0))
        )

    def __repr__(self) -> str:
        return f"Catalog({shown_text(self._root)!r})"

    def _repr_html_(self) -> str:
        """Return the catalog with its databases, for notebooks."""
        try:
            databases = ", ".join(self.list_databases()) or "none"
        except LakelsmError as error:
            databases = str(error)
        return f"<p><code>{escape(repr(self))}</code><br>databases: {escape(databases)}</p>"

    def _load(self, table: Table, paths: TablePaths, rows: Any, *, has_database: bool) -> None:
        """Write the first rows of a table that this call created.

        On an error, drop the table if nothing is committed, and its database if this call created it too.
        """
        try:
            table.write(rows)
        except CommitOutcomeUnknownError:
            raise  # The commit may still become visible.
        except BaseException:
            try:
                if SnapshotManager(self._file_io.within(paths.root), paths).latest_id() is None:
                    self._delete(paths)
                    if not has_database:
                        self._file_io.delete_empty_dir(paths.root.rpartition("/")[0])
            except (LakelsmError, OSError) as error:
                CATALOG_LOG.warning("Table %s: the first rows were not written, and it remains: %s", paths.name, error)
            raise

    def _make_directory(self, directory: str, shown: str) -> None:
        try:
            self._file_io.mkdirs(directory)
        except OSError as error:
            raise InvalidInputError(
                f"warehouse: the directory {shown} cannot be created: {error.strerror}. Use a directory that this "
                "process can write to."
            ) from error

    def _delete(self, paths: TablePaths) -> None:
        forget_table(paths.root)
        self._file_io.delete_dir(paths.root, last=paths.schema_dir.rpartition("/")[2])
        log_step(CATALOG_LOG, "Table %s: deleted its directory", paths.name)

    def _exists(self, name: TableName) -> bool:
        paths = TablePaths(table_path(self._root, name.database, name.table))
        file_io = self._file_io.within(paths.root)
        exists = bool(SchemaStore(file_io, paths).ids())
        return exists and (name.branch == MAIN_BRANCH or BranchStore(file_io, paths).is_whole(name.branch))

    def _require(self, name: TableName) -> None:
        """Raise TableNotFoundError unless the table exists."""
        if not self._exists(name):
            raise self._not_found(name)

    def _not_found(self, name: TableName) -> TableNotFoundError:
        known = self.list_tables(name.database)
        text = f"Table {name.main_name} does not exist. The database has {listed(known) if known else 'no tables'}"
        with suppress(LakelsmError):  # An unreadable warehouse does not hide the missing table.
            databases = self.list_databases()
            if databases and name.database not in databases:
                text += f"; the warehouse has the databases {listed(databases)}"
        return TableNotFoundError(f"{text}.")

    def _unknown_database(self, name: str) -> InvalidInputError:
        known = self.list_databases()
        return InvalidInputError(
            f"Database {name} does not exist. Warehouse {self._root} has {listed(known) if known else 'no databases'}."
        )

    def _database_directory(self, name: str) -> str:
        if checked_database(name, "name") == SYSTEM_DATABASE:
            raise InvalidInputError(f"name: {name!r} is the database of Paimon's system tables. Choose another name.")
        return database_path(self._root, name)

    def _opened(self, name: TableName) -> TableStore:
        try:
            root = table_path(self._root, name.database, name.table)
            store = TableStore.within(self._file_io, root, name.main_name)
        except TableNotFoundError as error:
            raise self._not_found(name) from error
        return replace(store, catalog_zone=self._options.lakelsm_time_zone).on_branch(name.branch)

    def _paths(self, name: str, argument: str = "name") -> TablePaths:
        """Return the paths of a table. Raises InvalidInputError for the name of a branch, also of the main one."""
        parsed = TableName.parse(name, argument)
        if BRANCH_SEPARATOR in name:
            raise InvalidInputError(
                f"{argument}: {name!r} is a branch. Create and delete branches with table.branches.create and "
                f"table.branches.delete of table {parsed.main_name}."
            )
        return TablePaths(table_path(self._root, parsed.database, parsed.table), name)
