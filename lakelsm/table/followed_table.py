"""`Table.follow`: the changes of a table in a plain Python process, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from lakelsm.arguments import (
    TAG_POINT,
    checked_condition,
    checked_consumer,
    checked_flag,
    checked_name,
    checked_number,
    checked_seconds,
    checked_tag,
    checked_time,
    checked_timestamps,
    wrong_argument,
)
from lakelsm.engine import local_engine
from lakelsm.errors import InvalidInputError
from lakelsm.operation_log import operation_line
from lakelsm.options import ScanMode
from lakelsm.plan.time_travel import Point
from lakelsm.read.changelog_tasks import check_added_columns
from lakelsm.snapshots.table_store import TableStore
from lakelsm.stream.change_feed import ChangeFeed
from lakelsm.stream.feed_settings import FeedSettings, checked_overwrites, checked_stored
from lakelsm.stream.followed_batch import FollowedBatch
from lakelsm.stream.stream_limits import StreamLimits
from lakelsm.stream.stream_offset import StreamOffset
from lakelsm.stream.table_follower import PLANNED_BYTES, FollowSettings, TableFollower
from lakelsm.table.opened_table import OpenedTable

#: The scan modes of `Table.follow`, each with the argument that it needs.
_FOLLOW_MODES: Mapping[str, str | None] = MappingProxyType(
    {
        "latest-full": None,
        "latest": None,
        "compacted-full": None,
        "from-snapshot": "snapshot",
        "from-snapshot-full": "snapshot",
        "from-timestamp": "timestamp",
    }
)


@dataclass(frozen=True, kw_only=True)
class FollowRequest:
    """The unchecked arguments of `Table.follow`."""

    start: object
    snapshot: object
    timestamp: object
    where: str | None
    consumer_id: str | None
    kind_column: str
    positions: bool
    timestamps: str
    overwrites: bool | None
    fail_on_data_loss: bool
    max_rows: int | None
    max_bytes: int | None
    max_files: int | None
    max_poll_interval: float | str | None
    heartbeat: float | str | None
    timeout: float | str | None


class FollowedTable(OpenedTable):
    """Streams of a table in this process."""

    def follow(
        self,
        start: str | Mapping[str, object] = "latest-full",
        *,
        snapshot: int | str | None = None,
        timestamp: str | datetime | None = None,
        where: str | None = None,
        consumer_id: str | None = None,
        kind_column: str = "rowkind",
        positions: bool = False,
        timestamps: str = "ns",
        overwrites: bool | None = None,
        fail_on_data_loss: bool = True,
        max_rows: int | None = None,
        max_bytes: int | None = None,
        max_files: int | None = None,
        max_poll_interval: float | str | None = None,
        heartbeat: float | str | None = None,
        timeout: float | str | None = None,
    ) -> Iterator[FollowedBatch]:
        """Follow the table: yield its rows, then the changes of each commit, read in this process without Spark.

        ``start`` is a scan mode: 'latest-full', 'compacted-full' (rows, then changes), 'latest' (changes from now on),
        'from-snapshot', 'from-snapshot-full' (with ``snapshot``, an id or a tag), 'from-timestamp' (with ``timestamp``);
        or the offset of a batch. A ``consumer_id`` with progress continues instead, unless ``start`` is an offset;
        `FollowedBatch.done` records its progress, and expiry keeps what is not done. ``overwrites``: with the changes of
        overwrites (default: ``streaming-read-overwrite``). ``fail_on_data_loss`` False continues after expired
        snapshots. The limits are those of the files of a batch; ``max_rows`` also bounds its rows. An idle table is
        polled after 10 ms, then less often, at least each ``max_poll_interval`` (seconds or '5 s'; default:
        ``continuous.discovery-interval``). ``heartbeat`` yields an empty batch after this idle time, ``timeout`` ends
        the iteration. ``where`` and the other arguments are as in `changelog_reader`. Errors: docs/streaming.md.
        """
        return self._follow(
            FollowRequest(
                start=start,
                snapshot=snapshot,
                timestamp=timestamp,
                where=where,
                consumer_id=consumer_id,
                kind_column=kind_column,
                positions=positions,
                timestamps=timestamps,
                overwrites=overwrites,
                fail_on_data_loss=fail_on_data_loss,
                max_rows=max_rows,
                max_bytes=max_bytes,
                max_files=max_files,
                max_poll_interval=max_poll_interval,
                heartbeat=heartbeat,
                timeout=timeout,
            )
        )

    def _follow(self, request: FollowRequest) -> Iterator[FollowedBatch]:
        """Check the arguments, find the start, and return the batches that follow it."""
        from lakelsm.local.arrow_changes import changes_schema

        with operation_line(self._log_name, "follow") as line:
            where = request.where
            checked_condition(where)
            checked_name("kind_column", request.kind_column, "the name of a column as text")
            checked_flag("positions", request.positions)
            store, engine = self._store(), local_engine()
            check_added_columns(store.schema, request.kind_column, request.positions)
            form = checked_timestamps("timestamps", request.timestamps)
            follow_settings = FollowSettings(
                changes_schema(store, request.kind_column, request.positions, form),
                request.kind_column,
                positions=request.positions,
                limits=_limits(request),
                max_wait=_max_wait(store, request),
                heartbeat=_interval("heartbeat", request.heartbeat),
                timeout=checked_seconds("timeout", request.timeout),
            )
            settings = _feed_settings(store, request)
            feed = ChangeFeed(store, settings, engine.evaluable_predicate(store, where))
            offset = request.start
            resumed = StreamOffset.of_json(offset) if isinstance(offset, Mapping) else None
            start = self._on_newest(lambda: feed.first() if resumed is None else feed.resume(resumed))
            line.add(lambda: {"snapshot_id": start.snapshot_id, "phase": start.phase.value})
            return TableFollower(store, feed, start, follow_settings, runner=engine.runner).batches()


def _feed_settings(store: TableStore, request: FollowRequest) -> FeedSettings:
    mode, snapshot, moment = request.start, request.snapshot, checked_time("timestamp", request.timestamp)
    known = ", ".join(_FOLLOW_MODES)
    if not isinstance(mode, Mapping):
        checked_name("start", mode, f"one of {known}, or the offset of a batch")
        if mode not in _FOLLOW_MODES:
            raise wrong_argument("start", mode, f"one of {known}, or the offset of a batch")
    wanted = None if isinstance(mode, Mapping) else _FOLLOW_MODES[str(mode)]
    for name, value in (("snapshot", snapshot), ("timestamp", moment)):
        if (value is not None) != (name == wanted):
            need = "is missing. Pass it" if name == wanted else "has no effect with this start. Leave it out"
            shown = "an offset" if isinstance(mode, Mapping) else repr(mode)
            raise InvalidInputError(f"{name}: with start={shown}, {name} {need}.")
    point: Point | None = moment
    if isinstance(snapshot, str):
        point = checked_tag("snapshot", snapshot.removeprefix(TAG_POINT), optional=False)
    elif snapshot is not None:
        point = checked_number("snapshot", snapshot, min_value=1)
    overwrites, options = request.overwrites, checked_stored(store)
    if overwrites is None:
        overwrites = options.streaming_read_overwrite
    return FeedSettings(
        mode=ScanMode.LATEST_FULL if isinstance(mode, Mapping) else ScanMode(mode),
        point=point,
        consumer_id=checked_consumer("consumer_id", request.consumer_id),
        reads_overwrites=checked_overwrites(store, "overwrites", checked_flag("overwrites", overwrites)),
        fails_on_data_loss=checked_flag("fail_on_data_loss", request.fail_on_data_loss),
        has_kinds=True,
        delay=options.streaming_read_snapshot_delay,
        max_watermark=options.scan_bounded_watermark,
    )


def _limits(request: FollowRequest) -> StreamLimits:
    given = {"max_rows": request.max_rows, "max_bytes": request.max_bytes, "max_files": request.max_files}
    found = {name: checked_number(name, value, min_value=1) for name, value in given.items() if value is not None}
    return StreamLimits(**{"max_bytes": PLANNED_BYTES, **found})


def _max_wait(store: TableStore, request: FollowRequest) -> float:
    wait = _interval("max_poll_interval", request.max_poll_interval)
    return store.options.continuous_discovery_interval / 1000 if wait is None else wait


def _interval(name: str, value: float | str | None) -> float | None:
    """Check a time between two events, which is not 0."""
    seconds = checked_seconds(name, value)
    if seconds == 0:
        raise InvalidInputError(f"{name}: 0 is not more than 0. Use, for example, '1 s'.")
    return seconds
