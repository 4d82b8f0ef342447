"""The face of a table's rows: read on Spark and in this process, counted, looked up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from lakelsm.arguments import (
    checked_condition,
    checked_flag,
    checked_number,
    checked_projection,
    checked_snapshot_id,
    checked_tag,
    checked_time,
    checked_timestamps,
)
from lakelsm.engine import Engine, chosen_engine, local_engine
from lakelsm.maintain.opened_table import OpenedTable
from lakelsm.plan.count_plan import joined_count, metadata_count
from lakelsm.plan.fallback_branch import ReadState, fallback_of, joined_plan, read_states, refuse_fallback
from lakelsm.plan.read_plan import ReadPlan, plan_read
from lakelsm.plan.time_travel import chosen_state
from lakelsm.predicate.parser import parse_where
from lakelsm.results import CountResult
from lakelsm.snapshots.table_store import TableStore

if TYPE_CHECKING:
    import pandas
    from pyspark.sql import DataFrame

    from lakelsm.lookup.lookup import Lookup


class TableReads(OpenedTable):
    """Reads, counts and lookups of a table."""

    def read(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        snapshot_id: int | None = None,
        timestamp: str | datetime | None = None,
        tag: str | None = None,
        fresh: bool = False,
    ) -> DataFrame:
        """The merged rows of the newest snapshot, or of another one, as a DataFrame.

        ``where`` (an SQL condition) and ``columns`` do what ``.where`` and ``.select`` do, and also leave out partitions,
        buckets and files by the manifests alone. ``timestamp`` is a datetime or 'YYYY-MM-DD HH:MM:SS' (docs/api.md):
        the newest snapshot that is not later. At most one of the last three may be given. Tables with deletion
        vectors or `first-row` show what a compaction has merged: ``fresh`` merges in the rows that wait in level 0, as
        reads of other tables always do.
        """
        from lakelsm.frames.scan_frame import read_frame

        names = checked_projection(columns)
        plans = self._plans(chosen_engine("spark", self._spark), where, snapshot_id, timestamp, tag, fresh)
        frames = [read_frame(self.spark, store, plan, where, names) for store, plan in plans]
        return reduce(lambda one, other: one.unionAll(other), frames)

    def to_reader(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        ordered: bool = False,
        snapshot_id: int | None = None,
        timestamp: str | datetime | None = None,
        tag: str | None = None,
        fresh: bool = False,
        timestamps: str = "ns",
    ) -> pa.RecordBatchReader:
        """The rows that `read` gives as a stream of Arrow record batches, read in this process: no session is needed.

        ``where`` is judged here, so each part of it must be one that lakelsm understands: columns and literals compared,
        IN, BETWEEN, LIKE, IS NULL, joined by AND, OR and NOT. ``limit`` ends the stream after so many rows, whichever
        come first; ``ordered`` gives them in the order of the primary key. ``timestamps`` is the Arrow type of
        TIMESTAMP(7..9), nested ones too: 'ns' (nanoseconds, which hold the years 1678 to 2261 alone), 'us' (microseconds,
        rounded down) or 'text' ('0001-01-01 00:00:00.000000000', those WITH LOCAL TIME ZONE in UTC). The other arguments
        are as in `read`. Memory does not follow the table's size. A stream that is dropped half-way stops its work; its
        ``close`` alone does not. It is for one thread. Raises UnsupportedFeatureError for a part of ``where`` that is not
        understood, and, while rows are taken, CorruptTableError for a damaged file and UnsupportedFeatureError for a time
        that ``timestamps`` 'ns' cannot hold.
        """
        from lakelsm.local.arrow_scan import ArrowScan, chained_reader

        names = checked_projection(columns)
        most = None if limit is None else checked_number("limit", limit, least=0)
        checked_flag("ordered", ordered)
        checked_flag("fresh", fresh)
        form = checked_timestamps("timestamps", timestamps)
        engine = local_engine()
        states = self._states(engine, where, snapshot_id, timestamp, tag)
        if ordered:
            refuse_fallback(self._store(), "ordered=True")
        scans = [
            ArrowScan.of(
                it.store,
                it.snapshot,
                names,
                engine.exact(it.store, where),
                ordered=ordered,
                fresh=fresh,
                timestamps=form,
            )
            for it in states
        ]
        return chained_reader(scans, engine.runner, most, names)

    def to_arrow(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        ordered: bool = False,
        snapshot_id: int | None = None,
        timestamp: str | datetime | None = None,
        tag: str | None = None,
        fresh: bool = False,
        timestamps: str = "ns",
    ) -> pa.Table:
        """The rows of `to_reader` as one Arrow table, in memory."""
        return self.to_reader(
            where,
            columns,
            limit=limit,
            ordered=ordered,
            snapshot_id=snapshot_id,
            timestamp=timestamp,
            tag=tag,
            fresh=fresh,
            timestamps=timestamps,
        ).read_all()

    def to_pandas(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        ordered: bool = False,
        snapshot_id: int | None = None,
        timestamp: str | datetime | None = None,
        tag: str | None = None,
        fresh: bool = False,
        timestamps: str = "ns",
    ) -> pandas.DataFrame:
        """The rows of `to_reader` as a pandas DataFrame. Raises UnsupportedFeatureError for values that pandas lacks."""
        from lakelsm.local.shown_rows import as_pandas

        return as_pandas(
            self.to_arrow(
                where,
                columns,
                limit=limit,
                ordered=ordered,
                snapshot_id=snapshot_id,
                timestamp=timestamp,
                tag=tag,
                fresh=fresh,
                timestamps=timestamps,
            )
        )

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
        """Rows by key, kept at hand in this process and fresh as the table changes: no session is needed. Close it.

        ``columns`` are those of the rows (all by default), ``key`` those that rows are found by: the primary key by
        default, without the partition columns where ``scan.partitions`` chooses partitions. ``where`` is as in
        `to_reader`; only rows for which it is true are found. ``refresh`` is how often lookups look for a newer snapshot,
        in seconds (or '10s'): 0 is each time, 'never' is only by `Lookup.refresh`; by default
        ``lookup.continuous.discovery-interval``. ``cache`` is 'full', 'partial', 'memory' or 'auto', in place of
        ``lookup.cache``. ``options`` are other ones of lookups (docs/lookup.md) that hold for this one. ``directory`` is
        where the cache's files lie, for processes of this machine to share; by default a temporary one. Raises
        InvalidInputError for columns, types and options that the table cannot have, UnsupportedFeatureError for a part
        of ``where`` that is not understood.
        """
        from lakelsm.lookup.open_lookup import open_lookup

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

    def plan(
        self,
        where: str | None = None,
        *,
        snapshot_id: int | None = None,
        timestamp: str | datetime | None = None,
        tag: str | None = None,
        fresh: bool = False,
    ) -> ReadPlan:
        """What `read` would open: its ``files_scanned`` of ``files_live``."""
        plans = self._plans(chosen_engine(None, self._spark), where, snapshot_id, timestamp, tag, fresh)
        return joined_plan([plan for _, plan in plans])

    def count(
        self,
        where: str | None = None,
        *,
        snapshot_id: int | None = None,
        timestamp: str | datetime | None = None,
        tag: str | None = None,
        fresh: bool = False,
        engine: str | None = None,
    ) -> CountResult:
        """How many rows `read` would give. The result is the number for ``int()``, and says how it was found.

        The manifests alone tell it, without a session, where no files have to be merged and ``where`` takes partitions
        whole; else data files are read: by the ``engine`` 'spark' or 'local', this process; by default Spark where a
        session is given, active or that of spark-submit. Arguments and errors are as in `read`, or in `to_reader`.
        """
        checked_flag("fresh", fresh)
        chosen = self._engine(engine)
        states = self._states(chosen, where, snapshot_id, timestamp, tag)
        return reduce(joined_count, (_counted(chosen, state, where, fresh) for state in states))

    # -- inside ----------------------------------------------------------------------------------------------------

    def _plans(
        self,
        engine: Engine,
        where: str | None,
        snapshot_id: int | None,
        timestamp: str | datetime | None,
        tag: str | None,
        fresh: bool,
    ) -> list[tuple[TableStore, ReadPlan]]:
        checked_flag("fresh", fresh)
        states = self._states(engine, where, snapshot_id, timestamp, tag)
        predicates = [None if where is None else engine.predicate(state.store, where) for state in states]
        plans: list[tuple[TableStore, ReadPlan]] = []
        for state, predicate in zip(states, predicates):
            with state.store.while_read(state.snapshot):
                plans.append((state.store, plan_read(state.store, state.snapshot, predicate, fresh)))
        return plans

    def _states(
        self,
        engine: Engine,
        where: str | None,
        snapshot_id: int | None,
        timestamp: str | datetime | None,
        tag: str | None,
    ) -> list[ReadState]:
        """What is read: the table's state, and that of the branch that it falls back to, if any."""
        checked_condition(where)
        snapshot_id = checked_snapshot_id("snapshot_id", snapshot_id)
        moment, tag = checked_time("timestamp", timestamp), checked_tag("tag", tag)
        newest = self._store()
        store, snapshot = chosen_state(newest, snapshot_id, moment, tag)
        other, until = fallback_of(newest), None
        if moment is not None:
            until = newest.millis_of(moment)
        elif snapshot is not None and (snapshot_id is not None or tag is not None):
            until = snapshot.time_millis
        predicate = None if where is None or other is None else engine.predicate(store, where)
        return read_states(ReadState(store, snapshot), other, predicate, until)


def _counted(engine: Engine, state: ReadState, where: str | None, fresh: bool) -> CountResult:
    """How many rows of a state match: by the manifests, or else by the engine."""
    store, snapshot = state.store, state.snapshot
    predicate = None if where is None else parse_where(where, store.schema.fields)
    with store.while_read(snapshot):
        rows = metadata_count(store, snapshot, predicate, fresh)
        if rows is None:
            return engine.counted(store, snapshot, where, fresh)
    return CountResult(snapshot_id=None if snapshot is None else snapshot.id, rows=rows, how="metadata")
