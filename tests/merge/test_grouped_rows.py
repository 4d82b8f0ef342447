"""The rows of contested keys in merge order, and reductions over them."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from lakelsm.merge.grouped_rows import GroupedRows, by_rank, grouped_rows, ranks
from lakelsm.merge.merge_spec import MergeSpec

#: Groups of one, three and two positions.
GROUPS = GroupedRows(np.array([9, 4, 7, 5, 0, 2]), np.array([0, 1, 4]))


def mask(*positions: int) -> np.ndarray:
    found = np.zeros(6, bool)
    found[list(positions)] = True
    return found


def test_each_position_has_its_group_and_each_group_its_ends() -> None:
    assert GROUPS.count == 3
    assert GROUPS.sizes.tolist() == [1, 3, 2]
    assert GROUPS.ends.tolist() == [0, 3, 5]
    assert GROUPS.ids.tolist() == [0, 1, 1, 1, 2, 2]


def test_first_last_and_any_stay_within_their_group() -> None:
    chosen = mask(1, 3, 4)
    assert GROUPS.first(chosen).tolist() == [-1, 1, 4]
    assert GROUPS.last(chosen).tolist() == [-1, 3, 4]
    assert GROUPS.any(chosen).tolist() == [False, True, True]
    assert GROUPS.first(mask()).tolist() == GROUPS.last(mask()).tolist() == [-1, -1, -1]


def test_narrowing_leaves_out_groups_without_a_chosen_position() -> None:
    chosen, firsts, groups = GROUPS.narrowed(mask(2, 3, 5))
    assert (chosen.tolist(), firsts.tolist(), groups.tolist()) == ([2, 3, 5], [0, 2], [1, 2])
    assert [part.tolist() for part in GROUPS.narrowed(mask())] == [[], [], []]


def test_groups_are_walked_side_by_side_each_until_its_last_row() -> None:
    walked = [(sorted(zip(active.tolist(), at.tolist()))) for active, at in by_rank(GROUPS.starts, GROUPS.sizes)]
    assert walked == [[(0, 0), (1, 1), (2, 4)], [(1, 2), (2, 5)], [(1, 3)]]
    assert list(by_rank(np.array([], np.int64), np.array([], np.int64))) == []


def ordered(spec: MergeSpec, *rows: tuple[int, int, int | None]) -> list[int]:
    """Return the positions of rows (number, kind, sequence field) of one key in merge order."""
    numbers, kinds, sequence = zip(*rows)
    table = pa.table(
        {
            "_SEQUENCE_NUMBER": pa.array(numbers, pa.int64()),
            "_VALUE_KIND": pa.array(kinds, pa.int8()),
            "s": pa.array(sequence, pa.int32()),
        }
    )
    found = grouped_rows(table, np.arange(len(rows)), np.zeros(len(rows), np.int64), spec)
    assert found.starts.tolist() == [0]
    return found.rows.tolist()


def test_rows_are_ordered_by_sequence_field_number_and_kind() -> None:
    plain, by_field = MergeSpec(("id",)), MergeSpec(("id",), sequence_columns=("s",))
    assert ordered(plain, (2, 0, 1), (1, 0, 5), (3, 0, None)) == [1, 0, 2]
    assert ordered(by_field, (2, 0, 1), (1, 0, 5), (3, 0, None)) == [2, 0, 1]
    assert ordered(by_field, (2, 0, 1), (1, 0, 1)) == [1, 0]
    # An add follows a retraction of the same number; rows that tie keep their order.
    assert ordered(plain, (1, 0, 0), (1, 3, 0), (1, 2, 0), (1, 1, 0)) == [1, 3, 0, 2]


def test_a_descending_field_reverses_values_and_null_stays_the_weakest() -> None:
    spec = MergeSpec(("id",), sequence_columns=("s",), sequence_descending=True)
    assert ordered(spec, (1, 0, -(2**31)), (2, 0, None), (3, 0, 2**31 - 1)) == [1, 2, 0]


def test_groups_are_separate_and_sorted_rows_keep_their_order() -> None:
    table = pa.table(
        {"_SEQUENCE_NUMBER": pa.array([5, 6, 1, 2, 9, 3]), "_VALUE_KIND": pa.array([0] * 6, pa.int8())}
    )
    rows, group = np.array([0, 1, 2, 3, 4, 5]), np.array([7, 7, 8, 8, 9, 9])
    found = grouped_rows(table, rows, group, MergeSpec(("id",)))
    assert (found.rows.tolist(), found.starts.tolist()) == ([0, 1, 2, 3, 5, 4], [0, 2, 4])
    found = grouped_rows(table, rows[:4], group[:4], MergeSpec(("id",)))
    assert (found.rows.tolist(), found.starts.tolist()) == ([0, 1, 2, 3], [0, 2])


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([3, None, -7, 3, 10], pa.int32()),
        ([2**63 - 1, None, -(2**63), 2**63 - 1, 2**63 - 1], pa.int64()),
        (["b", None, "a\0", "b", "bb"], pa.string()),
        ([0.5, None, float("-inf"), 0.5, float("nan")], pa.float64()),
        ([dt.date(2000, 1, 1), None, dt.date(1, 1, 1), dt.date(2000, 1, 1), dt.date(9999, 12, 31)], pa.date32()),
    ],
    ids=str,
)
def test_ranks_compare_as_the_values_do_with_null_below_all(values: list[object], kind: pa.DataType) -> None:
    found = ranks([pa.chunked_array([values[:2], values[2:]], kind)])
    null, smallest, same, again, largest = found[1], found[2], found[0], found[3], found[4]
    assert 0 <= null < smallest < same == again
    assert largest >= same


def test_ranks_of_several_columns_compare_the_first_one_first() -> None:
    found = ranks([pa.chunked_array([[1, 1, None, 2]]), pa.chunked_array([["b", "a", "z", None]])])
    assert found.tolist() == [2, 1, 0, 3]


def test_ranks_are_dense_if_values_would_reach_the_limit() -> None:
    column = pa.chunked_array([[10, 1000, None, 10]])
    assert ranks([column], limit=1001).tolist() == [1, 991, 0, 1]
    assert ranks([column], limit=900).tolist() == [1, 2, 0, 1]
    assert ranks([pa.chunked_array([[None, None]], pa.int32())]).tolist() == [0, 0]
