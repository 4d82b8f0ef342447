"""Table: the public face of one primary-key table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from lakelsm.arguments import (
    checked_flag,
    checked_location,
    checked_snapshot_id,
    checked_tag,
    checked_time,
    wrong_argument,
)
from lakelsm.engine import opened_storage
from lakelsm.epoch_time import utc_time
from lakelsm.errors import InvalidInputError
from lakelsm.maintain.history import recorded
from lakelsm.maintain.versions.rollback import rollback, rollback_target
from lakelsm.moment import Moment
from lakelsm.operation_log import logged, operation_line
from lakelsm.plan.fallback_branch import ReadState
from lakelsm.results import RollbackResult
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.table_store import TableStore
from lakelsm.table.compactable_table import CompactableTable
from lakelsm.table.readable_table import ReadableTable
from lakelsm.table.table_branches import TableBranches
from lakelsm.table.table_changes import ChangesReader, ChangesRequest
from lakelsm.table.table_consumers import TableConsumers
from lakelsm.table.table_inspection import TableInspection
from lakelsm.table.table_maintenance import TableMaintenance
from lakelsm.table.table_tags import TableTags
from lakelsm.table.table_view import TableView
from lakelsm.table.writable_table import WritableTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakelsm.lookup.lookup import Lookup


class Table(ReadableTable, WritableTable, ChangesReader, CompactableTable):
    """One table, as its newest schema and snapshot are at each call.

    What belongs together has a namespace: ``maintenance``, ``tags``, ``branches``, ``consumers`` and ``inspect``.
    """

    def __init__(self, store: TableStore, spark: SparkSession | None = None) -> None:
        super().__init__(store, spark)
        self.maintenance = TableMaintenance(store, spark)
        self.tags = TableTags(store, spark)
        self.branches: TableBranches[Table] = TableBranches(store, spark, lambda branch: Table(branch, spark))
        self.consumers = TableConsumers(store, spark)
        self.inspect = TableInspection(store, spark)

    @staticmethod
    def for_path(
        location: str, spark: SparkSession | None = None, *, storage_options: Mapping[str, object] | None = None
    ) -> Table:
        """Open the table whose directory is at a path, a ``file:`` URI, or the URI of an object store (s3, gs, abfss).

        ``storage_options`` are the endpoint and the credentials of an object store, as in `Catalog`.
        """
        storage = opened_storage(checked_location("location", location), spark, storage_options)
        return Table(TableStore.within(*storage), spark)

    @property
    def schema(self) -> TableSchema:
        """The newest schema."""
        return self._store().schema

    def at(
        self,
        *,
        snapshot: int | None = None,
        timestamp: str | datetime | None = None,
        tag: str | None = None,
    ) -> TableView:
        """A read-only view of the table at a snapshot: its id, a time (the newest snapshot not later), or a tag.

        ``timestamp`` is a datetime or 'YYYY-MM-DD HH:MM:SS' (docs/api.md). The view has the columns of its snapshot, and
        does not change. Raises SnapshotNotFoundError where there is no such snapshot, and InvalidInputError unless one of
        the three is given.
        """
        points = (
            checked_snapshot_id("snapshot", snapshot),
            checked_time("timestamp", timestamp),
            checked_tag("tag", tag),
        )
        given = [point for point in points if point is not None]
        if len(given) != 1:
            raise InvalidInputError("Give one of snapshot, timestamp and tag: at(snapshot=3).")
        return TableView(self._store(), self._spark, given[0])

    # -- changes ----------------------------------------------------------------------------------------------------

    def changelog(
        self,
        start: int | str | datetime | None = None,
        end: int | str | datetime | None = None,
        where: str | None = None,
        *,
        mode: str = "auto",
        kind_column: str = "rowkind",
        positions: bool = False,
        consumer_id: str | None = None,
    ) -> DataFrame:
        """The changes after ``start`` up to ``end`` (inclusive): the row kind (+I, -U, +U, -D), then the table's columns.

        ``start`` and ``end`` are snapshot ids, times (the newest snapshot that is not later) or names of tags. A text is
        a time if it parses as one ('2026-01-31 12:00:00'), else the name of a tag, which 'tag:' may precede; a text that
        is both is refused. They may be expired snapshots whose changelogs are kept. Without them: all retained snapshots.
        ``where`` does what ``.where`` does, and also leaves out partitions early.

        ``mode`` 'changelog' reads what ``changelog-producer`` kept; 'delta' the rows that appends wrote, merged by the
        merge engine; 'diff' compares the two states, which also sees overwrites. 'auto' is Paimon's choice: 'diff'
        between two tags, else 'delta' for tables without a ``changelog-producer``, else 'changelog'. With ``positions``
        the columns _SNAPSHOT_ID and _SEQUENCE_NUMBER follow (NULL where changes of several snapshots were merged).

        With ``consumer_id`` they begin where the consumer is, or where it is new at ``start``, and expiry keeps them for
        it from now on. Call `TableConsumers.record` when they are processed; `changelog_reader` does so itself. What
        an overwrite replaces is in no changelog: mode 'diff' shows it.
        """
        request = ChangesRequest(start, end, where, mode, kind_column, positions, consumer_id)
        return self._change_frame(request)

    def changelog_reader(
        self,
        start: int | str | datetime | None = None,
        end: int | str | datetime | None = None,
        where: str | None = None,
        *,
        mode: str = "auto",
        kind_column: str = "rowkind",
        positions: bool = False,
        consumer_id: str | None = None,
        timestamps: str = "ns",
    ) -> pa.RecordBatchReader:
        """The changes that `changelog` gives as a stream of Arrow record batches, read in this process as in `to_reader`.

        The arguments are those of `changelog`; ``where`` is as in `to_reader`. With ``consumer_id``
        the consumer's progress is recorded when the caller requests more after the last batch: a caller that
        processes each batch before it requests the next gets every change at least once. A stream that is not read to its
        end records nothing.
        """
        request = ChangesRequest(start, end, where, mode, kind_column, positions, consumer_id)
        return self._change_reader(request, timestamps)

    # -- upkeep ----------------------------------------------------------------------------------------------------

    @logged("rollback")
    def rollback(self, to: int | str | datetime, *, dry_run: bool = False) -> RollbackResult:
        """Go back to a snapshot: its id, a time (the newest snapshot that is not later), or the name of a tag.

        A text is a time if it parses as one, else the name of a tag, which 'tag:' may precede. Later snapshots, tags and
        long-lived changelogs are deleted, and the files that nothing else needs; a snapshot that has expired is restored
        from its tag. The schema does not change. Commits in progress on a later snapshot are refused, and
        consumers beyond continue after the snapshot. With ``dry_run`` nothing is changed. A rollback that was killed
        leaves a table that reads; the same call finishes it. Raises SnapshotNotFoundError where there is no such snapshot
        or tag, or where it has expired.
        """
        checked_flag("dry_run", dry_run)
        store, asked = self._store().for_changes(), None
        point = self._point(store, "to", to)
        if point is None:
            raise wrong_argument("to", to, "a snapshot id, a time, or the name of a tag")
        if isinstance(point, Moment):
            asked = store.millis_of(point)
            target = store.snapshots.at_or_before(asked)
        else:
            target = rollback_target(store, point)
        with recorded(store, "rollback", dry_run=dry_run) as run:
            result = rollback(store, target, dry_run=dry_run)
            run.files, run.bytes = result.files, result.bytes
        return result if asked is None else replace(result, timestamp=utc_time(asked, "timestamp"))

    # -- lookups ---------------------------------------------------------------------------------------------------

    def lookup(
        self,
        columns: Sequence[str] | None = None,
        *,
        key: Sequence[str] | None = None,
        where: str | None = None,
        refresh: float | str | None = None,
        cache: str | None = None,
        options: Mapping[str, object] | None = None,
        directory: str | Path | None = None,
    ) -> Lookup:
        """Rows by key, from a cache in this process that follows the table: no session is needed. Close it.

        ``columns`` are those of the rows (all by default), ``key`` those that rows are found by: the primary key by
        default, without the partition columns where ``scan.partitions`` chooses partitions. ``where`` is as in
        `to_reader`; only rows for which it is true are found. ``refresh`` is how often lookups look for a newer snapshot,
        in seconds (or '10s'): 0 is each time, 'never' is only by `Lookup.refresh`; by default
        ``lookup.continuous.discovery-interval``. ``cache`` is 'full', 'partial', 'memory' or 'auto', instead of
        ``lookup.cache``. ``options`` are other ones of lookups (docs/lookup.md) that hold for this one. ``directory`` is
        where the cache's files lie, for processes of this machine to share; by default a temporary one. Raises
        InvalidInputError for columns, types and options that the table cannot have, UnsupportedFeatureError for a part
        of ``where`` that is not understood.
        """
        from lakelsm.lookup.lookup import open_lookup

        with operation_line(self._log_name, "open lookup", only_failures=True):
            return open_lookup(
                self._store(),
                columns=columns,
                key=key,
                where=where,
                refresh=refresh,
                cache=cache,
                options=options,
                directory=directory,
            )

    def lookup_join(
        self,
        on: Mapping[str, str] | Sequence[str] | str,
        columns: Mapping[str, str] | Sequence[str] | None = None,
        how: str = "left",
        *,
        where: str | None = None,
        refresh: float | str | None = None,
        cache: str | None = None,
        options: Mapping[str, object] | None = None,
        by_bucket: bool = False,
    ) -> Callable[[DataFrame], DataFrame]:
        """What joins a DataFrame of facts, or a stream of them, with the rows of a key: ``facts.transform(it)``.

        Neither side is shuffled: each task looks its facts up in a cache that its executor keeps, also from one
        micro-batch to the next, so that the cost follows the facts and not the table. ``on`` names the fact columns of
        the key, each by the table's name or as {'fact column': 'table column'}. ``columns`` of the table are added, by
        default all but the key's; {'name': 'customer_name'} gives them other names. A fact comes once for each row of
        its key; ``how`` 'left' keeps those without one, with NULL, 'inner' leaves them out. NULL is no key. With
        ``by_bucket`` facts are shuffled by the table's buckets, so that a task opens only some of them. ``where``,
        ``refresh`` ('never' excepted), ``cache`` and ``options`` are as in `lookup`: a task answers from the newest
        snapshot, or one that was within ``refresh``, so that a query may see several. Raises InvalidInputError, where it
        meets the facts too, for columns that are missing, of another type than the key's, or on both sides.
        """
        from lakelsm.lookup.join.lookup_join import lookup_join

        return lookup_join(
            self._store(),
            on=on,
            columns=columns,
            how=how,
            where=where,
            refresh=refresh,
            cache=cache,
            options=options,
            by_bucket=by_bucket,
        )

    # -- inside ----------------------------------------------------------------------------------------------------

    def _read_state(self) -> tuple[TableStore, ReadState, int | None]:
        store = self._store()
        return store, ReadState(store, store.snapshots.latest()), None
