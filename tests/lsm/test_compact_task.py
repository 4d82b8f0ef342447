"""The decision of a compaction for each file."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lakelsm.lsm.compact_task import CompactPlan, drops_deletes, min_compaction_file_size, plan_compaction
from lakelsm.lsm.levels import FileRange, SortedRun, sorted_runs
from lakelsm.lsm.universal_compaction import CompactUnit
from tests.lsm.planning_files import file, file_lists


def _plan(files: list[FileRange], output_level: int = 2, max_level: int = 5, **more: object) -> CompactPlan:
    unit = CompactUnit(
        output_level, sorted_runs(files), full=True, file_rewrite=bool(more.pop("one_by_one", 0))
    )
    return plan_compaction(unit, max_level=max_level, min_file_size=10, drop_delete=True, **more)  # type: ignore[arg-type]


def _rewritten(plan: CompactPlan) -> list[list[int]]:
    return [[f.index for f in group.files] for group in plan.rewrites]


def test_a_large_file_that_overlaps_no_other_is_upgraded() -> None:
    plan = _plan([file(0, 9, size=10)])
    assert (len(plan.upgrades), plan.rewrites) == (1, ())


def test_small_neighbours_are_rewritten_together_and_a_large_file_separates_them() -> None:
    files = [file(i, i, size=size, index=i) for i, size in enumerate([1, 1, 10, 1, 1])]
    plan = _plan(files)
    assert _rewritten(plan) == [[0, 1], [3, 4]]
    assert [f.index for f in plan.upgrades] == [2]


def test_a_file_on_the_output_level_stays_untouched() -> None:
    plan = _plan([file(0, 9, size=10, level=2, index=7)])
    assert [f.index for f in plan.untouched] == [7]
    assert plan.is_empty


def test_a_file_that_may_contain_deletes_is_rewritten_for_the_top_level() -> None:
    for delete_rows in (1, None):
        assert _rewritten(_plan([file(0, 9, size=10, delete_rows=delete_rows)], 5)) == [[0]]
        assert _plan([file(0, 9, size=10, delete_rows=delete_rows)], 4).rewrites == ()
    assert _plan([file(0, 9, size=10, delete_rows=0)], 5).rewrites == ()


def test_a_file_that_must_change_is_rewritten() -> None:
    assert _rewritten(_plan([file(0, 9, size=10)], must_rewrite=lambda f: True)) == [[0]]


def test_a_rewrite_file_by_file_keeps_files_separate() -> None:
    files = [file(i, i, level=5, index=i) for i in range(3)]
    assert _rewritten(_plan(files, 5, one_by_one=True)) == [[0], [1], [2]]


def test_deletes_are_dropped_only_if_no_level_below_has_older_rows() -> None:
    runs = [SortedRun(0, (file(0, 1),)), SortedRun(3, (file(0, 1, level=3),))]
    assert drops_deletes(3, runs)
    assert drops_deletes(5, runs)
    assert not drops_deletes(2, runs)
    assert drops_deletes(2, runs, deletion_vectors=True)
    assert not drops_deletes(0, runs[:1])


def test_the_small_file_size_is_rounded_down_to_bytes() -> None:
    assert min_compaction_file_size(128 * 1024 * 1024, 0.7) == 93952409


@given(file_lists(), st.integers(1, 5))
def test_every_file_has_one_outcome_and_output_ranges_never_overlap(
    files: list[FileRange], level: int
) -> None:
    plan = _plan(files, level)
    outcomes = [f.index for f in (*plan.upgrades, *plan.untouched)]
    outcomes += [f.index for group in plan.rewrites for f in group.files]
    assert sorted(outcomes) == [f.index for f in files]
    ranges = [(f.min_key, f.max_key) for f in (*plan.upgrades, *plan.untouched)]
    ranges += [(min(f.min_key for f in g.files), max(f.max_key for f in g.files)) for g in plan.rewrites]
    ranges.sort()
    assert all(a[1] < b[0] for a, b in pairwise(ranges))
