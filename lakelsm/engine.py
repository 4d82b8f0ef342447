"""Where a table's work is done: on Spark, or in this process. `Table` calls what both do in their own way."""

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

#: What a call may name its engine.
ENGINES = ("local", "spark")
#: What a call that takes an engine can do without Spark.
_WORK_HERE = "pass engine='local'"


class Engine(Protocol):
    """What operations on a table need of where they run. Prepared rows are whatever the engine's writer takes."""

    @property
    def runner(self) -> Runner:
        """What runs planned units."""

    def writer(self, store: TableStore) -> RowWriter[Any]:
        """What writes prepared rows to a table."""

    def prepared(
        self,
        store: TableStore,
        data: Any,
        row_kind: str | None = None,
        fixed: Mapping[str, object] | None = None,
        *,
        safe_casts: bool = True,
    ) -> Any:
        """The rows that a user passes, checked and ready to be written.

        ``row_kind`` names a column of +I, -U, +U and -D; ``fixed`` has the values of a partition that the rows are for.
        ``safe_casts``: a column of another type is taken where each of its values fits.
        """

    def retractions(self, store: TableStore, where: str, snapshot: Snapshot | None) -> Any:
        """Prepared -D rows of what matches in a snapshot (None: an empty table)."""

    def updates(self, store: TableStore, where: str, values: Mapping[str, str], snapshot: Snapshot | None) -> Any:
        """Prepared +U rows of what matches in a snapshot (None: an empty table); ``values`` are expressions by column."""

    def prepared_keys(self, store: TableStore, data: Any) -> Any:
        """The keys that a user passes, checked."""

    def key_retractions(self, store: TableStore, keys: Any, snapshot: Snapshot | None) -> Any:
        """Prepared -D rows of what has one of some prepared keys in a snapshot (None: an empty table)."""

    def predicate(self, store: TableStore, where: str) -> Predicate:
        """A condition on the table's columns; texts of times are in the engine's time zone."""

    def counted(self, store: TableStore, snapshot: Snapshot | None, where: str | None, fresh: bool) -> CountResult:
        """How many rows of a snapshot match, if data files must be read."""


def checked_session(spark: SparkSession | None) -> SparkSession | None:
    """Return the session that a user passes, or None. Raises InvalidInputError for anything else."""
    if spark is None:
        return None
    from lakelsm.spark.session import checked_session

    return checked_session(spark)


def chosen_engine(name: str | None, spark: SparkSession | None, instead: str = _WORK_HERE) -> Engine:
    """The engine named, or else the one that is meant: Spark where there is a session, this process where not.

    ``instead`` is as in `spark_session`.
    """
    if name == "spark" or (name is None and has_session(spark)):
        from lakelsm.frames.spark_engine import SparkEngine

        return SparkEngine(spark, instead)
    return local_engine()


def local_engine() -> LocalEngine:
    """The engine of this process."""
    from lakelsm.local.local_engine import LocalEngine

    return LocalEngine()


def spark_session(spark: SparkSession | None, instead: str) -> SparkSession:
    """The session given, the active one, or a new local one, which starts a JVM.

    If none can be started, the error says what the caller can do ``instead``, without Spark.
    """
    from lakelsm.frames.spark_engine import SparkEngine

    return SparkEngine(spark, instead).session


def opened_storage(
    location: str, spark: SparkSession | None, storage_options: Mapping[str, object] | None
) -> tuple[FileIO, str]:
    """The store of a location and the path in it. An object store takes settings of the session given or active too."""
    settings: Mapping[str, str] = {}
    session = spark or _active_session()
    if session is not None and is_object_uri(location):
        from lakelsm.spark.session import hadoop_settings

        settings = hadoop_settings(session)
    return open_storage(location, option_texts("storage_options", storage_options), settings)


def spark_errors() -> tuple[type[Exception], ...]:
    """What Spark raises; nothing where PySpark is not loaded."""
    errors, protocol = sys.modules.get("pyspark.errors"), sys.modules.get("py4j.protocol")
    return () if errors is None or protocol is None else (errors.PySparkException, protocol.Py4JError)


def stop_session() -> None:
    """Stop the active session, where there is one."""
    active = _active_session()
    if active is not None:
        active.stop()


def forget_table(root: str) -> None:
    """Drop what Spark sessions keep of a table that was dropped; PySpark is not loaded for it."""
    if "lakelsm.frames.hidden_rows" in sys.modules:
        from lakelsm.frames.hidden_rows import forget_table

        forget_table(root)


def has_session(spark: SparkSession | None) -> bool:
    """Whether there is a Spark session to work in: the one given, the active one, or that of spark-submit."""
    return spark is not None or is_submitted() or _active_session() is not None


def _active_session() -> SparkSession | None:
    """The active session; PySpark is not loaded for it."""
    sql = sys.modules.get("pyspark.sql")
    return None if sql is None else sql.SparkSession.getActiveSession()
