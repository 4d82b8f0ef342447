"""Catalog: the tables of a warehouse directory, laid out as Paimon's file-system catalog does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelsm.arguments import checked_flag, checked_location, option_texts
from lakelsm.engine import checked_session, forget_table, opened_storage
from lakelsm.errors import InvalidInputError, TableAlreadyExistsError, TableNotFoundError, told_of
from lakelsm.format.paths import DATABASE_SUFFIX, MAIN_BRANCH, TablePaths, database_path, table_path
from lakelsm.format.table_name import TableName, checked_database
from lakelsm.options.catalog_options import CatalogOptions
from lakelsm.plan.fallback_branch import check_fallback
from lakelsm.plan.vector_switch import check_vector_switch
from lakelsm.schema.evolution import apply_changes
from lakelsm.schema.table_schema import TableSchema, create_schema
from lakelsm.schema.validation import validate_table
from lakelsm.schema_changes import SchemaChange, check_changes
from lakelsm.snapshots.branch_store import BranchStore
from lakelsm.snapshots.schema_store import SchemaStore
from lakelsm.snapshots.table_store import TableStore
from lakelsm.surroundings import SYSTEM
from lakelsm.table import Table
from lakelsm.types import DataField

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


class Catalog:
    """Databases and tables under a warehouse directory (``<warehouse>/<database>.db/<table>``).

    ``spark`` is the session to work in; without it the active one, else a new local one whose workers run this Python.
    The warehouse is an absolute path, a ``file:`` URI, or the URI of an object store (``s3://bucket/warehouse``, gs,
    abfss). ``storage_options`` are the endpoint and the credentials of such a store (docs/object-stores.md); what they
    leave out comes from the environment, else from the session's ``spark.hadoop.fs.s3a.*``. ``options`` hold for tables
    that set none of their own: 'lakelsm.time-zone' (docs/options.md). Raises InvalidInputError for others.
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

    def create_table(
        self,
        name: str,
        schema: StructType | pa.Schema | str,
        *,
        primary_key: Sequence[str],
        partition_by: Sequence[str] = (),
        options: Mapping[str, object] | None = None,
        comment: str | None = None,
        if_not_exists: bool = False,
    ) -> Table:
        """Create ``database.table`` and return it.

        Columns come as a Spark schema, a pyarrow schema or DDL text in Paimon's types. Their names differ by more than
        case, as Spark ignores it. Raises InvalidInputError for a bad
        schema or option, UnsupportedFeatureError for a feature that lakelsm has not built, TableAlreadyExistsError
        unless ``if_not_exists``. Options are text; numbers and booleans are taken as their text.
        """
        paths = self._paths(name)
        checked_flag("if_not_exists", if_not_exists)
        with told_of(f"Table {name}"):
            created = create_schema(_columns(schema), primary_key, partition_by, options, comment, SYSTEM.clock())
        file_io = self._file_io.within(paths.root)
        if if_not_exists and SchemaStore(file_io, paths).ids():
            return self.table(name)  # Also one that is no longer created so.
        with told_of(f"Table {name}"):
            validate_table(created)
            check_fallback(paths, BranchStore(self._file_io, paths), {}, created.options)
        try:
            file_io.mkdirs(paths.schema_dir)
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
        return self.table(name)

    def table(self, name: str) -> Table:
        """Open a table, or the branch of one that 'database.table$branch_name' names.

        Raises TableNotFoundError, with the tables or branches that there are.
        """
        return Table(self._opened(TableName.parse(name)), self._spark)

    def alter_table(self, name: str, *changes: SchemaChange) -> Table:
        """Change columns, comment or options of a table, or of one branch of it; data files stay as they are.

        A branch is named as in `table`. Others keep their schema.

        'deletion-vectors.enabled' of a table with data changes only where 'deletion-vectors.modifiable' = 'true' was set
        before, and where a full compaction has merged all rows (to switch them on) or has rewritten all files with masked
        rows (to switch them off). Let no compaction run meanwhile.
        """
        check_changes(changes)
        store = self._opened(TableName.parse(name))
        has_snapshots = store.snapshots.latest_id() is not None

        def changed(schema: TableSchema) -> TableSchema:
            with told_of(f"Table {name}"):
                after = apply_changes(schema, changes, SYSTEM.clock(), has_snapshots)
                check_vector_switch(store, schema, after)
                check_fallback(store.paths, store.branches, schema.options, after.options)
                return after

        store.schemas.change(changed)
        return self.table(name)

    def drop_table(self, name: str) -> None:
        """Delete a table with all its files. Raises TableNotFoundError when there is none.

        Its schemas go last: a table whose deletion stopped half-way is there still, and is dropped again.
        """
        self.table(name)
        paths = self._paths(name)
        forget_table(paths.root)
        self._file_io.delete_dir(paths.root, last=paths.schema_dir.rpartition("/")[2])

    def list_databases(self) -> list[str]:
        """The databases of the warehouse, sorted."""
        names = self._file_io.list(self._root)
        return sorted(name.removesuffix(DATABASE_SUFFIX) for name in names if name.endswith(DATABASE_SUFFIX))

    def list_tables(self, database: str) -> list[str]:
        """The tables of a database as ``database.table``, sorted."""
        directory = database_path(self._root, checked_database(database))
        return sorted(
            f"{database}.{name}"
            for name in self._file_io.list(directory)
            if self._file_io.exists(TablePaths(table_path(self._root, database, name)).schema_file(0))
        )

    def _opened(self, name: TableName) -> TableStore:
        try:
            root = table_path(self._root, name.database, name.table)
            store = TableStore.within(self._file_io, root, name.of_main)
        except TableNotFoundError as error:
            known = ", ".join(self.list_tables(name.database)) or "no tables"
            raise TableNotFoundError(f"Table {name.of_main} does not exist: the database has {known}.") from error
        return replace(store, catalog_zone=self._options.lakelsm_time_zone).on_branch(name.branch)

    def _paths(self, name: str) -> TablePaths:
        """Where the table itself lies. Raises InvalidInputError for the name of a branch."""
        parsed = TableName.parse(name)
        if parsed.branch != MAIN_BRANCH:
            raise InvalidInputError(
                f"name is {name!r}, a branch of a table: make and delete branches with the methods create_branch and "
                f"delete_branch of the table {parsed.of_main}."
            )
        return TablePaths(table_path(self._root, parsed.database, parsed.table), name)


def _columns(schema: Any) -> tuple[DataField, ...] | pa.Schema | str:
    """The columns of a table as `create_schema` takes them."""
    if not type(schema).__module__.startswith("pyspark.sql"):
        return schema
    from lakelsm.spark.spark_types import from_struct_type

    return from_struct_type(schema)
