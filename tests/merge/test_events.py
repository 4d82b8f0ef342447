"""Rows as events of a column: which have an effect, the items of a fold, and the values at positions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.merge.events import ADD, RETRACT, REVERSED, SEED, SKIP, Events, Items, Values
from lakelsm.merge.grouped_rows import GroupedRows
from lakelsm.merge.merge_spec import ColumnRule

#: Two groups: the positions 0 to 2 and 3 to 4.
GROUPS = GroupedRows(np.array([4, 3, 2, 1, 0]), np.array([0, 3]))


def events(*ops: int, seeds: tuple[int, int] = (-1, -1)) -> Events:
    return Events(GROUPS, np.array(ops, np.int8), np.array(seeds))


def test_events_before_a_seed_have_no_effect_and_other_groups_do_not_change() -> None:
    found = events(ADD, RETRACT, ADD, RETRACT, REVERSED, seeds=(1, -1))
    assert found.live.tolist() == [SKIP, RETRACT, ADD, RETRACT, REVERSED]
    assert found.seeded.tolist() == [False, True, False, False, False]


def test_a_seed_counts_as_added_even_if_its_row_retracts() -> None:
    assert events(ADD, RETRACT, SKIP, REVERSED, SKIP, seeds=(1, -1)).added.tolist() == [False, True, False, True, False]


def test_a_seed_precedes_the_effect_of_its_own_row() -> None:
    items = Items.of(events(ADD, RETRACT, ADD, SKIP, ADD, seeds=(1, 3)))
    assert items.positions.tolist() == [1, 1, 2, 3, 4]
    assert items.ops.tolist() == [SEED, RETRACT, ADD, SEED, ADD]
    assert (items.firsts.tolist(), items.sizes.tolist(), items.owners.tolist()) == ([0, 3], [3, 2], [0, 1])


def test_a_group_whose_rows_have_no_effect_has_no_items() -> None:
    items = Items.of(events(SKIP, SKIP, SKIP, ADD, SKIP))
    assert (items.positions.tolist(), items.sizes.tolist(), items.owners.tolist()) == ([3], [1], [1])


def test_only_counted_positions_are_items_seeds_included() -> None:
    items = Items.of(events(ADD, ADD, ADD, ADD, ADD, seeds=(0, 4)), np.array([False, True, False, True, True]))
    assert (items.positions.tolist(), items.ops.tolist()) == ([1, 4, 4], [ADD, SEED, ADD])
    none = Items.of(events(ADD, ADD, ADD, ADD, ADD), np.zeros(5, bool))
    assert [part.tolist() for part in (none.positions, none.ops, none.firsts, none.sizes, none.owners)] == [[]] * 5


def test_retractions_are_left_out_or_refused_naming_column_function_and_remedy() -> None:
    found = events(ADD, RETRACT, SKIP, REVERSED, RETRACT, seeds=(1, -1))
    assert found.without_retractions().ops.tolist() == [ADD, SKIP, SKIP, REVERSED, SKIP]
    assert found.without_retractions().seeds.tolist() == [1, -1]
    rule = ColumnRule("total", "max")
    message = r"column 'total': aggregate function 'max' cannot retract.*'fields\.total\.ignore-retract' = 'true'"
    with pytest.raises(InvalidInputError, match=message):
        found.refuse_retractions(rule)
    found.without_retractions().refuse_retractions(rule)


def test_a_retraction_before_the_seed_is_refused_too() -> None:
    with pytest.raises(InvalidInputError):
        events(RETRACT, ADD, ADD, ADD, ADD, seeds=(2, -1)).refuse_retractions(ColumnRule("v", "max"))


def test_values_are_read_by_position_with_null_for_none() -> None:
    column = pa.chunked_array([["a", None], ["c"], [], ["d", "e"]], pa.string())
    values = Values(column, GROUPS)
    assert values.valid.tolist() == [True, True, True, False, True]
    assert values.at(np.array([0, -1, 3, 4])).to_pylist() == ["e", None, None, "a"]
    assert values.at(np.array([], np.int64)).to_pylist() == []
    assert Values(pa.chunked_array([range(5)]), GROUPS).valid.all()
