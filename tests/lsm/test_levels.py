"""The sorted runs of a bucket."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.lsm.levels import highest_level, level_count, sorted_runs
from tests.lsm.planning_files import file


def test_level_0_is_newest_first_and_each_file_is_a_run() -> None:
    files = [
        file(0, 9, index=0, min_seq=0, max_seq=5),
        file(0, 9, index=1, min_seq=6, max_seq=9),
        file(0, 9, index=2, min_seq=5, max_seq=9),
    ]
    assert [[f.index for f in run.files] for run in sorted_runs(files)] == [[2], [1], [0]]


def test_ties_on_level_0_are_decided_by_creation_time_then_name() -> None:
    def tie(index: int, time: int) -> object:
        return file(0, 9, index=index, min_seq=1, max_seq=9, creation_time=time)

    files = [tie(0, 7), tie(2, 5), tie(1, 5)]
    assert [run.files[0].index for run in sorted_runs(files)] == [1, 2, 0]  # type: ignore[arg-type]


def test_upper_levels_are_one_run_each_in_key_order_and_empty_ones_are_left_out() -> None:
    files = [file(5, 9, level=3, index=0), file(0, 4, level=3, index=1), file(0, 9, level=1, index=2)]
    runs = sorted_runs(files)
    assert [(run.level, [f.index for f in run.files]) for run in runs] == [(1, [2]), (3, [1, 0])]
    assert runs[1].total_size == 2
    assert highest_level(runs) == 3
    assert highest_level(()) == -1


def test_a_file_above_the_configured_levels_adds_levels() -> None:
    assert level_count([file(0, 1, level=9)], 6) == 10
    assert level_count([], 6) == 6


def test_fewer_than_two_levels_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"option .num-levels.: 1 is less than 2"):
        level_count([], 1)
