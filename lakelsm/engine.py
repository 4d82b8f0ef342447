"""The choice of the engine of a call, Spark or this process, and the protocol of the parts in which they differ."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from lakelsm.arguments import option_texts
from lakelsm.environment import is_submitted
from lakelsm.format.snapshot import Snapshot
from lakelsm.predicate.predicate import Predicate
from lakelsm.results import CountResult
from lakelsm.runner.runner import Runner
from lakelsm.snapshots.table_store import TableStore
from lakelsm.storage import FileIO, open_storage
from lakelsm.storage.object_location import is_object_uri
from lakelsm.write.batch_write import RowWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakelsm.local.local_engine import LocalEngine

#: The values of the argument `engine`.
ENGINES = ("local", "spark")
#: The remedy in the error of a call that takes an engine, if Spark cannot start.
_WORK_HERE = "pass engine='local'"


class Engine(Protocol):
    """The parts of an operation that depend on the engine. Only the engine's writer knows the form of prepared rows."""

    @property
    def runner(self) -> Runner:
        """The runner of planned units."""

    def writer(self, store: TableStore) -> RowWriter[Any]:
        """Return the writer of prepared rows to a table."""

    def prepared_rows(
        self,
        store: TableStore,
        data: Any,
        row_kind: str | None = None,
        fixed: Mapping[str, object] | None = None,
        *,
        safe_casts: bool = True,
    ) -> Any:
        """Check the rows that a user passes, and return them ready to be written.

        ``row_kind`` names a column of +I, -U, +U and -D. ``fixed`` has the partition values that all rows must have.
        ``safe_casts``: a column of another type is accepted if each of its values fits.
        """

    def retractions(self, store: TableStore, where: str, snapshot: Snapshot | None) -> Any:
        """Return prepared -D rows for the rows of a snapshot that match (None: an empty table)."""

    def updates(self, store: TableStore, where: str, values: Mapping[str, str], snapshot: Snapshot | None) -> Any:
        """Return prepared +U rows for the rows of a snapshot that match (None: an empty table).

        ``values`` are expressions by column name.
        """

    def prepared_keys(self, store: TableStore, data: Any) -> Any:
        """Check the keys that a user passes, and return them."""

    def key_retractions(self, store: TableStore, keys: Any, snapshot: Snapshot | None) -> Any:
        """Return prepared -D rows for the rows of a snapshot that have one of the keys (None: an empty table)."""

    def predicate(self, store: TableStore, where: str) -> Predicate:
        """Parse a condition on the table's columns. Texts of times are in the engine's time zone."""

    def count_rows(self, store: TableStore, snapshot: Snapshot | None, where: str | None, fresh: bool) -> CountResult:
        """Count the rows of a snapshot that match (None: an empty table); data files are read only if necessary."""


def checked_session(spark: SparkSession | None) -> SparkSession | None:
    """Return the session that a user passes, or None. Raises InvalidInputError for anything else."""
    if spark is None:
        return None
    from lakelsm.spark.session import checked_session

    return checked_session(spark)


def chosen_engine(name: str | None, spark: SparkSession | None, instead: str = _WORK_HERE) -> Engine:
    """Return the engine called ``name``; without a name Spark if there is a session, else this process.

    ``instead`` is as in `spark_session`.
    """
    if name == "spark" or (name is None and has_session(spark)):
        from lakelsm.frames.spark_engine import SparkEngine

        return SparkEngine(spark, instead)
    return local_engine()


def local_engine() -> LocalEngine:
    """Return the engine of this process."""
    from lakelsm.local.local_engine import LocalEngine

    return LocalEngine()


def spark_session(spark: SparkSession | None, instead: str) -> SparkSession:
    """Return the session given, else the active one, else a new local one, which starts a JVM.

    If no session can start, the error names what the caller can do ``instead``, without Spark.
    """
    from lakelsm.frames.spark_engine import SparkEngine

    return SparkEngine(spark, instead).session


def opened_storage(
    location: str, spark: SparkSession | None, storage_options: Mapping[str, object] | None
) -> tuple[FileIO, str]:
    """Return the storage of a location, and the path in it.

    An object store also uses settings of the session given, or else of the active one.
    """
    settings: Mapping[str, str] = {}
    session = spark or _active_session()
    if session is not None and is_object_uri(location):
        from lakelsm.spark.session import hadoop_settings

        settings = hadoop_settings(session)
    return open_storage(location, option_texts("storage_options", storage_options), settings)


def spark_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that Spark raises; none if PySpark is not loaded."""
    errors, protocol = sys.modules.get("pyspark.errors"), sys.modules.get("py4j.protocol")
    found = () if errors is None else (errors.PySparkException,)
    return found if protocol is None else (*found, protocol.Py4JError)


def stop_session() -> None:
    """Stop the active session, if there is one."""
    active = _active_session()
    if active is not None:
        active.stop()


def forget_table(root: str) -> None:
    """Drop what Spark sessions keep of a deleted table. PySpark is not loaded for this."""
    if "lakelsm.frames.hidden_rows" in sys.modules:
        from lakelsm.frames.hidden_rows import forget_table

        forget_table(root)


def has_session(spark: SparkSession | None) -> bool:
    """Return whether there is a Spark session: the one given, the active one, or that of spark-submit."""
    return spark is not None or is_submitted() or _active_session() is not None


def _active_session() -> SparkSession | None:
    """Return the active session, a classic one before one of Spark Connect. PySpark is not loaded for this."""
    sql = sys.modules.get("pyspark.sql")
    if sql is None:
        return None
    from lakelsm.spark.connect import active_connect_session

    return sql.SparkSession.getActiveSession() or active_connect_session()
