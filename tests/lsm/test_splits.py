"""Packing of files into splits."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lakelsm.lsm.levels import FileRange
from lakelsm.lsm.splits import Split, pack_in_order, plan_splits, read_units
from tests.lsm.planning_files import file, file_lists


def _shape(splits: tuple[Split, ...]) -> list[tuple[list[int], bool]]:
    return [(sorted(f.index for f in split.files), split.raw) for split in splits]


def _files(*ranges: tuple[int, int, int]) -> list[FileRange]:
    """Files of (level, low, high), as large as their range, indexed from 1."""
    return [
        file(low, high, level=level, size=high - low + 1, index=i)
        for i, (level, low, high) in enumerate(ranges, start=1)
    ]


def test_sections_are_packed_up_to_the_target_and_an_open_file_has_a_cost() -> None:
    files = _files((0, 0, 10), (0, 0, 12), (0, 15, 60), (0, 18, 40), (0, 82, 85), (0, 100, 200))
    packed = plan_splits(files, target_size=100, open_file_cost=2)
    assert _shape(packed) == [([1, 2, 3, 4, 5], False), ([6], True)]
    packed = plan_splits(files, target_size=100, open_file_cost=30)
    assert _shape(packed) == [([1, 2, 3, 4], False), ([5], True), ([6], True)]


def test_one_level_without_retractions_is_raw() -> None:
    assert _shape(plan_splits(_files((1, 0, 9), (1, 10, 20)), target_size=100, open_file_cost=2)) == [
        ([1, 2], True)
    ]


def test_level_0_several_levels_and_retractions_need_a_merge() -> None:
    for files in (
        _files((0, 0, 9), (0, 10, 20)),
        _files((1, 0, 9), (2, 10, 20)),
        [file(0, 9, level=1, index=1, delete_rows=1), file(10, 20, level=1, index=2)],
        [file(0, 9, level=1, index=1, delete_rows=None), file(10, 20, level=1, index=2)],
    ):
        assert _shape(plan_splits(files, target_size=100, open_file_cost=2)) == [([1, 2], False)]


def test_without_a_merge_several_levels_are_raw() -> None:
    files = _files((1, 0, 10), (2, 10, 20))
    assert _shape(plan_splits(files, target_size=100, open_file_cost=2, no_merge=True)) == [([1, 2], True)]


def test_a_lone_file_is_raw_on_level_0_too_unless_it_may_hold_deletes() -> None:
    assert _shape(plan_splits(_files((0, 0, 9)), target_size=1, open_file_cost=1)) == [([0 + 1], True)]
    unknown = [file(0, 9, index=1, delete_rows=None)]
    assert _shape(plan_splits(unknown, target_size=1, open_file_cost=1)) == [([1], False)]


def test_read_units_tell_raw_files_from_sections_to_merge() -> None:
    units = read_units(_files((0, 0, 9), (5, 5, 30), (5, 40, 50), (0, 60, 70)))
    assert [f.index for f in units.raw_files] == [3, 4]
    assert [sorted(f.index for f in section.files) for section in units.merge_sections] == [[1, 2]]


def test_no_files_make_no_splits() -> None:
    assert plan_splits([], target_size=1, open_file_cost=1) == ()


@given(st.lists(st.integers(0, 50)), st.integers(1, 100))
def test_packing_keeps_the_order_and_the_bound(weights: list[int], target: int) -> None:
    bins = pack_in_order(weights, lambda weight: weight, target)
    assert [weight for packed in bins for weight in packed] == weights
    assert all(len(packed) == 1 or sum(packed) <= target for packed in bins)
    assert all(sum(a) + b[0] > target for a, b in pairwise(bins))


@given(file_lists(), st.integers(1, 200))
def test_overlapping_files_share_a_split_and_none_is_lost(files: list[FileRange], target: int) -> None:
    splits = plan_splits(files, target_size=target, open_file_cost=4)
    assert sorted(f.index for split in splits for f in split.files) == [f.index for f in files]
    where = {f.index: i for i, split in enumerate(splits) for f in split.files}
    for a in files:
        for b in files:
            if a.min_key <= b.max_key and b.min_key <= a.max_key:
                assert where[a.index] == where[b.index]
    assert all(len(split.files) == 1 for split in splits if split.raw)
