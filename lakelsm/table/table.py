"""Table: the public API of one primary-key table."""

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
    checked_number,
    checked_snapshot_id,
    checked_tag,
    checked_time,
    wrong_argument,
)
from lakelsm.engine import opened_storage
from lakelsm.epoch_time import utc_time
from lakelsm.errors import InvalidInputError, SnapshotNotFoundError
from lakelsm.maintain.history import recorded
from lakelsm.maintain.versions.rollback import rollback, rollback_target
from lakelsm.maintain.versions.tag_period import Periods
from lakelsm.moment import Moment
from lakelsm.operation_log import logged, operation_line
from lakelsm.plan.fallback_branch import ReadState
from lakelsm.results import RollbackResult
from lakelsm.schema.table_schema import TableSchema
from lakelsm.snapshots.table_store import TableStore
from lakelsm.snapshots.watermarks import NO_WATERMARK, first_with_watermark
from lakelsm.table.compactable_table import CompactableTable
from lakelsm.table.followed_table import FollowedTable
from lakelsm.table.readable_table import ReadableTable
from lakelsm.table.streamed_table import StreamedTable
from lakelsm.table.table_branches import TableBranches
from lakelsm.table.table_changes import ChangesReader, ChangesRequest
from lakelsm.table.table_consumers import TableConsumers
from lakelsm.table.table_inspection import TableInspection
from lakelsm.table.table_maintenance import TableMaintenance
from lakelsm.table.table_merge import TableMerge, merge_builder
from lakelsm.table.table_tags import TableTags
from lakelsm.table.table_view import TableView
from lakelsm.table.writable_table import WritableTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakelsm.lookup.lookup import Lookup


