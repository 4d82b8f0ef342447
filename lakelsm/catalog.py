"""Catalog: the tables of a warehouse directory, laid out as Paimon's file-system catalog does."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from html import escape
from typing import TYPE_CHECKING, Any, TypeVar, cast

from lakelsm.arguments import checked_flag, checked_location, option_texts
from lakelsm.engine import checked_session, forget_table, opened_storage
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
from lakelsm.format.paths import DATABASE_SUFFIX, MAIN_BRANCH, TablePaths, database_path, table_path
from lakelsm.format.table_name import SYSTEM_DATABASE, TableName, checked_database
from lakelsm.inferred_columns import given_columns
from lakelsm.operation_log import current_line, log_step, operation_line
from lakelsm.options.catalog_options import CatalogOptions
from lakelsm.plan.fallback_branch import check_fallback
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

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger("lakelsm.catalog")
#: So many names are shown in a message.
_MAX_SHOWN = 20

MethodT = TypeVar("MethodT", bound=Callable[..., Any])


def _logged(kind: str) -> Callable[[MethodT], MethodT]:
    """Log each call of a method of the catalog as an operation on the table or database that its ``name`` names."""

    def decorated(method: MethodT) -> MethodT:
        @wraps(method)
        def call(self: Catalog, *args: Any, **named: Any) -> Any:
            name = args[0] if args else named.get("name")
            with operation_line(name, method.__name__, kind=kind, logger=_LOG):
                return method(self, *args, **named)

        return cast(MethodT, call)

    return decorated


class Catalog:
    """Databases and tables under a warehouse directory (``<warehouse>/<database>.db/<table>``).

    ``spark`` is the session to work in; without it the active one, else a new local one whose workers run this Python.
    The warehouse is a path (a relative one is made absolute now), a ``file:`` URI, or the URI of an object store
    (``s3://bucket/warehouse``, gs, abfss). ``storage_options`` are the endpoint and the credentials of such a store
    (docs/object-stores.md); what they leave out comes from the environment, else from the session's
    ``spark.hadoop.fs.s3a.*``. ``options`` hold for tables that set none of their own: 'lakelsm.time-zone'
    (docs/options.md). Raises InvalidInputError for others.
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

    @_logged("Table")
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
        """Create ``database.table`` and return it; its `schema` shows the columns.

        ``schema`` is DDL text in Paimon's types, a mapping of names to such types, a pyarrow or Spark schema, or a frame
        (pandas, Polars, pyarrow, Spark) whose types become the columns': then all but the key's can be NULL, and
        timestamps have microseconds or finer. Names differ by more than case, as Spark ignores it. ``load`` also writes
        the frame's rows; where that fails, the table is dropped again unless something was committed to it. Options are
        text; numbers and booleans are taken as their text.

        Raises InvalidInputError for a bad schema or option, UnsupportedFeatureError for a feature that lakelsm has not
        built, TableAlreadyExistsError unless ``if_not_exists``.
        """
        paths = self._paths(name)
        checked_flag("load", load)
        if checked_flag("if_not_exists", if_not_exists) and load:
            raise InvalidInputError(
                f"Table {name}: load=True is for a new table, and if_not_exists=True for one that may have its rows "
                "already. Pass one of the two."
            )
        with error_context(f"Table {name}"):
            given = given_columns(schema)
            if load and given.rows is None:
                raise InvalidInputError("load=True needs a frame with rows, and schema is a schema alone.")
            key = [primary_key] if isinstance(primary_key, str) else primary_key
            created = create_schema(given.columns, key, partition_by, options, comment, SYSTEM.clock())
        file_io = self._file_io.within(paths.root)
        if if_not_exists and SchemaStore(file_io, paths).ids():
            current_line().set_nothing_done()
            return self.table(name)  # Also one that is no longer created so.
        with error_context(f"Table {name}"):
            validate_table(created)
            check_fallback(paths, BranchStore(self._file_io, paths), {}, created.options)
        try:
            self._file_io.mkdirs(paths.schema_dir)
        except OSError as error:
            raise InvalidInputError(
                f"warehouse {self._root} cannot hold the table's directory {paths.root}: {error.strerror}. Name a "
                "directory that this process may write to."
            ) from error
        try:
            SchemaStore(file_io, paths).create_table(created)
        except TableAlreadyExistsError as error:
            raise TableAlreadyExistsError(
                f"Table {name} exists already: open it with table({name!r}), or pass if_not_exists=True."
            ) from error
        table = self.table(name)
        if load:
            self._load(table, paths, given.rows)
        return table

    def table(self, name: str) -> Table:
        """Open a table, or the branch of one that 'database.table$branch_name' names.

        Raises TableNotFoundError, with the tables or branches that there are.
        """
        return Table(self._opened(TableName.parse(name)), self._spark)

    @_logged("Table")
    def alter_table(self, name: str, *changes: SchemaChange) -> Table:
        """Change columns, comment or options of a table, or of one branch of it; data files do not change.

        A branch is named as in `table`. Others keep their schema.

        'deletion-vectors.enabled' of a table with data changes only where 'deletion-vectors.modifiable' = 'true' was set
        before, and where a full compaction has merged all rows (to switch them on) or has rewritten all files with masked
        rows (to switch them off). Run no compaction at the same time.
        """
        check_changes(changes)
        store = self._opened(TableName.parse(name))
        schema_id = alter_schema(store, lambda newest: changes).id
        current_line().add(lambda: {"schema_id": schema_id})
        return self.table(name)

    @_logged("Table")
    def drop_table(self, name: str) -> None:
        """Delete a table with all its files. Raises TableNotFoundError if there is none.

        Its schemas are deleted last: after an interrupted deletion the table still exists, and can be dropped again.
        """
        paths = self._paths(name)
        self._require(TableName.parse(name))
        self._delete(paths)

    @_logged("Table")
    def rename_table(self, name: str, new_name: str) -> Table:
        """Give a table another name, in its database or another one, and return it under that name.

        The directory is renamed in one step, so no row is copied or lost. Stop writers first: one that is not done yet
        fails. Raises TableNotFoundError, TableAlreadyExistsError where the new name is taken, InvalidInputError for an
        unknown database, and UnsupportedFeatureError on an object store, which cannot rename directories.
        """
        paths, target = self._paths(name), self._paths(new_name, "new_name")
        parsed = TableName.parse(new_name)
        self.table(name)  # One that cannot be opened is refused before anything is changed.
        if not is_object_uri(self._root) and parsed.database not in self.list_databases():
            raise self._unknown_database(parsed.database)
        if not self._file_io.rename_dir(paths.root, target.root):
            raise TableAlreadyExistsError(
                f"Table {name} cannot be renamed to {new_name}: {target.root} exists already. Choose another name."
            )
        for root in (paths.root, target.root):
            forget_table(root)
        current_line().add(lambda: {"new_name": new_name})
        return self.table(new_name)

    def table_exists(self, name: str) -> bool:
        """Whether there is a table, or a branch of one, of that name. It need not be one that lakelsm can open."""
        return self._exists(TableName.parse(name))

    @_logged("Database")
    def create_database(self, name: str, *, if_not_exists: bool = False) -> None:
        """Create a database: an empty directory. `create_table` makes the database of its table too.

        Raises InvalidInputError where it exists, unless ``if_not_exists``, and UnsupportedFeatureError on an object
        store, which has no empty directories.
        """
        directory = self._database_directory(name)
        checked_flag("if_not_exists", if_not_exists)
        if name in self.list_databases():
            if if_not_exists:
                current_line().set_nothing_done()
                return
            raise InvalidInputError(f"Database {name} exists already: pass if_not_exists=True to keep it.")
        if is_object_uri(self._root):
            raise UnsupportedFeatureError(
                f"Database {name}: an object store has no empty directories. Create the first table of the database."
            )
        try:
            self._file_io.mkdirs(directory)
        except OSError as error:
            raise InvalidInputError(
                f"warehouse {self._root} cannot hold the database's directory {directory}: {error.strerror}. Name a "
                "directory that this process may write to."
            ) from error

    @_logged("Database")
    def drop_database(self, name: str, *, cascade: bool = False, if_exists: bool = False) -> None:
        """Delete an empty database, or with ``cascade`` one with all its tables and files.

        A concurrently created table is kept without ``cascade``, and deleted with it. Raises InvalidInputError for a
        database that is not empty, and for one that does not exist unless ``if_exists``.
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
            raise InvalidInputError(f"Database {name}: {directory} is a symbolic link: delete it and its target.")
        if cascade:
            tables = self.list_tables(name)
            for table in tables:
                self._delete(self._paths(table))
            current_line().add(lambda: {"tables": len(tables)})
            self._file_io.delete_dir(directory)
        elif not self._file_io.delete_empty_dir(directory):
            held = self.list_tables(name) or [f"{directory}/{each}" for each in self._file_io.list(directory)]
            raise InvalidInputError(
                f"Database {name} is not empty: it has {_shown(held)}. Drop these first, or pass cascade=True to delete "
                "everything in it."
            )

    def list_databases(self) -> list[str]:
        """The databases of the warehouse, sorted."""
        names = self._file_io.directories(self._root)
        return sorted(name.removesuffix(DATABASE_SUFFIX) for name in names if name.endswith(DATABASE_SUFFIX))

    def list_tables(self, database: str | None = None) -> list[str]:
        """The tables of a database, or without one of all databases, as ``database.table``, sorted.

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
        """The catalog with its databases, for notebooks."""
        try:
            databases = ", ".join(self.list_databases()) or "none"
        except LakelsmError as error:
            databases = str(error)
        return f"<p><code>{escape(repr(self))}</code><br>databases: {escape(databases)}</p>"

    def _load(self, table: Table, paths: TablePaths, rows: Any) -> None:
        """Write the first rows of a table that this call created; where that fails, drop it if nothing is committed."""
        try:
            table.write(rows)
        except CommitOutcomeUnknownError:
            raise  # Its commit may still become visible.
        except BaseException:
            try:
                if SnapshotManager(self._file_io.within(paths.root), paths).latest_id() is None:
                    self._delete(paths)
            except (LakelsmError, OSError) as error:
                _LOG.warning("Table %s: neither its rows were written nor could it be dropped: %s", paths.name, error)
            raise

    def _delete(self, paths: TablePaths) -> None:
        forget_table(paths.root)
        self._file_io.delete_dir(paths.root, last=paths.schema_dir.rpartition("/")[2])
        log_step(_LOG, "Table %s: its directory is deleted", paths.name)

    def _exists(self, name: TableName) -> bool:
        paths = TablePaths(table_path(self._root, name.database, name.table))
        file_io = self._file_io.within(paths.root)
        is_there = bool(SchemaStore(file_io, paths).ids())
        return is_there and (name.branch == MAIN_BRANCH or BranchStore(file_io, paths).is_whole(name.branch))

    def _require(self, name: TableName) -> None:
        """Raise TableNotFoundError unless there is such a table."""
        if not self._exists(name):
            raise self._not_found(name)

    def _not_found(self, name: TableName) -> TableNotFoundError:
        known = self.list_tables(name.database)
        text = f"Table {name.main_name} does not exist: the database has {_shown(known) if known else 'no tables'}"
        with suppress(LakelsmError):  # The error is that of the table, whatever the warehouse is.
            databases = self.list_databases()
            if databases and name.database not in databases:
                text += f"; the warehouse has the databases {_shown(databases)}"
        return TableNotFoundError(f"{text}.")

    def _unknown_database(self, name: str) -> InvalidInputError:
        known = self.list_databases()
        return InvalidInputError(
            f"Database {name} does not exist: warehouse {self._root} has {_shown(known) if known else 'no databases'}."
        )

    def _database_directory(self, name: str) -> str:
        if checked_database(name, "name") == SYSTEM_DATABASE:
            raise InvalidInputError(f"name is {name!r}, the database of Paimon's own tables: choose another one.")
        return database_path(self._root, name)

    def _opened(self, name: TableName) -> TableStore:
        try:
            root = table_path(self._root, name.database, name.table)
            store = TableStore.within(self._file_io, root, name.main_name)
        except TableNotFoundError as error:
            raise self._not_found(name) from error
        return replace(store, catalog_zone=self._options.lakelsm_time_zone).on_branch(name.branch)

    def _paths(self, name: str, argument: str = "name") -> TablePaths:
        """Where the table itself lies. Raises InvalidInputError for the name of a branch."""
        parsed = TableName.parse(name, argument)
        if parsed.branch != MAIN_BRANCH:
            raise InvalidInputError(
                f"{argument} is {name!r}, a branch of a table: make and delete branches with table.branches.create and "
                f"table.branches.delete of the table {parsed.main_name}."
            )
        return TablePaths(table_path(self._root, parsed.database, parsed.table), name)


def _shown(names: Sequence[str]) -> str:
    """Names for a message: the first ones of many."""
    return ", ".join(names[:_MAX_SHOWN]) + (f" and {len(names) - _MAX_SHOWN} more" if len(names) > _MAX_SHOWN else "")
