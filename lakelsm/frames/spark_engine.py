"""The engine that runs a table's operations on Spark."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from lakelsm.format.snapshot import Snapshot
from lakelsm.frames.delete_frame import key_retractions, prepared_keys, retractions
from lakelsm.frames.frame_writer import FrameWriter
from lakelsm.frames.prepare import prepare
from lakelsm.frames.scan_frame import read_frame
from lakelsm.frames.update import updates
from lakelsm.plan.read_plan import plan_read
from lakelsm.predicate.predicate import Predicate
from lakelsm.read.hidden_count import count_rows
from lakelsm.results import CountResult
from lakelsm.snapshots.table_store import TableStore
from lakelsm.spark.expressions import predicate_of
from lakelsm.spark.session import resolve_session
from lakelsm.spark.spark_runner import SparkRunner
from lakelsm.spark.task_errors import translated_errors


class SparkEngine:
    """Uses the given session, or that of `resolve_session`. A session starts only when it is needed.

    Prepared rows are DataFrames. ``instead`` is as in `resolve_session`.
    """

    def __init__(self, spark: SparkSession | None, instead: str | None = None) -> None:
        self._given, self._instead = spark, instead

    @property
    def session(self) -> SparkSession:
        """The session; starts one if necessary."""
        return resolve_session(self._given, self._instead)

    @property
    def runner(self) -> SparkRunner:
        """The runner of planned units."""
        return SparkRunner(self.session)

    def writer(self, store: TableStore) -> FrameWriter:
        """See `Engine.writer`."""
        return FrameWriter(self.session, store)

    def prepared_rows(
        self,
        store: TableStore,
        data: DataFrame,
        row_kind: str | None = None,
        fixed: Mapping[str, object] | None = None,
        *,
        safe_casts: bool = True,
    ) -> DataFrame:
        """See `Engine.prepared_rows`."""
        with translated_errors(store.paths.root):
            return prepare(data, store.schema, store.options, row_kind, fixed, safe_casts=safe_casts)

    def retractions(self, store: TableStore, where: str, snapshot: Snapshot | None) -> DataFrame:
        """See `Engine.retractions`."""
        return retractions(self.session, store, where, snapshot)

    def updates(
        self, store: TableStore, where: str, values: Mapping[str, str], snapshot: Snapshot | None
    ) -> DataFrame:
        """See `Engine.updates`."""
        return updates(self.session, store, where, values, snapshot)

    def prepared_keys(self, store: TableStore, data: DataFrame) -> DataFrame:
        """See `Engine.prepared_keys`."""
        with translated_errors(store.paths.root):
            return prepared_keys(store, data)

    def key_retractions(self, store: TableStore, keys: DataFrame, snapshot: Snapshot | None) -> DataFrame:
        """See `Engine.key_retractions`."""
        return key_retractions(self.session, store, keys, snapshot)

    def predicate(self, store: TableStore, where: str) -> Predicate:
        """See `Engine.predicate`."""
        return predicate_of(self.session, store.schema.fields, where)

    def count_rows(self, store: TableStore, snapshot: Snapshot | None, where: str | None, fresh: bool) -> CountResult:
        """See `Engine.count_rows`."""
        predicate = None if where is None else self.predicate(store, where)
        plan = plan_read(store, snapshot, predicate, fresh)

        def read() -> int:
            with translated_errors(store.paths.root):
                return read_frame(self.session, store, plan, where, store.schema.primary_keys).count()

        return count_rows(self.runner, store, plan, predicate, read)
