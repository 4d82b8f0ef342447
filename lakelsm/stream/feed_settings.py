"""The settings of a stream: where it starts and ends, its consumer, and which changes it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from lakelsm.arguments import checked_consumer, checked_number, checked_tag, invalid_argument
from lakelsm.epoch_time import FIRST_MILLIS, LAST_MILLIS, utc_time
from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.moment import Moment
from lakelsm.options import OPTIONS, ChangelogProducer, MergeEngine, ScanMode, TableOptions
from lakelsm.options.option import BOOLEAN, LONG, SIZE, TEXT, Kind, Option, enum_kind
from lakelsm.options.option_enums import ConsumerMode
from lakelsm.plan.time_travel import Point
from lakelsm.schema.option_rules import check_scan_mode
from lakelsm.snapshots.table_store import TableStore
from lakelsm.stream.stream_limits import StreamLimits

#: The options of the start of a stream. A stream has one of them, or none.
_STARTS = (
    "scan.snapshot-id",
    "scan.tag-name",
    "scan.timestamp",
    "scan.timestamp-millis",
    "incremental-between",
    "incremental-between-timestamp",
)
#: Options that a table also stores for its streams.
_STORED = (
    "consumer-id",
    "consumer.mode",
    "consumer.ignore-progress",
    "streaming-read-overwrite",
    "streaming.read.snapshot.delay",
    "scan.bounded.watermark",
)

#: The options of a stream and their kinds of values, by name. Names are compared in any case.
STREAM_OPTIONS: Mapping[str, Kind] = MappingProxyType(
    {
        "scan.mode": enum_kind(ScanMode),
        "scan.snapshot-id": LONG,
        "scan.tag-name": TEXT,
        "scan.timestamp": TEXT,
        "scan.timestamp-millis": LONG,
        "incremental-between": TEXT,
        "incremental-between-timestamp": TEXT,
        **{key: OPTIONS[key].kind for key in _STORED},
        "read.changelog": BOOLEAN,
        "failOnDataLoss": BOOLEAN,
    }
)
#: The options of the limits of a stream's batches, as `STREAM_OPTIONS`.
LIMIT_OPTIONS: Mapping[str, Kind] = MappingProxyType(
    {
        "read.stream.maxFilesPerTrigger": LONG,
        "read.stream.maxBytesPerTrigger": SIZE,
        "read.stream.maxRowsPerTrigger": LONG,
        "read.stream.minRowsPerTrigger": LONG,
        "read.stream.maxTriggerDelayMs": LONG,
    }
)
#: The modes that load the table as it is when the stream starts.
CURRENT_STATES = (ScanMode.LATEST_FULL, ScanMode.COMPACTED_FULL)
_FULL_MODES = (*CURRENT_STATES, ScanMode.FROM_SNAPSHOT_FULL)
_MODES = (*_FULL_MODES, ScanMode.LATEST, ScanMode.FROM_SNAPSHOT, ScanMode.FROM_TIMESTAMP, ScanMode.INCREMENTAL)


@dataclass(frozen=True, kw_only=True)
class FeedSettings:
    """The checked settings of a stream.

    ``point`` is where the modes from-snapshot, from-snapshot-full and from-timestamp start, ``end`` the last state of
    the mode incremental, which starts after ``point``. ``consumer_id`` names the consumer of the stream.
    ``divides_snapshots``: limits may divide the changes of one snapshot. ``reads_overwrites``: the stream has the
    changes of overwrites. ``fails_on_data_loss``: expired snapshots are an error. ``has_kinds``: rows have their kind,
    and rows of all kinds are read. Changes are read of snapshots with an age of ``delay`` milliseconds, until the first
    one with a watermark above ``max_watermark``.
    """

    mode: ScanMode = ScanMode.LATEST_FULL
    point: Point | None = None
    end: Point | None = None
    consumer_id: str | None = None
    divides_snapshots: bool = True
    ignores_progress: bool = False
    reads_overwrites: bool = False
    fails_on_data_loss: bool = True
    has_kinds: bool = False
    delay: int | None = None
    max_watermark: int | None = None

    @property
    def loads(self) -> bool:
        """Whether the stream starts with the rows of a snapshot."""
        return self.mode in _FULL_MODES

    @staticmethod
    def of_options(store: TableStore, given: Mapping[str, str]) -> FeedSettings:
        """Check the `STREAM_OPTIONS` of a stream, in any case; other options are not read.

        Raises InvalidInputError for a wrong value, and for options that contradict each other or the table.
        """
        texts, stored = _texts(given, STREAM_OPTIONS), checked_stored(store)
        values = _parsed(texts, STREAM_OPTIONS)
        has_start = "scan.mode" in texts or any(key in texts for key in _STARTS)
        start, end = _range(values)
        consumer = checked_consumer("option 'consumer-id'", values.get("consumer-id", stored.consumer_id))
        for key in ("consumer.mode", "consumer.ignore-progress"):
            if key in texts and consumer is None:
                raise InvalidInputError(f"option {key!r} needs 'consumer-id'. Set it, or remove the option.")
        overwrites = values.get("streaming-read-overwrite", stored.streaming_read_overwrite)
        divides = values.get("consumer.mode", stored.consumer_mode) is ConsumerMode.AT_LEAST_ONCE
        return FeedSettings(
            mode=_mode(TableOptions.parse(texts) if has_start else stored),
            point=start,
            end=end,
            consumer_id=consumer,
            divides_snapshots=consumer is None or divides,
            ignores_progress=values.get("consumer.ignore-progress", stored.consumer_ignore_progress),
            reads_overwrites=checked_overwrites(store, "option 'streaming-read-overwrite'", overwrites),
            fails_on_data_loss=values.get("failOnDataLoss", True),
            has_kinds=values.get("read.changelog", False),
            delay=values.get("streaming.read.snapshot.delay", stored.streaming_read_snapshot_delay),
            max_watermark=values.get("scan.bounded.watermark", stored.scan_bounded_watermark),
        )


def checked_stored(store: TableStore) -> TableOptions:
    """Return the options of a table.

    Raises InvalidInputError for an invalid value of one that its streams use, and UnsupportedFeatureError for a merge
    engine that combines rows without a changelog producer: appended rows are not rows of the table then. Paimon's
    streams in Flink have the same rule.
    """
    engine, producer = store.options.merge_engine, store.options.changelog_producer
    if producer is ChangelogProducer.NONE and engine is not MergeEngine.DEDUPLICATE:
        others = "" if engine is MergeEngine.FIRST_ROW else " or 'full-compaction', or to 'input' for the appended rows"
        raise UnsupportedFeatureError(
            f"Table {store.name}: a stream cannot read it without a changelog producer, because appended rows are not "
            f"those that merge engine {engine.value!r} makes of them. Set 'changelog-producer' to 'lookup'{others}."
        )
    _parsed({key: store.schema.options[key] for key in _STORED if key in store.schema.options}, STREAM_OPTIONS)
    return store.options


def checked_overwrites(store: TableStore, argument: str, overwrites: bool) -> bool:
    """Return whether a stream has the changes of overwrites. Raises InvalidInputError if a changelog has them too."""
    producer = store.options.changelog_producer
    if overwrites and producer in (ChangelogProducer.LOOKUP, ChangelogProducer.FULL_COMPACTION):
        raise InvalidInputError(
            f"{argument}: changes would be read twice with 'changelog-producer' = '{producer.value}'. Remove one of them."
        )
    return overwrites


def limits_of_options(given: Mapping[str, str]) -> StreamLimits:
    """Check the `LIMIT_OPTIONS` of a stream, in any case; other options are not read."""
    texts = _texts(given, LIMIT_OPTIONS)
    values = _parsed(texts, LIMIT_OPTIONS)
    files, size, rows, fewest, delay = (values.get(key) for key in LIMIT_OPTIONS)
    pair = ("read.stream.minRowsPerTrigger", "read.stream.maxTriggerDelayMs")
    if (fewest is None) != (delay is None):
        raise InvalidInputError(f"options {pair[0]!r} and {pair[1]!r} are set together. Set both, or neither.")
    if fewest is not None and rows is not None and fewest > rows:
        raise InvalidInputError(
            f"option {pair[0]!r}: {fewest} is more than 'read.stream.maxRowsPerTrigger', which is {rows}. Lower it."
        )
    return StreamLimits(
        max_files=files, max_bytes=size, max_rows=rows, min_rows=fewest, max_delay=None if delay is None else delay / 1000
    )


def _texts(given: Mapping[str, str], known: Mapping[str, Kind]) -> dict[str, str]:
    """Return the texts of known options by their names."""
    lowered = {str(key).lower(): text for key, text in given.items()}
    return {key: lowered[key.lower()] for key in known if key.lower() in lowered}


def _parsed(texts: Mapping[str, str], kinds: Mapping[str, Kind]) -> dict[str, Any]:
    low = 1 if kinds is LIMIT_OPTIONS else None
    return {key: Option(key, kinds[key], None, "", low=low).parse(text) for key, text in texts.items()}


def _mode(options: TableOptions) -> ScanMode:
    """Return the mode of a stream: the option, or what the option of its start implies, as in Paimon."""
    mode = check_scan_mode(options)
    if mode in (ScanMode.DEFAULT, ScanMode.FULL):
        return ScanMode.LATEST_FULL
    if mode not in _MODES:
        names = ", ".join(each.value for each in _MODES)
        raise UnsupportedFeatureError(
            f"option 'scan.mode' = '{mode.value}' is not supported in a stream. Use one of {names}."
        )
    return mode


def _range(values: Mapping[str, Any]) -> tuple[Point | None, Point | None]:
    """Return the start and the end of a stream, as its options have them."""
    if "scan.snapshot-id" in values:
        return checked_number("option 'scan.snapshot-id'", values["scan.snapshot-id"], min_value=1), None
    if "scan.tag-name" in values:
        return checked_tag("option 'scan.tag-name'", values["scan.tag-name"]), None
    if "scan.timestamp" in values:
        return _moment("scan.timestamp", values["scan.timestamp"]), None
    if "scan.timestamp-millis" in values:
        return _at_millis("scan.timestamp-millis", values["scan.timestamp-millis"]), None
    if "incremental-between" in values:
        first, last = _pair("incremental-between", values["incremental-between"])
        return _version(first, min_value=0), _version(last, min_value=1)
    if "incremental-between-timestamp" in values:
        first, last = _pair("incremental-between-timestamp", values["incremental-between-timestamp"])
        return _moment("incremental-between-timestamp", first), _moment("incremental-between-timestamp", last)
    return None, None


def _pair(key: str, text: str) -> Sequence[str]:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2 or not all(parts):
        raise invalid_argument(f"option {key!r}", f"{text[:80]!r} is not a start and an end.", "Write 'start,end'.")
    return parts


def _version(text: str, *, min_value: int) -> Point:
    key = "option 'incremental-between'"
    if text.isascii() and text.isdecimal() and len(text) < 20:
        return checked_number(key, int(text), min_value=min_value)
    point: str = checked_tag(key, text.removeprefix("tag:"), optional=False)
    return point


def _at_millis(key: str, millis: int) -> Moment:
    name = f"option {key!r}"
    return Moment.of_datetime(utc_time(checked_number(name, millis, min_value=FIRST_MILLIS, max_value=LAST_MILLIS), name))


def _moment(key: str, text: str) -> Moment:
    if text.isascii() and text.lstrip("-").isdecimal() and len(text) < 20:
        return _at_millis(key, int(text))
    try:
        return Moment.of_text(text)
    except ValueError:
        raise invalid_argument(
            f"option {key!r}", f"{text[:80]!r} is not a point in time.", "Use, for example, '2025-01-31 08:00:00'."
        ) from None
