"""Sections and their runs, compared with brute force."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given

from lakelsm.lsm.interval_partition import interval_partition
from lakelsm.lsm.levels import FileRange
from tests.lsm.planning_files import file_lists


@given(file_lists())
def test_every_file_is_in_exactly_one_section(files: list[FileRange]) -> None:
    found = [file.index for section in interval_partition(files) for file in section.files]
    assert sorted(found) == [file.index for file in files]


@given(file_lists())
def test_sections_are_the_connected_key_ranges_in_key_order(files: list[FileRange]) -> None:
    sections = interval_partition(files)
    expected: list[set[int]] = []
    for file in files:  # union of overlapping ranges, computed slowly
        joined = [group for group in expected if any(_overlap(file, files[i]) for i in group)]
        expected = [group for group in expected if group not in joined]
        expected.append({file.index}.union(*joined))
    assert sorted(map(sorted, expected)) == sorted(sorted(f.index for f in s.files) for s in sections)
    for left, right in pairwise(sections):
        assert max(f.max_key for f in left.files) < min(f.min_key for f in right.files)


@given(file_lists())
def test_runs_do_not_overlap_and_their_number_is_the_deepest_overlap(files: list[FileRange]) -> None:
    for section in interval_partition(files):
        for run in section.runs:
            assert all(a.max_key < b.min_key for a, b in pairwise(run))
        keys = range(73)
        deepest = max(sum(f.min_key <= key <= f.max_key for f in section.files) for key in keys)
        assert len(section.runs) == deepest


def _overlap(a: FileRange, b: FileRange) -> bool:
    return bool(a.min_key <= b.max_key and b.min_key <= a.max_key)
