"""Spark's session catalog: its databases, its tables, and what registers a table there.

All names are qualified with the catalog, so that the current catalog and database do not matter. Locations are paths of
Hadoop: Spark does not decode them, and prints some of them as URIs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pyspark.sql import SparkSession

from lakelsm.spark.connect import is_connect
from lakelsm.storage.object_location import is_object_uri

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSource
    from pyspark.sql.types import StructType

_CATALOG = "spark_catalog"
_WAREHOUSE = "spark.sql.warehouse.dir"
#: A directory for databases whose own directory is one of lakelsm. Its name is no database of lakelsm.
_OWN_DIRECTORY = "lakelsm-session-catalog"
#: Names that the session catalog accepts.
_NAME = re.compile(r"[A-Za-z0-9_]+")
#: The description of a table. A view has no provider, and its comment follows its type.
_PROVIDER = re.compile(r"^Type: [A-Z]+\nProvider: (.*)$", re.MULTILINE)
_TYPE = re.compile(r"^Type: ", re.MULTILINE)
#: The database that always exists, and that nothing can drop.
_DEFAULT = "default"
#: The setting with the database of global temporary views, which has no tables, and its default.
_GLOBAL_VIEWS = ("spark.sql.globalTempDatabase", "global_temp")


def quoted(name: str) -> str:
    """Return a name in backticks."""
    return "`" + name.replace("`", "``") + "`"


def is_valid_name(name: str) -> bool:
    """Return whether the session catalog can have a database or table of this name."""
    return _NAME.fullmatch(name) is not None


@dataclass(frozen=True)
class SessionCatalog:
    """The session catalog of a Spark session."""

    spark: SparkSession

    def databases(self) -> list[str]:
        """Return the names of the databases."""
        return [row[0] for row in self.spark.sql(f"SHOW DATABASES IN {_CATALOG}").collect()]

    def is_reserved(self, database: str) -> bool:
        """Return whether Spark reserves the name of a database for global temporary views."""
        return database.lower() == (self.spark.conf.get(*_GLOBAL_VIEWS) or "").lower()

    def register_source(self, source: type[DataSource]) -> None:
        """Register a data source in the session.

        Spark looks up an existing one in the active session of the thread (4.0 to 4.3), and refuses its name if only that
        session has it.
        """
        with _active(self.spark):
            self.spark.dataSource.register(source)

    def providers(self, database: str) -> dict[str, str]:
        """Return the provider of each table of a database, by name; '' for a view."""
        rows = self.spark.sql(f"SHOW TABLE EXTENDED IN {_CATALOG}.{quoted(database)} LIKE '*'").collect()
        return {row["tableName"]: provider_of(row["information"]) for row in rows if not row["isTemporary"]}

    def overlaps(self, database: str, directory: str) -> bool:
        """Return whether dropping a database would delete the files of a directory."""
        if database.lower() == _DEFAULT:
            return False
        rows = self.spark.sql(f"DESCRIBE DATABASE EXTENDED {_CATALOG}.{quoted(database)}").collect()
        locations = [row[1] for row in rows if row[0] == "Location"]
        return any(are_nested(each, directory) for location in locations for each in (location, unquote(location)))

    def create_database(self, database: str, directory: str) -> None:
        """Create a database. Its location is never one that has files of ``directory``."""
        location = ""
        warehouse = (self.spark.conf.get(_WAREHOUSE) or "").rstrip("/")
        if are_nested(f"{warehouse}/{database.lower()}.db", directory):
            location = f" LOCATION {_literal(f'{warehouse}/{_OWN_DIRECTORY}/{database.lower()}.db')}"
        self.spark.sql(f"CREATE DATABASE IF NOT EXISTS {_CATALOG}.{quoted(database)}{location}")

    def create_table(self, database: str, table: str, provider: str, location: str, schema: StructType) -> None:
        """Create an external table: dropping it deletes no files."""
        uri = location if is_object_uri(location) else f"file:{location}"
        self.spark.catalog.createTable(_qualified(database, table), path=uri, source=provider, schema=schema)

    def drop_table(self, database: str, table: str) -> None:
        """Drop a table."""
        self.spark.sql(f"DROP TABLE IF EXISTS {_qualified(database, table)}")

    def schema(self, database: str, table: str) -> StructType:
        """Return the columns of a table."""
        return self.spark.table(_qualified(database, table)).schema

    def temporary_views(self) -> list[str]:
        """Return the names of the temporary views."""
        rows = self.spark.sql(f"SHOW VIEWS IN {_CATALOG}.{_DEFAULT}").collect()
        return [row["viewName"] for row in rows if row["isTemporary"] and not row["namespace"]]


@contextmanager
def _active(spark: SparkSession) -> Iterator[None]:
    """Make a classic session the active one of the thread in the context."""
    if is_connect(spark):
        yield
        return
    sessions = SparkSession._get_j_spark_session_class(spark._jvm)
    before = sessions.getActiveSession()
    sessions.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def _qualified(database: str, table: str) -> str:
    """Return the name of a table in SQL."""
    return f"{_CATALOG}.{quoted(database)}.{quoted(table)}"


def _literal(text: str) -> str:
    """Return a text in SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def provider_of(information: str) -> str:
    """Return the provider in the description of a table; '' for a view, whose comment may have any text."""
    kind, found = _TYPE.search(information), _PROVIDER.search(information)
    return "" if found is None or kind is None or found.start() != kind.start() else found[1]


def are_nested(one: str, other: str) -> bool:
    """Return whether two locations are the same, or one is in the other."""
    first, second = _plain(one), _plain(other)
    return first.startswith(second) or second.startswith(first)


def _plain(location: str) -> str:
    """Return a path or URI in one form, with a slash at the end."""
    scheme, colon, rest = location.partition(":")
    if not colon or "/" in scheme:
        scheme, rest = "file", location
    known = {"s3a": "s3", "s3n": "s3", "abfs": "abfss"}.get(scheme.lower(), scheme.lower())
    return f"{known}:/{rest.strip('/')}/"
