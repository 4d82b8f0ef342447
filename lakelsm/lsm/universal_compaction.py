"""Universal compaction: which sorted runs of a bucket to compact, and to which level (docs/format.md 13.2).

The runs have the order of `sorted_runs`: level 0 newest first, then the levels upward. A choice is always a prefix of
that order, because skipping a run would put older rows above newer ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from lakelsm.lsm.levels import FileRange, SortedRun
from lakelsm.options import TableOptions

_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPolicy:
    """The options that decide what to compact, at one time. Percentages as given, sizes in bytes, times in milliseconds.

    `force_up_interval` delays a forced pick of level 0 until that number of consecutive picks have found nothing
    (`lookup-compact=gentle`); None forces it immediately.
    """

    run_trigger: int
    num_levels: int
    max_size_amplification_percent: int
    size_ratio: int
    optimization_interval_ms: int | None = None
    total_size_threshold: int | None = None
    incremental_size_threshold: int | None = None
    force_up_level_0: bool = False
    force_up_interval: int | None = None

    @classmethod
    def from_options(cls, options: TableOptions, now_ms: int) -> CompactionPolicy:
        """Return the policy of a table at a local wall-clock time; the size ratio is larger during off-peak hours."""
        return cls(
            run_trigger=options.num_sorted_run_compaction_trigger,
            num_levels=options.num_levels,
            max_size_amplification_percent=options.compaction_max_size_amplification_percent,
            size_ratio=options.compaction_size_ratio + _offpeak_ratio(options, now_ms // _HOUR_MS % 24),
            optimization_interval_ms=options.compaction_optimization_interval,
            total_size_threshold=options.compaction_total_size_threshold,
            incremental_size_threshold=options.compaction_incremental_size_threshold,
            force_up_level_0=options.compaction_force_up_level_0,
        )


def _offpeak_ratio(options: TableOptions, hour: int) -> int:
    """Return the increase of the size ratio in an hour: 0 if an end is unset (-1) or both ends are equal."""
    start, end = options.compaction_offpeak_start_hour, options.compaction_offpeak_end_hour
    if -1 in (start, end):
        return 0
    # Hours from the evening to the morning include midnight.
    offpeak = start <= hour < end if start <= end else hour >= start or hour < end
    return options.compaction_offpeak_ratio if offpeak else 0


@dataclass(frozen=True, slots=True)
class CompactUnit:
    """Runs to compact together, and the level of the merged rows.

    `full`: the unit has all runs of the bucket. `file_rewrite`: each file is rewritten alone (files on the top level
    that must change). `reason` is one word for reports.
    """

    output_level: int
    runs: tuple[SortedRun, ...]
    _: KW_ONLY
    full: bool
    file_rewrite: bool = False
    reason: str = ""

    @property
    def files(self) -> tuple[FileRange, ...]:
        """All files, run after run."""
        return tuple(file for run in self.runs for file in run.files)

    @property
    def changes_nothing(self) -> bool:
        """Whether the unit has no file, or only one that is already on the output level."""
        files = self.files
        return not files or (
            len(files) == 1 and files[0].level == self.output_level and not self.file_rewrite
        )


def pick(
    policy: CompactionPolicy,
    runs: Sequence[SortedRun],
    num_levels: int,
    now_ms: int | None = None,
    last_full_ms: int | None = None,
    picks_without_result: int = 0,
) -> CompactUnit | None:
    """Return what to compact now by the ordinary rules, None for nothing.

    `num_levels` is `level_count` of the bucket. `last_full_ms` is the time of the bucket's last full compaction (see
    `estimate_last_full`), None for never; it and `now_ms` are used only with an optimisation interval. A caller that
    keeps state updates the time whenever the unit is `full`. `picks_without_result` counts the calls in which the
    ordinary rules found nothing since level 0 was last forced up; it is used only with `force_up_interval`.
    """
    max_level = num_levels - 1
    unit = (
        pick_early_full(policy, runs, num_levels, now_ms, last_full_ms)
        or pick_for_size_amplification(policy, runs, max_level)
        or pick_for_size_ratio(policy, runs, max_level)
    )
    if unit is None and len(runs) > policy.run_trigger:
        count = len(runs) - policy.run_trigger + 1
        unit = _grow_by_size_ratio(policy, runs, max_level, count, forced=False, reason="file-number")
    if unit is None and policy.force_up_level_0:
        interval = policy.force_up_interval
        if interval is None or picks_without_result + 1 >= interval:
            return force_pick_level_0(policy, runs, max_level)
    return unit


def pick_early_full(
    policy: CompactionPolicy,
    runs: Sequence[SortedRun],
    num_levels: int,
    now_ms: int | None = None,
    last_full_ms: int | None = None,
) -> CompactUnit | None:
    """Return a full compaction by elapsed time, by small total size or by large size above the top level, else None.

    These rules precede the ordinary ones. A bucket of one run needs none. The elapsed time must exceed the interval; a
    bucket without a full compaction is due.
    """
    if len(runs) < 2:
        return None
    max_level = num_levels - 1
    reason = ""
    interval = policy.optimization_interval_ms
    if (
        interval is not None
        and now_ms is not None
        and (last_full_ms is None or now_ms - last_full_ms > interval)
    ):
        reason = "optimization-interval"
    total, increment = policy.total_size_threshold, policy.incremental_size_threshold
    if not reason and total is not None and sum(run.total_size for run in runs) < total:
        reason = "total-size-threshold"
    if not reason and increment is not None:
        above_top = sum(run.total_size for run in runs if run.level != max_level)
        reason = "incremental-size-threshold" if above_top > increment else ""
    return CompactUnit(max_level, tuple(runs), full=True, reason=reason) if reason else None


def pick_for_size_amplification(
    policy: CompactionPolicy, runs: Sequence[SortedRun], max_level: int
) -> CompactUnit | None:
    """Return a full compaction if the runs before the last exceed the allowed percentage of the last run's size."""
    if not runs or len(runs) < policy.run_trigger:
        return None
    newer = sum(run.total_size for run in runs[:-1])
    if newer * 100 > policy.max_size_amplification_percent * runs[-1].total_size:
        return CompactUnit(max_level, tuple(runs), full=True, reason="size-amplification")
    return None