class Table(ReadableTable, WritableTable, StreamedTable, ChangesReader, FollowedTable, CompactableTable):
    """One table. Each call uses its newest schema and snapshot.

    Related calls are in namespaces: ``maintenance``, ``tags``, ``branches``, ``consumers`` and ``inspect``.
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
        """Open the table in a directory: a path, a ``file:`` URI, or the URI of an object store (s3, gs, abfss).

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
        watermark: int | str | datetime | None = None,
    ) -> TableView:
        """Return a read-only view of a snapshot: by its id, a time (the newest snapshot that is not later), or a tag.

        ``timestamp`` is a datetime or 'YYYY-MM-DD HH:MM:SS' (docs/api.md). ``watermark`` (such a time, or milliseconds
        since 1970) means the first snapshot whose watermark is not earlier. The view has the columns of its snapshot,
        and does not change. Raises SnapshotNotFoundError if there is no such snapshot, InvalidInputError unless exactly
        one argument is given.
        """
        points = (
            checked_snapshot_id("snapshot", snapshot),
            checked_time("timestamp", timestamp),
            checked_tag("tag", tag),
            _checked_watermark(watermark),
        )
        given = [point for point in points if point is not None]
        if len(given) != 1:
            raise InvalidInputError("at: expected one of snapshot, timestamp, tag and watermark, as in at(snapshot=3).")
        store, point = self._store(), given[0]
        if watermark is not None:
            millis = store.millis_of(point) if isinstance(point, Moment) else int(point)
            point = first_with_watermark(store, millis).id
        return TableView(store, self._spark, point)

    def merge(
        self,
        source: object,
        on: str | Sequence[str],
        *,
        duplicates: str = "error",
        order_by: str | Sequence[str] | None = None,
        schema_evolution: bool = False,
    ) -> TableMerge:
        """Return a builder of a merge: add clauses, then call ``execute``.

        ``source`` is a Spark DataFrame, a pyarrow Table, a pandas or Polars DataFrame, a list of dicts, a dict of
        columns, a Table, a TableView, or the result of a query in this process. ``on`` is a column, a list of columns
        that both sides have, or a condition in SQL, in which ``t`` is this table and ``s`` the source: 't.id = s.key'.
        For columns by name, NULL matches NULL in the key only. In this process DuckDB runs the merge, with the
        expressions of docs/sql.md. Raises InvalidInputError for a source or a column that it cannot use.

        ``duplicates`` 'error' refuses several rows of the source for one row; 'last' takes the last of them, before a
        clause is chosen. ``order_by`` are the columns of the source that order its rows, NULL first; only rows in memory
        have an order of their own. ``schema_evolution`` adds the columns that the table lacks, and widens types, if a
        clause is for all columns (docs/api.md, Schema merges); columns that the source lacks keep their values.
        """
        return merge_builder(
            self, source, on, duplicates=duplicates, order_by=order_by, schema_evolution=schema_evolution
        )

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
        """Return the changes after ``start`` up to ``end`` (inclusive): the row kind (+I, -U, +U, -D), then the columns.

        ``start`` and ``end`` are snapshot ids, times (the newest snapshot that is not later) or names of tags; by
        default the range of all retained snapshots. A text is a time if it parses as one ('2026-01-31 12:00:00'), else
        the name of a tag, optionally with the prefix 'tag:'; a text that is both is refused. Expired snapshots are
        allowed if their changelogs are kept. ``where`` selects rows as ``.where`` does, and also skips partitions
        early.

        ``mode`` 'changelog' reads what ``changelog-producer`` wrote; 'delta' reads the rows of appends, merged by the
        merge engine; 'diff' compares the two states, and also shows overwrites. 'auto' is Paimon's choice: 'diff'
        between two tags, else 'delta' for tables without a ``changelog-producer``, else 'changelog'. ``positions`` adds
        the columns _SNAPSHOT_ID and _SEQUENCE_NUMBER (NULL if changes of several snapshots were merged).

        With ``consumer_id`` the changes begin at the next snapshot of the consumer, or for a new consumer after
        ``start``, and expiry keeps them for it. Call `TableConsumers.record` after they are processed;
        `changelog_reader` does so itself. No changelog contains the rows that an overwrite replaces: mode 'diff' shows
        them.
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
        """Return the changes of `changelog` as a stream of Arrow record batches, read in this process as in `to_reader`.

        Arguments are as in `changelog`; ``where`` and ``timestamps`` are as in `to_reader`. With ``consumer_id`` the
        progress of the consumer is recorded when the caller requests more after the last batch: a caller that processes
        each batch before it requests the next one gets every change at least once. A stream that is not read to its end
        records nothing.
        """
        request = ChangesRequest(start, end, where, mode, kind_column, positions, consumer_id)
        return self._change_reader(request, timestamps)

    # -- upkeep ----------------------------------------------------------------------------------------------------

    @logged("rollback")
    def rollback(self, to: int | str | datetime, *, dry_run: bool = False) -> RollbackResult:
        """Roll back to a snapshot: its id, a time (the newest snapshot that is not later), or the name of a tag.

        A text is a time if it parses as one, else the name of a tag, optionally with the prefix 'tag:'. Deletes later
        snapshots, tags and long-lived changelogs, and the files that nothing else needs. An expired snapshot is
        restored from its tag. The schema does not change. Concurrent commits on a later snapshot are refused, and
        consumers of later snapshots continue after this one. ``dry_run`` changes nothing. After a crash the table is
        readable, and the same call completes the rollback. Raises SnapshotNotFoundError if the snapshot or tag does not
        exist or has expired.
        """
        checked_flag("dry_run", dry_run)
        store, requested = self._store().for_changes(), None
        point = self._point(store, "to", to)
        if point is None:
            raise wrong_argument("to", to, "a snapshot id, a time, or the name of a tag")
        if isinstance(point, Moment):
            requested = store.millis_of(point)
            target = store.snapshots.at_or_before(requested)
        else:
            target = rollback_target(store, point)
        with recorded(store, "rollback", dry_run=dry_run) as run:
            result = rollback(store, target, dry_run=dry_run)
            run.files, run.bytes = result.files, result.bytes
        return result if requested is None else replace(result, timestamp=utc_time(requested, "timestamp"))

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
        """Open a lookup: rows by key, from a cache in this process that follows the table. Close it after use.

        No session is needed. ``columns`` are the columns of the rows (by default all), ``key`` those of the lookup key:
        by default the primary key, without the partition columns if ``scan.partitions`` selects partitions. ``where``
        is as in `to_reader`; lookups find matching rows only. ``refresh`` is the interval of checks for a newer
        snapshot in seconds (or '10s'): 0 checks at each lookup, 'never' only in `Lookup.refresh`; by default
        ``lookup.continuous.discovery-interval``. ``cache`` is 'full', 'partial', 'memory' or 'auto', and overrides
        ``lookup.cache``. ``options`` override other lookup options (docs/lookup.md). ``directory`` is the directory of
        the cache files, which processes of this machine can share; by default a temporary one. Raises InvalidInputError
        for columns, types and options that the table cannot have, UnsupportedFeatureError for a condition that this
        process cannot evaluate.
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
        """Return a function for ``facts.transform(…)``, which joins a DataFrame or a stream of facts with rows by key.

        Neither side is shuffled: each task looks its facts up in a cache that its executor keeps across micro-batches,
        so the cost grows with the facts, not with the table. ``on`` names the fact columns of the key, by the names of
        the table or as {'fact column': 'table column'}. ``columns`` of the table are added, by default all except the
        key; {'name': 'customer_name'} renames them. A fact is repeated for each row of its key. ``how`` 'left' keeps
        facts without a row, with NULLs; 'inner' drops them. NULL matches no key. ``by_bucket`` shuffles facts by the
        buckets of the table, so that a task opens only some of them. ``where``, ``refresh`` (except 'never'), ``cache``
        and ``options`` are as in `lookup`: a task answers from the newest snapshot, or one that was newest within
        ``refresh``, so a query may use several. Raises InvalidInputError, also when it is applied to facts, for columns
        that are missing, on both sides, or of another type than the key.
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

    # -- internal --------------------------------------------------------------------------------------------------

    def _read_state(self) -> tuple[TableStore, ReadState, int | None]:
        store = self._store()
        return store, ReadState(store, store.snapshots.latest()), None


def _checked_watermark(value: object) -> int | Moment | None:
    """Check a watermark: milliseconds since 1970 as a whole number, or a time."""
    if value is None or isinstance(value, (str, datetime)):
        return checked_time("watermark", value)
    return checked_number("watermark", value, min_value=NO_WATERMARK)


def first_snapshot_since(table: Table, moment: Moment) -> int | None:
    """Return the id of the first snapshot, also one of a tag, that was committed at a time or later, or None."""
    store = table._store()
    millis = moment.millis(store.text_zone)
    states = [*store.snapshots.list(), *(tag.snapshot for tag in store.tags.all().values())]
    found = min(((state.time_millis, state.id) for state in states if state.time_millis >= millis), default=None)
    return None if found is None else found[1]


def is_before_snapshots(table: Table, start: str | datetime, end: str | datetime) -> bool:
    """Return whether an interval of times ends before the first snapshot. Raises InvalidInputError if it is reversed."""
    store = table._store()
    moments = checked_time("start", start), checked_time("end", end)
    first, last = (moment.millis(store.text_zone) for moment in moments if moment is not None)
    if first > last:
        raise InvalidInputError(f"start: {start} is after end {end}.")
    earliest = store.snapshots.earliest_id()
    found = None if earliest is None else store.snapshots.try_get(earliest)
    return found is not None and last < found.time_millis


def previous_automatic_tag(table: Table, tag: str) -> str:
    """Return the automatic tag of the last period before that of ``tag``; ``tag`` itself if there is none.

    Raises InvalidInputError if ``tag`` is not the name of an automatic tag by the table's options.
    """
    store = table._store()
    periods = Periods.of(store.options)
    end = periods.period_of(tag)
    if end is None:
        raise InvalidInputError(f"Table {table.name}: tag {tag!r} has no name of an automatic tag.")
    if tag not in store.tags.names():
        raise SnapshotNotFoundError(f"Table {table.name}: tag {tag!r} does not exist.")
    found = ((periods.period_of(name), name) for name in store.tags.names())
    return max(((period, name) for period, name in found if period is not None and period < end), default=(end, tag))[1]
