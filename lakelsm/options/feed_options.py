"""Options of streams that read a table. The options of one stream override them.

Only streams use them, so a table with an invalid value can be opened (``for_writes``), and `FeedSettings` refuses it.
"""

# ruff: noqa: RUF009 (option() is a dataclass field specifier)
from __future__ import annotations

from dataclasses import dataclass

from lakelsm.options.option import BOOLEAN, DURATION, LONG, TEXT, enum_kind, option
from lakelsm.options.option_enums import ConsumerMode


@dataclass(frozen=True, kw_only=True)
class FeedOptions:
    """The part of TableOptions for streams that read the table. Durations in milliseconds."""

    consumer_id: str | None = option(
        "consumer-id",
        TEXT,
        None,
        "Consumer of the streams of format('lakelsm') that name none. Streams at the same time need one each.",
        per_call=False,
        for_writes=True,
    )
    consumer_mode: ConsumerMode = option(
        "consumer.mode",
        enum_kind(ConsumerMode),
        ConsumerMode.EXACTLY_ONCE,
        "Whether limits may divide the changes of one snapshot in a stream with a consumer (at-least-once).",
        per_call=False,
        for_writes=True,
    )
    consumer_ignore_progress: bool = option(
        "consumer.ignore-progress",
        BOOLEAN,
        False,
        "A new stream starts by its scan mode, also if its consumer has progress.",
        per_call=False,
        for_writes=True,
    )
    streaming_read_overwrite: bool = option(
        "streaming-read-overwrite",
        BOOLEAN,
        False,
        "Streams have the changes of overwrites: the difference of the states before and after.",
        per_call=False,
        for_writes=True,
    )
    streaming_read_snapshot_delay: int | None = option(
        "streaming.read.snapshot.delay",
        DURATION,
        None,
        "Streams read the changes of a snapshot when it has this age.",
        per_call=False,
        for_writes=True,
    )
    scan_bounded_watermark: int | None = option(
        "scan.bounded.watermark",
        LONG,
        None,
        "Streams read no changes from the first snapshot with a larger watermark on (milliseconds since 1970).",
        per_call=False,
        for_writes=True,
    )
