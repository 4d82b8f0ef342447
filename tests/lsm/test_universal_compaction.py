"""Rules of universal compaction that the conformance files do not cover."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.lsm.levels import SortedRun
from lakelsm.lsm.universal_compaction import (
    CompactionPolicy,
    CompactUnit,
    estimate_last_full,
    full_compaction,
    pick,
    pick_early_full,
)
from lakelsm.options import TableOptions
from tests.lsm.planning_files import file


def policy_of(**changes: Any) -> CompactionPolicy:
    """Return the policy of a table without options, with these changes."""
    return replace(CompactionPolicy.from_options(TableOptions.parse({}), 0), **changes)


def _run(level: int, size: int, index: int = 0) -> SortedRun:
    return SortedRun(level, (file(index, index, level=level, size=size, index=index),))


@st.composite
def run_lists(draw: st.DrawFn) -> list[SortedRun]:
    sizes = st.integers(1, 1000)
    level_0 = draw(st.lists(sizes, max_size=8))
    upper = draw(st.dictionaries(st.integers(1, 5), sizes))
    levels = [(0, size) for size in level_0] + sorted(upper.items())
    return [_run(level, size, i) for i, (level, size) in enumerate(levels)]


@given(run_lists(), st.integers(1, 6), st.integers(0, 300), st.booleans())
def test_a_pick_is_a_prefix_and_its_output_is_above_level_0_and_not_beyond_the_next_run(
    runs: list[SortedRun], trigger: int, amplification: int, force: bool
) -> None:
    policy = policy_of(
        run_trigger=trigger, max_size_amplification_percent=amplification, force_up_level_0=force
    )
    unit = pick(policy, runs, 6)
    if unit is None:
        assert len(runs) <= trigger
        assert not (force and runs and runs[0].level == 0)
        return
    count = len(unit.runs)
    assert list(unit.runs) == runs[:count]
    assert 0 < unit.output_level <= 5
    assert unit.full == (count == len(runs))
    if unit.full:
        assert unit.output_level == 5
    else:
        assert unit.runs[-1].level <= unit.output_level < runs[count].level


def test_incremental_size_counts_only_levels_above_the_top() -> None:
    policy = policy_of(incremental_size_threshold=500)
    assert pick_early_full(policy, [_run(0, 400), _run(0, 200)], 5) is not None
    assert pick_early_full(policy, [_run(0, 100), _run(0, 200)], 5) is None
    assert pick_early_full(policy, [_run(0, 100), _run(0, 300), _run(4, 500)], 5) is None
    assert pick_early_full(policy, [_run(0, 300), _run(0, 300), _run(4, 500)], 5) is not None


def test_a_forced_pick_can_be_delayed() -> None:
    policy = policy_of(force_up_level_0=True, force_up_interval=5)
    runs = [_run(0, 1), _run(0, 2)]
    assert [pick(policy, runs, 3, picks_without_result=n) is None for n in range(5)] == [True] * 4 + [False]


def test_full_compaction_takes_all_runs_to_the_top() -> None:
    unit = full_compaction([_run(0, 1), _run(3, 1)], 6)
    assert unit is not None
    assert (unit.output_level, len(unit.runs), unit.full) == (5, 2, True)


def test_full_compaction_does_nothing_if_all_files_are_on_the_top_level() -> None:
    assert full_compaction([], 6) is None
    assert full_compaction([_run(5, 1)], 6) is None


def test_full_compaction_rewrites_named_files_of_the_top_level_one_by_one() -> None:
    top = SortedRun(5, (file(0, 1, level=5, index=0), file(2, 3, level=5, index=1)))
    unit = full_compaction([top], 6, frozenset([1]))
    assert unit is not None
    assert unit.file_rewrite
    assert [f.index for f in unit.files] == [1]


def test_a_unit_of_one_file_on_its_level_changes_nothing() -> None:
    assert CompactUnit(5, (_run(5, 1),), full=True).changes_nothing
    assert not CompactUnit(5, (_run(0, 1),), full=True).changes_nothing


def test_the_last_full_compaction_is_the_newest_file_of_the_top_level() -> None:
    top = SortedRun(
        5, (file(0, 1, level=5, creation_time=7), file(2, 3, level=5, creation_time=9), file(4, 5, level=5))
    )
    assert estimate_last_full([_run(0, 1), top], 5) == 9
    assert estimate_last_full([_run(0, 1)], 5) is None


@pytest.mark.parametrize(
    ("start", "end", "offpeak"),
    [(2, 5, {2, 3, 4}), (22, 1, {22, 23, 0}), (-1, 5, set()), (2, -1, set()), (7, 7, set()), (0, 23, set(range(23)))],
)
def test_off_peak_hours_raise_the_size_ratio_from_start_to_end(start: int, end: int, offpeak: set[int]) -> None:
    options = TableOptions.parse(
        {
            "compaction.offpeak.start.hour": str(start),
            "compaction.offpeak.end.hour": str(end),
            "compaction.offpeak-ratio": "40",
            "compaction.size-ratio": "3",
        }
    )
    for hour in range(24):
        policy = CompactionPolicy.from_options(options, (20_000 * 24 + hour) * 3_600_000 + 3_599_999)
        assert policy.size_ratio == (43 if hour in offpeak else 3), hour


def test_a_run_that_is_too_large_by_day_is_included_off_peak() -> None:
    runs = [_run(0, 100), _run(0, 100), _run(2, 260), _run(5, 9_000)]
    raw = {
        "num-sorted-run.compaction-trigger": "2",
        "compaction.offpeak.start.hour": "0",
        "compaction.offpeak.end.hour": "6",
        "compaction.offpeak-ratio": "50",
    }
    taken = {}
    for hour in (3, 12):
        policy = CompactionPolicy.from_options(TableOptions.parse(raw), hour * 3_600_000)
        unit = pick(policy, runs, 6)
        assert unit is not None
        taken[hour] = len(unit.runs)
    assert taken == {3: 3, 12: 2}
