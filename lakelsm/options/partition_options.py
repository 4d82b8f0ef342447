"""Options of a table's partitions: when they expire, and how they are marked as done."""

from __future__ import annotations

from dataclasses import dataclass

from lakelsm.options.option import BOOLEAN, DURATION, INT, TEXT, option

#: The only supported action of ``partition.mark-done-action``.
SUCCESS_FILE = "success-file"
#: What ``partition.expiration-strategy`` can be.
EXPIRATION_STRATEGIES = ("values-time", "update-time")


@dataclass(frozen=True, kw_only=True)
class PartitionOptions:
    """Partition part of TableOptions. Durations are milliseconds."""

    partition_expiration_time: int | None = option(
        "partition.expiration-time", DURATION, None, "Age at which a partition expires.", per_call=False, for_writes=True
    )
    partition_expiration_check_interval: int = option(
        "partition.expiration-check-interval",
        DURATION,
        3_600_000,
        "How often commits look for partitions that have expired: the first of each such interval does; 0: each.",
        per_call=False,
        for_writes=True,
    )
    partition_expiration_strategy: str = option(
        "partition.expiration-strategy",
        TEXT,
        "values-time",
        "What a partition's age is told by: 'values-time', its values, or 'update-time', its newest file.",
        per_call=False,
    )
    partition_expiration_max_num: int = option(
        "partition.expiration-max-num",
        INT,
        100,
        "Partitions that expire at a time.",
        low=1,
        per_call=False,
        for_writes=True,
    )
    partition_expiration_batch_size: int | None = option(
        "partition.expiration-batch-size",
        INT,
        None,
        "Partitions that expire in one commit.",
        default_text="partition.expiration-max-num",
        low=1,
        per_call=False,
        for_writes=True,
    )
    partition_timestamp_formatter: str | None = option(
        "partition.timestamp-formatter",
        TEXT,
        None,
        "How the time of a partition is written, as Java's DateTimeFormatter has it: numbers of y, u, M, d, H, m, s and "
        "S with other text between; by default 'yyyy-MM-dd HH:mm:ss' or 'yyyy-MM-dd'.",
        per_call=False,
    )
    partition_timestamp_pattern: str | None = option(
        "partition.timestamp-pattern",
        TEXT,
        None,
        "How the time of a partition follows from its columns: '$dt $hour:00:00'; by default it is the first column.",
        per_call=False,
    )
    end_input_check_partition_expire: bool = option(
        "end-input.check-partition-expire",
        BOOLEAN,
        False,
        "Each batch looks for partitions that have expired, whatever the check interval is.",
        per_call=False,
        for_writes=True,
    )
    partition_mark_done_action: str = option(
        "partition.mark-done-action",
        TEXT,
        SUCCESS_FILE,
        "How a partition is marked as done: 'success-file' writes _SUCCESS into its directory.",
        per_call=False,
    )
    partition_end_input_to_done: bool = option(
        "partition.end-input-to-done", BOOLEAN, False, "A batch marks the partitions that it wrote as done."
    )
