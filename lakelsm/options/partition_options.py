"""Options of partitions: when they expire, and how they are marked as done."""

# ruff: noqa: RUF009 (option() is a dataclass field specifier)
from __future__ import annotations

from dataclasses import dataclass

from lakelsm.options.option import BOOLEAN, CENTURY, DURATION, INT, TEXT, enum_kind, option
from lakelsm.options.option_enums import MarkDoneMode

#: The only supported action of ``partition.mark-done-action``.
SUCCESS_FILE = "success-file"
#: The values of ``partition.expiration-strategy``.
EXPIRATION_STRATEGIES = ("values-time", "update-time")


@dataclass(frozen=True, kw_only=True)
class PartitionOptions:
    """The part of TableOptions for partitions. Durations in milliseconds."""

    partition_expiration_time: int | None = option(
        "partition.expiration-time",
        DURATION,
        None,
        "Age at which a partition expires.",
        per_call=False,
        for_writes=True,
    )
    partition_expiration_check_interval: int = option(
        "partition.expiration-check-interval",
        DURATION,
        3_600_000,
        "Time after which a commit checks again for expired partitions; 0 checks at each commit.",
        per_call=False,
        for_writes=True,
    )
    partition_expiration_strategy: str = option(
        "partition.expiration-strategy",
        TEXT,
        "values-time",
        "Source of the age of a partition: its values ('values-time') or its newest file ('update-time').",
        per_call=False,
    )
    partition_expiration_max_num: int = option(
        "partition.expiration-max-num",
        INT,
        100,
        "Maximum number of partitions that expire at a time.",
        low=1,
        per_call=False,
        for_writes=True,
    )
    partition_expiration_batch_size: int | None = option(
        "partition.expiration-batch-size",
        INT,
        None,
        "Maximum number of partitions that expire in one commit.",
        default_text="partition.expiration-max-num",
        low=1,
        per_call=False,
        for_writes=True,
    )
    partition_timestamp_formatter: str | None = option(
        "partition.timestamp-formatter",
        TEXT,
        None,
        "Format of the time of a partition, as in Java's DateTimeFormatter: numbers of y, u, M, d, H, m, s and S "
        "with other text between; by default 'yyyy-MM-dd HH:mm:ss' or 'yyyy-MM-dd'.",
        per_call=False,
    )
    partition_timestamp_pattern: str | None = option(
        "partition.timestamp-pattern",
        TEXT,
        None,
        "Pattern that composes the time of a partition of its columns, such as '$dt $hour:00:00'; by default the "
        "first column.",
        per_call=False,
    )
    end_input_check_partition_expire: bool = option(
        "end-input.check-partition-expire",
        BOOLEAN,
        False,
        "Each batch checks for expired partitions, regardless of the check interval.",
        per_call=False,
        for_writes=True,
    )
    partition_mark_done_action: str = option(
        "partition.mark-done-action",
        TEXT,
        SUCCESS_FILE,
        "Action that marks a partition as done: 'success-file' writes _SUCCESS into its directory.",
        per_call=False,
    )
    partition_mark_done_action_mode: MarkDoneMode = option(
        "partition.mark-done-action.mode",
        enum_kind(MarkDoneMode),
        MarkDoneMode.PROCESS_TIME,
        "Clock for partition.idle-time-to-done: the time of commits (process-time) or watermarks (watermark).",
        per_call=False,
    )
    partition_idle_time_to_done: int | None = option(
        "partition.idle-time-to-done",
        DURATION,
        None,
        "Commits mark a partition as done when it has ended, and nobody has written to it, for longer than this time. "
        "Needs partition.time-interval.",
        high=CENTURY,
        per_call=False,
    )
    partition_time_interval: int | None = option(
        "partition.time-interval",
        DURATION,
        None,
        "Length of a partition, such as '1 d': it ends so long after the time in its values.",
        low=1,
        high=CENTURY,
        per_call=False,
    )
    partition_end_input_to_done: bool = option(
        "partition.end-input-to-done", BOOLEAN, False, "A batch marks the partitions that it wrote as done."
    )
