"""Options of writes, compactions, commits and retention."""

# ruff: noqa: RUF009 (option() is a dataclass field specifier)
from __future__ import annotations

from dataclasses import dataclass

from lakelsm.options.option import BOOLEAN, CENTURY, DURATION, INT, SIZE, TEXT, enum_kind, option
from lakelsm.options.option_enums import ExpireMode, Feature, LookupCompact

_UNLIMITED = 2147483647


@dataclass(frozen=True, kw_only=True)
class MaintenanceOptions:
    """The part of TableOptions for compaction, commits and retention. Sizes in bytes, durations in milliseconds."""

    write_only: bool = option(
        "write-only",
        BOOLEAN,
        False,
        "Writes do not compact, expire or tag. Set it if a separate job maintains the table.",
        fallback_keys=("write.compaction-skip",),
    )
    num_sorted_run_compaction_trigger: int = option(
        "num-sorted-run.compaction-trigger",
        INT,
        5,
        "Number of sorted runs of a bucket at which a compaction starts. A larger value means fewer compactions and "
        "slower reads.",
        low=1,
        for_writes=False,  # It determines the number of levels, and the system table `ro` reads the highest one.
    )
    num_sorted_run_stop_trigger: int = option(
        "num-sorted-run.stop-trigger",
        INT,
        8,
        "Number of sorted runs above which a write repeats a compaction that lost a race against another commit; at "
        "least the compaction trigger.",
        default_text="num-sorted-run.compaction-trigger + 3",
        low=1,
    )
    num_levels: int = option(
        "num-levels",
        INT,
        6,
        "Number of levels of a bucket, level 0 included.",
        default_text="num-sorted-run.compaction-trigger + 1",
        low=2,
        for_writes=False,
    )
    compaction_max_size_amplification_percent: int = option(
        "compaction.max-size-amplification-percent",
        INT,
        200,
        "Size of the newer runs, in percent of the oldest run, at which a full compaction starts.",
        low=0,
    )
    compaction_size_ratio: int = option(
        "compaction.size-ratio",
        INT,
        1,
        "Percentage by which a run may be larger than the newer runs and still be compacted with them.",
        low=0,
    )
    compaction_optimization_interval: int | None = option(
        "compaction.optimization-interval", DURATION, None, "Maximum time between full compactions."
    )
    compaction_total_size_threshold: int | None = option(
        "compaction.total-size-threshold", SIZE, None, "Buckets smaller than this are compacted fully."
    )
    compaction_incremental_size_threshold: int | None = option(
        "compaction.incremental-size-threshold",
        SIZE,
        None,
        "Size of the newer runs at which a full compaction starts.",
    )
    compaction_force_up_level_0: bool = option(
        "compaction.force-up-level-0", BOOLEAN, False, "Each compaction takes all files of level 0."
    )
    compaction_force_rewrite_all_files: bool = option(
        "compaction.force-rewrite-all-files", BOOLEAN, False, "A full compaction rewrites every file."
    )
    compaction_offpeak_start_hour: int = option(
        "compaction.offpeak.start.hour",
        INT,
        -1,
        "Hour of the local clock at which off-peak time begins; -1 is never.",
        low=-1,
        high=23,
    )
    compaction_offpeak_end_hour: int = option(
        "compaction.offpeak.end.hour",
        INT,
        -1,
        "Hour of the local clock at which off-peak time ends, itself excluded; -1 is never.",
        low=-1,
        high=23,
    )
    compaction_offpeak_ratio: int = option(
        "compaction.offpeak-ratio",
        INT,
        0,
        "Percentage added to compaction.size-ratio in off-peak time.",
        low=0,
        high=100,
    )
    full_compaction_delta_commits: int | None = option(
        "full-compaction.delta-commits",
        INT,
        None,
        "Number of commits after which a full compaction follows.",
        low=1,
    )
    force_lookup: bool = option(
        "force-lookup", BOOLEAN, False, "Compactions leave no file on level 0.", immutable=True
    )
    lookup_compact: LookupCompact = option(
        "lookup-compact",
        enum_kind(LookupCompact),
        LookupCompact.RADICAL,
        "In a table whose compactions look rows up: the compaction after a write always takes level 0 (radical), or "
        "only when a rule of size or number requires it (gentle).",
    )
    lookup_compact_max_interval: int | None = option(
        "lookup-compact.max-interval",
        INT,
        None,
        "Number of files on level 0 of a bucket at which 'gentle' takes them; at least "
        "num-sorted-run.compaction-trigger.",
        default_text="2 * num-sorted-run.compaction-trigger",
    )
    lookup_wait: bool = option(
        "lookup-wait",
        BOOLEAN,
        True,
        "A write waits for the compaction that its rows need.",
        fallback_keys=("changelog-producer.lookup-wait",),
        acts_from=Feature.CONCURRENT_COMPACTION,
    )
    commit_max_retries: int = option(
        "commit.max-retries",
        INT,
        10,
        "Maximum number of retries after another commit published the same snapshot id.",
        low=0,
    )
    commit_timeout: int | None = option(
        "commit.timeout", DURATION, None, "Maximum time for the retries of a commit."
    )
    commit_min_retry_wait: int = option(
        "commit.min-retry-wait", DURATION, 10, "Minimum wait before a retry of a commit.", high=CENTURY
    )
    commit_max_retry_wait: int = option(
        "commit.max-retry-wait", DURATION, 10_000, "Maximum wait before a retry of a commit.", high=CENTURY
    )
    commit_user_prefix: str | None = option(
        "commit.user-prefix",
        TEXT,
        None,
        "Prefix of generated commit users, before '_' and a UUID; without it, a UUID alone. Not of those of streams.",
    )
    snapshot_num_retained_min: int = option(
        "snapshot.num-retained.min", INT, 10, "Minimum number of snapshots that expiry keeps.", low=1
    )
    snapshot_num_retained_max: int = option(
        "snapshot.num-retained.max",
        INT,
        _UNLIMITED,
        "Maximum number of snapshots that expiry keeps.",
        low=1,
        default_text="unlimited",
    )
    snapshot_time_retained: int = option(
        "snapshot.time-retained",
        DURATION,
        3_600_000,
        "Age up to which expiry keeps snapshots. Increase it if reads or time travel need older ones.",
    )
    changelog_num_retained_min: int | None = option(
        "changelog.num-retained.min",
        INT,
        None,
        "Minimum number of changelogs that expiry keeps.",
        low=1,
        default_text="snapshot.num-retained.min",
    )
    changelog_num_retained_max: int | None = option(
        "changelog.num-retained.max",
        INT,
        None,
        "Maximum number of changelogs that expiry keeps.",
        low=1,
        default_text="snapshot.num-retained.max",
    )
    changelog_time_retained: int | None = option(
        "changelog.time-retained",
        DURATION,
        None,
        "Age up to which expiry keeps changelogs.",
        default_text="snapshot.time-retained",
    )
    snapshot_expire_limit: int = option(
        "snapshot.expire.limit", INT, 50, "Maximum number of snapshots that one run of expiry deletes.", low=1
    )
    snapshot_expire_execution_mode: ExpireMode = option(
        "snapshot.expire.execution-mode",
        enum_kind(ExpireMode),
        ExpireMode.SYNC,
        "Thread of the maintenance that follows a commit: the committing thread (sync) or a separate one (async).",
    )
    snapshot_clean_empty_directories: bool = option(
        "snapshot.clean-empty-directories",
        BOOLEAN,
        False,
        "Expiry deletes directories of buckets and partitions that it leaves empty.",
        fallback_keys=("snapshot.expire.clean-empty-directories",),
    )
    consumer_changelog_only: bool = option(
        "consumer.changelog-only",
        BOOLEAN,
        False,
        "Consumers protect the changelogs that they still read, but not the snapshots.",
    )
    consumer_expiration_time: int | None = option(
        "consumer.expiration-time",
        DURATION,
        None,
        "Time without recorded progress after which a commit deletes a consumer.",
    )
    # Other engines ignore the options of lakelsm.
    lakelsm_durable_files: bool = option(
        "lakelsm.durable-files",
        BOOLEAN,
        True,
        "Flush data, changelog and index files to disk before a snapshot names them, so that they survive a power "
        "loss (docs/integrity.md).",
    )
    lakelsm_hidden_rows_max_memory: int = option(
        "lakelsm.hidden-rows.max-memory",
        SIZE,
        64 << 20,
        "Maximum memory of a classic Spark session for hidden rows, about 1 bit per row and 1 KB per file, so that the "
        "next read of a snapshot does not search for them again; 0 keeps none. All sessions of a process keep at most "
        "256 MB, or this value if it is larger, of at most 100 states of tables.",
        low=0,
        per_call=False,
    )
