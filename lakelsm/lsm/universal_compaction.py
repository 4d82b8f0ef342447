"""Universal compaction: which sorted runs of a bucket to compact, and to which level (docs/format.md 13.2).

The runs come in the order of `sorted_runs`: level 0 newest first, then the levels upward. A choice is
always a prefix of that order, because skipping a run would put older rows above newer ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from lakelsm.lsm.levels import FileRange, SortedRun
from lakelsm.options import TableOptions

_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPolicy:
    """What the picker needs from the options, at one time. Percentages as given, sizes in bytes, times in milliseconds.

    `force_up_interval` postpones a forced pick of level 0 until so many picks in a row have found nothing
    (`lookup-compact=gentle`); None forces at once.
    """

    run_trigger: int
    stop_trigger: int
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
        """The policy of a table at a time of the local wall clock: off peak the size ratio is larger."""
        return cls(
            run_trigger=options.num_sorted_run_compaction_trigger,
            stop_trigger=options.num_sorted_run_stop_trigger,
            num_levels=options.num_levels,
            max_size_amplification_percent=options.compaction_max_size_amplification_percent,
            size_ratio=options.compaction_size_ratio + _offpeak_ratio(options, now_ms // _HOUR_MS % 24),
            optimization_interval_ms=options.compaction_optimization_interval,
            total_size_threshold=options.compaction_total_size_threshold,
            incremental_size_threshold=options.compaction_incremental_size_threshold,
            force_up_level_0=options.compaction_force_up_level_0,
        )


def _offpeak_ratio(options: TableOptions, hour: int) -> int:
    """What the size ratio gains in an hour: nothing in all hours if either end is unset (-1), or both are the same."""
    start, end = options.compaction_offpeak_start_hour, options.compaction_offpeak_end_hour
    if -1 in (start, end):
        return 0
    # From the evening to the morning the hours go over midnight.
    offpeak = start <= hour < end if start <= end else hour >= start or hour < end
    return options.compaction_offpeak_ratio if offpeak else 0


@dataclass(frozen=True, slots=True)
class CompactUnit:
    """Runs to compact together and the level that their rows go to.

    `full` says that all runs of the bucket are in it. With `file_rewrite` each file is rewritten
    alone (files that are on the top level already and must change). `reason` is one word for reports.
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
        """No file, or one that is on the output level already."""
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
    """One ordinary pick: what to compact now, None for nothing.

    `num_levels` is `level_count` of the bucket. `last_full_ms` is when the bucket was last compacted in full
    (see `estimate_last_full`), None for never; it and `now_ms` matter only with an optimisation interval. A
    caller that keeps state sets the time again whenever the unit is `full`. `picks_without_result` counts the
    earlier calls in which the ordinary rules found nothing, since level 0 was last forced up; it matters only
    with `force_up_interval`.
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
    """A full compaction ahead of the ordinary rules, by time passed, by a small total, or by much above the
    top.

    Never for a bucket of one run. The interval must be exceeded; a bucket that never had a full compaction
    is due.
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
    """Everything to the top when the runs before the last exceed so many percent of the last one's size."""
    if not runs or len(runs) < policy.run_trigger:
        return None
    newer = sum(run.total_size for run in runs[:-1])
    if newer * 100 > policy.max_size_amplification_percent * runs[-1].total_size:
        return CompactUnit(max_level, tuple(runs), full=True, reason="size-amplification")
    return None


def pick_for_size_ratio(
    policy: CompactionPolicy, runs: Sequence[SortedRun], max_level: int
) -> CompactUnit | None:
    """The longest prefix in which each run is not larger than the ones before it together, by the ratio."""
    if not runs or len(runs) < policy.run_trigger:
        return None
    return _grow_by_size_ratio(policy, runs, max_level, 1, forced=False, reason="size-ratio")


def force_pick_level_0(
    policy: CompactionPolicy, runs: Sequence[SortedRun], max_level: int
) -> CompactUnit | None:
    """All of level 0, and what the size ratio adds to it; None if level 0 is empty."""
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
    """Takes `count` runs, then continues while the next run fits the ratio.

    Once a compaction is certain, a next run on level 0 or 1 is taken although it does not fit, and its size
    counts for those after it: leaving level 1 out would only leave it as the target's neighbour.
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
    """The unit of the first `count` runs, widened so that its output level is not 0.

    The output goes just below the next run's level, or to the top if no run is left. Where that would be
    level 0, runs are added up to and including the first one that is not on level 0, whose level becomes
    the output.
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
    """All runs to the top level; None without runs, or if all files are on the top level already.

    In the latter case the files whose `index` is in `rewrite` (masked by a deletion vector, expired rows, a
    forced rewrite) make a unit of files to be rewritten one by one.
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


def must_wait_for_compaction(policy: CompactionPolicy, runs: Sequence[SortedRun]) -> bool:
    """Whether a writer must compact before it continues: more runs than the stop trigger."""
    return len(runs) > policy.stop_trigger


def estimate_last_full(runs: Sequence[SortedRun], max_level: int) -> int | None:
    """When the bucket was last compacted in full, in milliseconds: the newest file of the top level."""
    times = [
        file.creation_time
        for run in runs
        if run.level == max_level
        for file in run.files
        if file.creation_time is not None
    ]
    return max(times, default=None)
