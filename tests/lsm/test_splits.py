"""The files of a bucket that are read unchanged, those that are merged, and packing."""

from __future__ import annotations

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from lakelsm.lsm.levels import FileRange
from lakelsm.lsm.splits import pack_in_order, read_units
from tests.lsm.planning_files import file, file_lists


def _files(*ranges: tuple[int, int, int]) -> list[FileRange]:
    """Files of (level, low, high), as large as their key range, with indexes from 1."""
    return [
        file(low, high, level=level, size=high - low + 1, index=i)
        for i, (level, low, high) in enumerate(ranges, start=1)
    ]


def _shape(files: list[FileRange], *, unique_keys: bool = False) -> tuple[list[int], list[list[int]]]:
    """Return the files that are read unchanged, and those of each section, by index."""
    units = read_units(files, unique_keys=unique_keys)
    return [f.index for f in units.raw_files], [sorted(f.index for f in part.files) for part in units.merge_sections]


def test_one_level_without_retractions_is_read_unchanged() -> None:
    assert _shape(_files((1, 0, 9), (1, 9, 20))) == ([1, 2], [])


def test_files_are_merged_where_keys_overlap_on_level_0_on_several_levels_and_with_retractions() -> None:
    for files in (
        _files((0, 0, 9), (0, 9, 20)),
        _files((1, 0, 9), (2, 9, 20)),
        [file(0, 9, level=1, index=1, delete_rows=1), file(9, 20, level=1, index=2)],
        [file(0, 9, level=1, index=1, delete_rows=None), file(9, 20, level=1, index=2)],
    ):
        assert _shape(files) == ([], [[1, 2]])


def test_without_a_merge_several_levels_are_read_unchanged() -> None:
    assert _shape(_files((1, 0, 10), (2, 10, 20)), unique_keys=True) == ([1, 2], [])


def test_a_single_file_is_read_unchanged_on_level_0_too_unless_it_may_contain_deletes() -> None:
    assert _shape(_files((0, 0, 9))) == ([1], [])
    assert _shape([file(0, 9, index=1, delete_rows=None)]) == ([], [[1]])


def test_files_without_a_merge_are_separated_from_sections() -> None:
    assert _shape(_files((0, 0, 9), (5, 5, 30), (5, 40, 50), (0, 60, 70))) == ([3, 4], [[1, 2]])


@given(st.lists(st.integers(0, 50)), st.integers(1, 100))
def test_packing_keeps_the_order_and_the_limit(weights: list[int], target: int) -> None:
    bins = pack_in_order(weights, lambda weight: weight, target)
    assert [weight for packed in bins for weight in packed] == weights
    assert all(len(packed) == 1 or sum(packed) <= target for packed in bins)
    assert all(sum(a) + b[0] > target for a, b in pairwise(bins))


@given(file_lists())
def test_overlapping_files_share_a_section_and_none_is_lost(files: list[FileRange]) -> None:
    raw, sections = _shape(files)
    assert sorted([*raw, *(index for section in sections for index in section)]) == [f.index for f in files]
    where = {index: number for number, section in enumerate(sections) for index in section}
    if raw != [f.index for f in files]:
        assert all(
            where.get(a.index) == where.get(b.index) is not None
            for a, b in combinations(files, 2)
            if a.min_key <= b.max_key and b.min_key <= a.max_key
        )
