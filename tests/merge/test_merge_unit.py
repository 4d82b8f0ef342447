"""The unit of a merge: its files in the order of their places, their levels and its cost."""

from __future__ import annotations

from lakelsm.merge.merge_unit import MergeUnit, RunFile

FIRST, SECOND = (
    RunFile("/t/bucket-0/a", schema_id=0, row_count=10, file_size=100),
    RunFile("/t/bucket-0/b", schema_id=0, row_count=10, file_size=200),
)
THIRD = RunFile("/t/bucket-0/c", schema_id=0, row_count=10, file_size=1000, level=5)


def test_the_files_are_those_looked_up_first_and_then_the_runs_in_order() -> None:
    unit = MergeUnit(((FIRST,), (SECOND,)), looked_up=((THIRD,),))
    assert unit.every_run == ((THIRD,), (FIRST,), (SECOND,))
    assert unit.files == (THIRD, FIRST, SECOND)
    assert unit.levels.tolist() == [5, 0, 0]
    assert MergeUnit(()).files == ()
    assert MergeUnit(()).levels.tolist() == []


def test_a_file_that_is_looked_up_costs_a_quarter_of_one_that_is_merged() -> None:
    assert MergeUnit(((FIRST, SECOND),)).cost == 300
    assert MergeUnit(((FIRST, SECOND),), looked_up=((THIRD,),)).cost == 550


def test_a_file_is_named_by_the_last_part_of_its_path() -> None:
    assert FIRST.name == "a"
    assert RunFile("plain", schema_id=0, row_count=1, file_size=1).name == "plain"
