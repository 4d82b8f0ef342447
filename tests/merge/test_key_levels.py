"""Rows of a key on several levels of a table that looks rows up: which ones a merge combines."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.merge.key_levels import KeyGroups, combined_rows, merge_candidates
from lakelsm.merge.key_order import order_keys

PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), max_size=20)


def groups_of(keys: list[int]) -> KeyGroups:
    return KeyGroups.of(order_keys([pa.array(keys, pa.int32())]), len(keys))


def test_rows_are_grouped_by_key_in_key_order() -> None:
    groups = groups_of([7, -1, 7, 3])
    assert groups.ids.tolist() == [2, 0, 2, 1]
    assert groups.count == 3
    assert groups.minimum(np.array([5, 1, 4, 9])).tolist() == [1, 9, 4]
    assert groups.any(np.array([False, False, True, False])).tolist() == [False, False, True]


def test_without_keys_every_row_is_its_own_group() -> None:
    groups = KeyGroups.of(None, 3)
    assert (groups.ids.tolist(), groups.count) == ([0, 1, 2], 3)
    assert groups.minimum(np.array([4, 2, 3])).tolist() == [4, 2, 3]


@pytest.mark.parametrize("groups", [KeyGroups.of(None, 0), groups_of([])], ids=["no keys", "empty keys"])
def test_no_rows_have_no_groups(groups: KeyGroups) -> None:
    nothing = np.array([], np.int64)
    assert groups.count == 0
    assert groups.minimum(nothing).tolist() == groups.any(nothing.astype(bool)).tolist() == []
    assert combined_rows(groups, nothing).tolist() == []


def test_the_row_of_a_group_is_its_last_selected_one_or_none() -> None:
    groups = groups_of([1, 2, 1, 1, 3])
    assert groups.row_of(np.array([True, False, True, False, True])).tolist() == [2, -1, 4]


def test_level_0_and_the_lowest_other_level_of_a_key_are_combined() -> None:
    keys, levels = [1, 1, 1, 1, 2, 2, 3], np.array([0, 0, 3, 5, 4, 5, 5])
    assert combined_rows(groups_of(keys), levels).tolist() == [True, True, True, False, True, False, True]


@given(PAIRS)
def test_combined_rows_equal_those_of_a_simple_rule(pairs: list[tuple[int, int]]) -> None:
    expected = [
        level == 0 or level == min(other for of, other in pairs if of == key and other > 0) for key, level in pairs
    ]
    levels = np.array([level for _, level in pairs], np.int64)
    keys = order_keys([pa.array([key for key, _ in pairs], pa.int32())])
    rows = pa.table({"at": pa.array(range(len(pairs)), pa.int64())})
    candidates, candidate_keys = merge_candidates(rows, keys, levels)
    chosen = candidates.column("at").to_pylist()
    assert chosen == [at for at, kept in enumerate(expected) if kept]
    assert candidate_keys.tolist() == keys[chosen].tolist()


def test_rows_that_are_all_combined_are_returned_unchanged() -> None:
    rows = pa.table({"at": [0, 1]})
    keys = order_keys([pa.array([1, 2], pa.int32())])
    assert merge_candidates(rows, keys, np.array([0, 4]))[0] is rows
