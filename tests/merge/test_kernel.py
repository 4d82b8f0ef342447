"""The rows that survive a merge are those of the oracle."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.merge.kernel import latest_rows, merge_rows
from lakelsm.merge.key_order import order_keys
from lakelsm.merge.merge_spec import MergeSpec
from tests.merge.changes import Shape, changes, shapes
from tests.oracle import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, Change

FEW_NUMBERS = st.integers(0, 3)


def merged_runs(runs: list[pa.Table], spec: MergeSpec) -> pa.Table:
    table = pa.concat_tables(runs)
    return merge_rows(table, order_keys([table.column(name) for name in spec.key_columns]), spec)


def survivors(shape: Shape, rows: list[Change]) -> list[int]:
    table = shape.table(rows)
    keys = order_keys([table.column(name) for name in shape.spec.key_columns])
    return latest_rows(table, keys, shape.spec).tolist()


@given(st.data())
def test_the_latest_rows_are_those_of_the_oracle(data: st.DataObject) -> None:
    shape = data.draw(shapes())
    rows = data.draw(changes(shape, FEW_NUMBERS))
    assert survivors(shape, rows) == [change.value for change in shape.engine.survivors(rows)]


@given(st.data())
def test_the_order_of_the_rows_matters_only_where_numbers_tie(data: st.DataObject) -> None:
    shape = data.draw(shapes())
    rows = data.draw(changes(shape, FEW_NUMBERS, max_size=15))
    rows = [Change(row.key, at, row.kind, row.sequence, at) for at, row in enumerate(rows)]
    mixed = data.draw(st.permutations(rows))
    chosen = [mixed[index].value for index in survivors(shape, mixed)]
    assert chosen == survivors(shape, rows)


@given(st.data())
def test_a_merge_of_runs_in_memory_keeps_the_rows_of_the_oracle(data: st.DataObject) -> None:
    shape = data.draw(shapes())
    rows = data.draw(changes(shape, FEW_NUMBERS))
    cut = data.draw(st.integers(0, len(rows)))
    merged = merged_runs([shape.table(rows[:cut]), shape.table(rows[cut:])], shape.spec)
    assert merged.column("id").to_pylist() == [change.value for change in shape.engine.survivors(rows)]


def test_rows_whose_keys_ascend_are_not_copied() -> None:
    rows = pa.table({"id": [1, 2, 3], "_SEQUENCE_NUMBER": [7, 8, 9], "_VALUE_KIND": pa.array([0, 3, 0], pa.int8())})
    keys = order_keys([rows.column("id")])
    assert merge_rows(rows, keys, MergeSpec(("id",))) is rows
    assert merge_rows(rows, keys, MergeSpec(("id",), ignore_delete=True)).column("id").to_pylist() == [1, 3]


def one_key(*changes: Change, **options: bool) -> int | None:
    shape = Shape(("INT",), ("INT",) * len(changes[0].sequence), **options)
    found = survivors(shape, list(changes))
    return found[0] if found else None


@pytest.mark.parametrize("retraction", [DELETE, UPDATE_BEFORE])
@pytest.mark.parametrize("addition", [INSERT, UPDATE_AFTER])
def test_an_added_row_beats_a_retraction_of_the_same_number_wherever_it_stands(retraction: int, addition: int) -> None:
    assert one_key(Change((1,), 5, addition), Change((1,), 5, retraction)) == 0
    assert one_key(Change((1,), 5, retraction), Change((1,), 5, addition)) == 1


def test_of_two_rows_of_one_number_and_kind_the_later_in_the_table_wins() -> None:
    assert one_key(Change((1,), 5), Change((1,), 5)) == 1


def test_a_retraction_with_the_greatest_number_survives() -> None:
    assert one_key(Change((1,), 1), Change((1,), 2, DELETE)) == 1
    assert one_key(Change((1,), 1), Change((1,), 2, DELETE), ignore_delete=True) == 0


def test_a_key_of_retractions_alone_is_gone_where_deletes_are_ignored() -> None:
    assert one_key(Change((1,), 1, DELETE), Change((1,), 2, UPDATE_BEFORE), ignore_delete=True) is None


@pytest.mark.parametrize(("descending", "winner"), [(False, 1), (True, 0)])
def test_sequence_fields_decide_before_the_sequence_number(descending: bool, winner: int) -> None:
    low, high = Change((1,), 9, sequence=(3,)), Change((1,), 1, sequence=(4,))
    assert one_key(low, high, descending=descending) == winner


@pytest.mark.parametrize("descending", [False, True])
def test_a_null_sequence_field_loses_in_both_directions(descending: bool) -> None:
    for value in (-(2**31), 0, 2**31 - 1):
        assert one_key(Change((1,), 1, sequence=(value,)), Change((1,), 2, sequence=(None,)), descending=descending) == 0


@pytest.mark.parametrize("descending", [False, True])
def test_equal_sequence_fields_leave_the_decision_to_the_number(descending: bool) -> None:
    for value in (None, 3):
        rows = Change((1,), 2, sequence=(value,)), Change((1,), 1, sequence=(value,))
        assert one_key(*rows, descending=descending) == 0


def test_the_second_sequence_field_decides_where_the_first_ties() -> None:
    assert one_key(Change((1,), 1, sequence=(3, 9)), Change((1,), 2, sequence=(3, 8))) == 0
    assert one_key(Change((1,), 1, sequence=(None, 9)), Change((1,), 2, sequence=(None, None))) == 0


def test_a_late_delete_loses_to_a_row_with_a_greater_sequence_field() -> None:
    assert one_key(Change((1,), 1, sequence=(10,)), Change((1,), 2, DELETE, sequence=(5,))) == 0


def test_no_rows_have_no_survivors() -> None:
    shape = Shape(("INT",), ("STRING",))
    assert survivors(shape, []) == []
    assert len(merged_runs([shape.table([])], shape.spec)) == 0


def test_a_large_table_of_unique_keys_keeps_every_row_in_key_order() -> None:
    numbers = np.random.default_rng(7).permutation(10_000)
    shape = Shape(("INT",))
    rows = [Change((int(number),), at, value=at) for at, number in enumerate(numbers)]
    assert survivors(shape, rows) == np.argsort(numbers).tolist()


def test_a_sequence_field_may_be_a_key_column() -> None:
    shape = Shape(("INT",))
    rows = shape.table([Change((1,), 2), Change((1,), 1), Change((2,), 1)])
    spec = MergeSpec(("k0",), sequence_columns=("k0",))
    assert latest_rows(rows, order_keys([rows.column("k0")]), spec).tolist() == [0, 2]
