"""Tables of a catalog by name in a Spark session: `Catalog.register`.

Spark keeps the options of a catalog table of a Python data source, but passes none of them to its queries (4.0 to 4.3).
So each table has a data source of its own, with a name that the session catalog keeps as the table's provider. The data
source has the location and the settings of its store; the session catalog has no settings.

The name of the provider also tells which entries of the session catalog are lakelsm's, and of which warehouse. No other
entry is changed or dropped.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import tzinfo
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from pyspark.errors import AnalysisException

from lakelsm.arguments import wrong_argument
from lakelsm.data_source.session_catalog import SessionCatalog, is_valid_name, quoted
from lakelsm.data_source.source import FORMAT, DefaultSource
from lakelsm.data_source.spark_rows import source_struct
from lakelsm.data_source.table_location import CatalogTable
from lakelsm.engine import checked_session
from lakelsm.errors import InvalidInputError, LakelsmError
from lakelsm.format.paths import database_path, table_path
from lakelsm.operation_log import CATALOG_LOG
from lakelsm.results import RegistrationResult
from lakelsm.schema.identifiers import folded
from lakelsm.spark import functions as F
from lakelsm.spark.functions import functions_of
from lakelsm.spark.session import resolve_session
from lakelsm.storage import FileIO
from lakelsm.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

#: The key in the metadata of a view's first column. Its value has the warehouse and the name of the view.
_VIEW = "lakelsm.view"
#: Digits of a hash in the name of a provider.
_DIGITS = 16
#: The reasons why a name is left out.
_CHARACTERS = "Spark's session catalog accepts only ASCII letters, digits and '_' in names"
_RESERVED = "Spark reserves the name of the database for global temporary views"
_ALIKE = "another {} has this name in other letters, and Spark ignores their case"

#: Sessions of a process share their session catalog, which has no locks.
_LOCK = Lock()

Value = TypeVar("Value")


@dataclass
class Registration:
    """Registers tables of a ``warehouse`` in a session. Tables are given as ``database.table``, by database.

    ``databases`` are all databases of the warehouse.
    """

    spark: SparkSession
    warehouse: str
    _: KW_ONLY
    databases: Sequence[str]
    file_io: FileIO
    time_zone: tzinfo | None = None
    _skipped: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if checked_session(self.spark) is None:
            raise wrong_argument("spark", self.spark, "a SparkSession")
        resolve_session(self.spark)  # The data sources have the Python of the session's workers.

    def tables(self, tables: Mapping[str, Sequence[str]]) -> RegistrationResult:
        """Make the entries of the session catalog equal to the tables of databases.

        Raises InvalidInputError, before it changes anything, for a database that would own the files of tables, and for
        names that others have.
        """
        with _LOCK, functions_of(self.spark):
            return self._tables(SessionCatalog(self.spark), tables)

    def _tables(self, session: SessionCatalog, tables: Mapping[str, Sequence[str]]) -> RegistrationResult:
        existing = {folded(name): name for name in session.databases()}
        found: list[_Entries] = []
        for name in self._unlike(tables):
            if not is_valid_name(name):
                self._skip_all(tables[name], _CHARACTERS)
            elif session.is_reserved(name):
                self._skip_all(tables[name], _RESERVED)
            else:
                found.append(self._entries(session, name, existing.get(folded(name)), tables[name]))
        names: list[str] = []
        dropped: list[str] = []
        for each in found:
            if not each.exists:
                session.create_database(each.name, each.directory)
            for entry, provider in each.entries.items():
                if self._is_own(provider) and folded(entry) not in each.wanted:
                    session.drop_table(each.name, entry)
                    dropped.append(f"{each.name}.{entry}")
            names += [name for key, name in each.wanted.items() if self._register(session, each, key)]
        return RegistrationResult(names=tuple(names), dropped=tuple(dropped), skipped=tuple(self._skipped))

    def _entries(self, session: SessionCatalog, name: str, known: str | None, tables: Sequence[str]) -> _Entries:
        """Return a database that the session catalog can have; ``known`` is its name there."""
        directory = database_path(self.warehouse, name)
        if known is not None and session.overlaps(known, directory):
            raise InvalidInputError(
                f"Database {known}: the session catalog has it at the location of its tables, so that DROP DATABASE "
                "would delete their files. Drop it there, or set another spark.sql.warehouse.dir."
            )
        entries = {} if known is None else session.providers(known)
        wanted = self._by_name(tables)
        found = _Entries(known or name, directory, exists=known is not None, entries=entries, wanted=wanted)
        self._check_owners(found)
        return found

    def views(self, tables: Mapping[str, Sequence[str]]) -> RegistrationResult:
        """Make a temporary view of each table, a native read of its newest snapshot."""
        with functions_of(self.spark):
            return self._views(tables)

    def _views(self, tables: Mapping[str, Sequence[str]]) -> RegistrationResult:
        own, others = self._temporary_views()
        wanted = self._distinct({name: name for database in self._unlike(tables) for name in tables[database]})
        taken = sorted(set(wanted) & others)
        if taken:
            raise InvalidInputError(
                f"View {quoted(taken[0])}: the session has another temporary view of this name. Drop or rename it."
            )
        frames: dict[str, DataFrame] = {}
        for key, name in wanted.items():
            frame = self._or_skip(name, partial(self._frame, name))
            if frame is not None:
                first, *rest = frame.columns
                marked = F.col(quoted(first)).alias(first, metadata={_VIEW: f"{self._prefix}{key}"})
                frames[name] = frame.select(marked, *map(quoted, rest))
        for name, frame in frames.items():
            frame.createOrReplaceTempView(quoted(name))
        scope = tuple(f"{folded(name)}." for name in tables)
        dropped = sorted(name for name in own if name.startswith(scope) and name not in wanted)
        for name in dropped:
            self.spark.catalog.dropTempView(name)  # Spark does not parse this name.
        names = tuple(map(quoted, frames))
        return RegistrationResult(names=names, dropped=tuple(map(quoted, dropped)), skipped=tuple(self._skipped))

    def _temporary_views(self) -> tuple[set[str], set[str]]:
        """Return the temporary views of the warehouse's tables, and all others whose names have a dot."""
        own: set[str] = set()
        others: set[str] = set()
        for name in SessionCatalog(self.spark).temporary_views():
            if "." in name:
                is_own = self._view_origin(name) == f"{self._prefix}{folded(name)}"
                (own if is_own else others).add(folded(name))
        return own, others

    def _view_origin(self, name: str) -> str | None:
        """Return the warehouse and the name in the metadata of a view that lakelsm made; None for other views."""
        try:
            fields = self.spark.table(quoted(name)).schema.fields
        except AnalysisException:  # A view on a table that does not exist.
            return None
        return fields[0].metadata.get(_VIEW) if fields else None

    def _by_name(self, tables: Sequence[str]) -> dict[str, str]:
        """Return the tables of a database that can be registered, by name without case."""
        last = {table: table.partition(".")[2] for table in tables}
        self._skip_all([table for table in tables if not is_valid_name(last[table])], _CHARACTERS)
        return self._distinct({table: name for table, name in last.items() if is_valid_name(name)})

    def _distinct(self, names: Mapping[str, str]) -> dict[str, str]:
        """Return tables by the name without case that they get, except those that share one."""
        found: dict[str, list[str]] = {}
        for table, name in names.items():
            found.setdefault(folded(name), []).append(table)
        for alike in found.values():
            if len(alike) > 1:
                self._skip_all(alike, _ALIKE.format("table"))
        return {key: alike[0] for key, alike in found.items() if len(alike) == 1}

    def _unlike(self, tables: Mapping[str, Sequence[str]]) -> Iterator[str]:
        """Yield the databases of tables, except those whose name another database has in other letters."""
        names = Counter(map(folded, self.databases))
        for name in tables:
            if names[folded(name)] == 1:
                yield name
            else:
                self._skip_all(tables[name], _ALIKE.format("database"))

    def _check_owners(self, database: _Entries) -> None:
        """Raise InvalidInputError if an entry with the name of a table is not lakelsm's, or of another warehouse."""
        for entry, provider in database.entries.items():
            if folded(entry) not in database.wanted or self._is_own(provider):
                continue
            if provider.startswith(f"{FORMAT}_"):
                raise InvalidInputError(
                    f"Table {database.name}.{entry}: the session catalog has this table of another warehouse. Run DROP "
                    "TABLE, which deletes no files, or choose other databases."
                )
            raise InvalidInputError(
                f"Table {database.name}.{entry}: the session catalog has another table or view of this name. Drop or "
                "rename it, or choose other databases."
            )

    def _register(self, session: SessionCatalog, database: _Entries, key: str) -> bool:
        """Register a table. Return whether it can be opened; if not, its entry stays as it is."""
        name = database.wanted[key]
        table = self._table(name)
        schema = self._or_skip(name, partial(_columns, table))
        if schema is None:
            return False
        provider = f"{self._prefix}{_hash(name)}"
        session.register_source(_source(table, provider))
        entry = database.entry(key)
        if entry is not None:
            if database.entries[entry] == provider and session.schema(database.name, entry) == schema:
                return True
            session.drop_table(database.name, entry)
        session.create_table(database.name, name.partition(".")[2], provider, table.root, schema)
        return True

    def _table(self, name: str) -> CatalogTable:
        database, _, table = name.partition(".")
        root = table_path(self.warehouse, database, table)
        return CatalogTable(name, root, file_io=self.file_io, time_zone=self.time_zone)

    def _frame(self, name: str) -> DataFrame:
        return Table(self._table(name).opened()._store(), self.spark).read()

    def _or_skip(self, name: str, call: Callable[[], Value]) -> Value | None:
        try:
            return call()
        except LakelsmError as error:
            self._skip_all([name], str(error))
            return None

    def _skip_all(self, tables: Sequence[str], reason: str) -> None:
        for table in tables:
            self._skipped.append(f"{table}: {reason}")
            CATALOG_LOG.warning("Table %s is not registered: %s", table, reason)

    @property
    def _prefix(self) -> str:
        return f"{FORMAT}_{_hash(self.warehouse)}_"

    def _is_own(self, provider: str) -> bool:
        return provider.startswith(self._prefix)


@dataclass(frozen=True)
class _Entries:
    """A database of the session catalog.

    ``entries`` has the provider of each table; ``wanted`` the tables to register, by name without case.
    """

    name: str
    directory: str
    _: KW_ONLY
    exists: bool
    entries: Mapping[str, str]
    wanted: Mapping[str, str]

    def entry(self, key: str) -> str | None:
        """Return the entry with a name without case; None if there is none."""
        return next((entry for entry in self.entries if folded(entry) == key), None)


def _columns(table: CatalogTable) -> StructType:
    return source_struct(table.opened().schema, None)


def _source(table: CatalogTable, provider: str) -> type[DefaultSource]:
    """Return the data source of a table. Spark pickles the class by value, because no module has it."""
    return type("RegisteredTable", (DefaultSource,), {"registered": table, "name": classmethod(lambda _: provider)})


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