def pick_for_size_ratio(
    policy: CompactionPolicy, runs: Sequence[SortedRun], max_level: int
) -> CompactUnit | None:
    """Return the longest prefix in which no run exceeds the total of the runs before it by more than the ratio."""
    if not runs or len(runs) < policy.run_trigger:
        return None
    return _grow_by_size_ratio(policy, runs, max_level, 1, forced=False, reason="size-ratio")


def force_pick_level_0(
    policy: CompactionPolicy, runs: Sequence[SortedRun], max_level: int
) -> CompactUnit | None:
    """Return all runs of level 0 and those that the size ratio adds; None if level 0 is empty."""
    count = next((i for i, run in enumerate(runs) if run.level > 0), len(runs))
    if count == 0:
        return None
    return _grow_by_size_ratio(policy, runs, max_level, count, forced=True, reason="force-up-level-0")


def _grow_by_size_ratio(
    policy: CompactionPolicy,
    runs: Sequence[SortedRun],
    max_level: int,
    count: int,
    *,
    forced: bool,
    reason: str,
) -> CompactUnit | None:
    """Take `count` runs, then continue while the next run is within the size ratio.

    Once a compaction is certain, a next run on level 0 or 1 is taken even if it exceeds the ratio, and its size counts
    for the runs after it: otherwise level 1 would stay as a separate run next to the output.
    """
    size = sum(run.total_size for run in runs[:count])
    triggered = forced or count > 1
    for run in runs[count:]:
        next_size = run.total_size
        if size * (100.0 + policy.size_ratio) / 100.0 < next_size and (not triggered or run.level > 1):
            break
        size += next_size
        count += 1
        triggered = True
    return create_unit(runs, max_level, count, reason) if triggered else None


def create_unit(runs: Sequence[SortedRun], max_level: int, count: int, reason: str = "") -> CompactUnit:
    """Return the unit of the first `count` runs, extended so that its output level is not 0.

    The output level is one below that of the next run, or the top if no run is left. If that is level 0, runs are
    added up to and including the first one that is not on level 0, and its level becomes the output level.
    """
    output_level = max_level if count == len(runs) else max(0, runs[count].level - 1)
    if output_level == 0:
        for run in runs[count:]:
            count += 1
            if run.level != 0:
                output_level = run.level
                break
    full = count == len(runs)
    return CompactUnit(max_level if full else output_level, tuple(runs[:count]), full=full, reason=reason)


def full_compaction(
    runs: Sequence[SortedRun], num_levels: int, rewrite: frozenset[int] = frozenset()
) -> CompactUnit | None:
    """Return a unit of all runs for the top level; None without runs, or if all files are already on the top level.

    In the second case the files whose `index` is in `rewrite` (masked by a deletion vector, expired rows, a forced
    rewrite) form a unit of files that are rewritten one at a time.
    """
    max_level = num_levels - 1
    if not runs:
        return None
    if len(runs) == 1 and runs[0].level == max_level:
        files = tuple(file for file in runs[0].files if file.index in rewrite)
        if not files:
            return None
        run = SortedRun(max_level, files)
        return CompactUnit(
            max_level, (run,), full=len(files) == len(runs[0].files), file_rewrite=True, reason="full"
        )
    return CompactUnit(max_level, tuple(runs), full=True, reason="full")


def estimate_last_full(runs: Sequence[SortedRun], max_level: int) -> int | None:
    """Return the time of the bucket's last full compaction in milliseconds: that of the newest file on the top level."""
    times = [
        file.creation_time
        for run in runs
        if run.level == max_level
        for file in run.files
        if file.creation_time is not None
    ]
    return max(times, default=None)
