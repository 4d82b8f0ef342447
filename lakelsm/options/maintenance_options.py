"""Options of how a table is kept: writing, compaction, commits, retention."""

# ruff: noqa: RUF009 (option() is a dataclass field specifier)
from __future__ import annotations

from dataclasses import dataclass

from lakelsm.options.option import BOOLEAN, CENTURY, DURATION, INT, SIZE, TEXT, enum_kind, option
from lakelsm.options.option_enums import ExpireMode, Feature, LookupCompact

_UNLIMITED = 2147483647


@dataclass(frozen=True, kw_only=True)
class MaintenanceOptions:
    """Maintenance part of TableOptions. Sizes are bytes, durations milliseconds."""

    write_only: bool = option(
        "write-only",
        BOOLEAN,
        False,
        "Writes do not compact; a separate job does.",
        fallback_keys=("write.compaction-skip",),
    )
    num_sorted_run_compaction_trigger: int = option(
        "num-sorted-run.compaction-trigger",
        INT,
        5,
        "Sorted runs of a bucket that start a compaction.",
        low=1,
        for_writes=False,  # The number of levels follows from it, and the system table `ro` reads the highest one.
    )
    num_sorted_run_stop_trigger: int = option(
        "num-sorted-run.stop-trigger",
        INT,
        8,
        "Sorted runs above which a write repeats a compaction that lost to others; at least the compaction trigger.",
        default_text="num-sorted-run.compaction-trigger + 3",
        low=1,
    )
    num_levels: int = option(
        "num-levels",
        INT,
        6,
        "Levels of a bucket, level 0 included.",
        default_text="num-sorted-run.compaction-trigger + 1",
        low=2,
        for_writes=False,
    )
    compaction_max_size_amplification_percent: int = option(
        "compaction.max-size-amplification-percent",
        INT,
        200,
        "Size of the newer runs, in percent of the oldest, that starts a full compaction.",
        low=0,
    )
    compaction_size_ratio: int = option(
        "compaction.size-ratio",
        INT,
        1,
        "Percent by which a run may be larger and still be compacted with newer.",
        low=0,
    )
    compaction_optimization_interval: int | None = option(
        "compaction.optimization-interval", DURATION, None, "Longest time between full compactions."
    )
    compaction_total_size_threshold: int | None = option(
        "compaction.total-size-threshold", SIZE, None, "Buckets smaller than this are compacted fully."
    )
    compaction_incremental_size_threshold: int | None = option(
        "compaction.incremental-size-threshold",
        SIZE,
        None,
        "Size of newer runs that starts a full compaction.",
    )
    compaction_force_up_level_0: bool = option(
        "compaction.force-up-level-0", BOOLEAN, False, "Always take all files of level 0 into a compaction."
    )
    compaction_force_rewrite_all_files: bool = option(
        "compaction.force-rewrite-all-files", BOOLEAN, False, "A full compaction rewrites every file."
    )
    compaction_offpeak_start_hour: int = option(
        "compaction.offpeak.start.hour",
        INT,
        -1,
        "Hour of the local clock at which off-peak begins; -1 is never.",
        low=-1,
        high=23,
    )
    compaction_offpeak_end_hour: int = option(
        "compaction.offpeak.end.hour", INT, -1, "Hour at which it ends, itself not in it; -1 is never.", low=-1, high=23
    )
    compaction_offpeak_ratio: int = option(
        "compaction.offpeak-ratio",
        INT,
        0,
        "Percent added to compaction.size-ratio off peak.",
        low=0,
        high=100,
    )
    full_compaction_delta_commits: int | None = option(
        "full-compaction.delta-commits", INT, None, "Compact fully after this many commits.", low=1
    )
    force_lookup: bool = option(
        "force-lookup", BOOLEAN, False, "Compaction leaves nothing on level 0.", immutable=True
    )
    lookup_compact: LookupCompact = option(
        "lookup-compact",
        enum_kind(LookupCompact),
        LookupCompact.RADICAL,
        "Where rows are looked up: whether the compaction after a write always takes level 0, or waits until a rule of "
        "size or number asks for it.",
    )
    lookup_compact_max_interval: int | None = option(
        "lookup-compact.max-interval",
        INT,
        None,
        "Files that a bucket has on level 0 when 'gentle' waits no longer; by default 2 * "
        "num-sorted-run.compaction-trigger, and not less than that trigger.",
    )
    lookup_wait: bool = option(
        "lookup-wait",
        BOOLEAN,
        True,
        "A write waits for the compaction that its rows need.",
        fallback_keys=("changelog-producer.lookup-wait",),
        acts_from=Feature.COMPACTION_BESIDE_WRITES,
    )
    commit_max_retries: int = option(
        "commit.max-retries", INT, 10, "Attempts after a lost race for a snapshot.", low=0
    )
    commit_timeout: int | None = option(
        "commit.timeout", DURATION, None, "Longest time to keep retrying a commit."
    )
    commit_min_retry_wait: int = option(
        "commit.min-retry-wait", DURATION, 10, "Shortest wait before a retry.", high=CENTURY
    )
    commit_max_retry_wait: int = option(
        "commit.max-retry-wait", DURATION, 10_000, "Longest wait before a retry.", high=CENTURY
    )
    commit_user_prefix: str | None = option(
        "commit.user-prefix", TEXT, None, "Commit users that are made up are this, '_' and a uuid; else a uuid alone."
    )
    snapshot_num_retained_min: int = option(
        "snapshot.num-retained.min",
        INT,
        10,
        "Snapshots that expiry always keeps.",
        low=1,
    )
    snapshot_num_retained_max: int = option(
        "snapshot.num-retained.max",
        INT,
        _UNLIMITED,
        "Snapshots that expiry keeps at most.",
        low=1,
        default_text="unlimited",
    )
    snapshot_time_retained: int = option(
        "snapshot.time-retained",
        DURATION,
        3_600_000,
        "Age up to which expiry keeps snapshots.",
    )
    changelog_num_retained_min: int | None = option(
        "changelog.num-retained.min",
        INT,
        None,
        "Changelogs that expiry always keeps.",
        low=1,
    )
    changelog_num_retained_max: int | None = option(
        "changelog.num-retained.max",
        INT,
        None,
        "Changelogs that expiry keeps at most.",
        low=1,
    )
    changelog_time_retained: int | None = option(
        "changelog.time-retained",
        DURATION,
        None,
        "Age up to which expiry keeps changelogs.",
    )
    snapshot_expire_limit: int = option(
        "snapshot.expire.limit", INT, 50, "Snapshots that one run of expiry takes at most.", low=1
    )
    snapshot_expire_execution_mode: ExpireMode = option(
        "snapshot.expire.execution-mode",
        enum_kind(ExpireMode),
        ExpireMode.SYNC,
        "Whether a commit waits for the upkeep that follows it, or a thread of its own does that.",
    )
    snapshot_clean_empty_directories: bool = option(
        "snapshot.clean-empty-directories",
        BOOLEAN,
        False,
        "Expiry removes directories of buckets and partitions that it leaves empty.",
        fallback_keys=("snapshot.expire.clean-empty-directories",),
    )
    consumer_changelog_only: bool = option(
        "consumer.changelog-only",
        BOOLEAN,
        False,
        "Consumers keep the changelogs that they still read, and not the snapshots.",
    )
    consumer_expiration_time: int | None = option(
        "consumer.expiration-time",
        DURATION,
        None,
        "Consumers whose progress was not recorded for so long are forgotten after a commit.",
    )
    # Of lakelsm alone: other engines ignore it.
    lakelsm_durable_files: bool = option(
        "lakelsm.durable-files",
        BOOLEAN,
        True,
        "Data, changelog and index files survive a power loss once a snapshot names them; of lakelsm alone.",
    )
    lakelsm_hidden_rows_max_memory: int = option(
        "lakelsm.hidden-rows.max-memory",
        SIZE,
        64 << 20,
        "What a Spark session keeps at most of which rows reads leave out, about a bit a row and 1 KB a file, so that "
        "the next read of a snapshot does not look for them again; 0 keeps none. A process keeps 256 MB or this, if it "
        "is more, and 100 states of tables at most; of lakelsm alone.",
        low=0,
        per_call=False,
    )
