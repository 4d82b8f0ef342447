"""The unit of a merge: its files in order, their levels and its cost."""

from __future__ import annotations

from lakelsm.merge.merge_unit import MergeUnit, RunFile

FIRST, SECOND = (
    RunFile("/t/bucket-0/a", schema_id=0, row_count=10, file_size=100),
    RunFile("/t/bucket-0/b", schema_id=0, row_count=10, file_size=200),
)
THIRD = RunFile("/t/bucket-0/c", schema_id=0, row_count=10, file_size=1000, level=5)


def test_the_files_are_those_looked_up_first_and_then_the_runs_in_order() -> None:
    unit = MergeUnit(((FIRST,), (SECOND,)), looked_up=((THIRD,),))
    assert unit.all_runs == ((THIRD,), (FIRST,), (SECOND,))
    assert unit.files == (THIRD, FIRST, SECOND)
    assert unit.levels.tolist() == [5, 0, 0]
    assert MergeUnit(()).files == ()
    assert MergeUnit(()).levels.tolist() == []


def test_a_looked_up_file_costs_a_quarter_of_a_merged_one() -> None:
    assert MergeUnit(((FIRST, SECOND),)).cost == 300
    assert MergeUnit(((FIRST, SECOND),), looked_up=((THIRD,),)).cost == 550


def test_the_name_of_a_file_is_the_last_part_of_its_path() -> None:
    assert FIRST.name == "a"
    assert RunFile("plain", schema_id=0, row_count=1, file_size=1).name == "plain"
