"""The rows that a merge keeps equal those of the oracle."""

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
def test_the_latest_rows_and_merged_runs_equal_those_of_the_oracle(data: st.DataObject) -> None:
    shape = data.draw(shapes())
    rows = data.draw(changes(shape, FEW_NUMBERS))
    expected = [change.value for change in shape.engine.survivors(rows)]
    assert survivors(shape, rows) == expected
    cut = data.draw(st.integers(0, len(rows)))
    merged = merged_runs([shape.table(rows[:cut]), shape.table(rows[cut:])], shape.spec)
    assert merged.column("id").to_pylist() == expected


@given(st.data())
def test_the_order_of_the_rows_matters_only_for_equal_sequence_numbers(data: st.DataObject) -> None:
    shape = data.draw(shapes())
    rows = data.draw(changes(shape, FEW_NUMBERS, max_size=15))
    rows = [Change(row.key, at, row.kind, row.sequence, at) for at, row in enumerate(rows)]
    mixed = data.draw(st.permutations(rows))
    chosen = [mixed[index].value for index in survivors(shape, mixed)]
    assert chosen == survivors(shape, rows)


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
def test_an_added_row_wins_over_a_retraction_of_the_same_number_in_any_order(retraction: int, addition: int) -> None:
    assert one_key(Change((1,), 5, addition), Change((1,), 5, retraction)) == 0
    assert one_key(Change((1,), 5, retraction), Change((1,), 5, addition)) == 1


def change(number: int, *sequence: int | None, kind: int = INSERT) -> Change:
    return Change((1,), number, kind, sequence)


@pytest.mark.parametrize(
    ("rule", "rows", "winner"),
    [
        ("of two rows of one number and kind the later in the table wins", [change(5), change(5)], 1),
        ("a retraction with the greatest number survives", [change(1), change(2, kind=DELETE)], 1),
        ("the second sequence field decides where the first ties", [change(1, 3, 9), change(2, 3, 8)], 0),
        ("NULL loses in the second field too", [change(1, None, 9), change(2, None, None)], 0),
        ("a late delete loses to a greater sequence field", [change(1, 10), change(2, 5, kind=DELETE)], 0),
    ],
)
def test_the_strongest_row_of_a_key_is_kept(rule: str, rows: list[Change], winner: int) -> None:
    assert one_key(*rows) == winner, rule


def test_ignored_deletes_never_survive() -> None:
    assert one_key(change(1), change(2, kind=DELETE), ignore_delete=True) == 0
    assert one_key(change(1, kind=DELETE), change(2, kind=UPDATE_BEFORE), ignore_delete=True) is None


@pytest.mark.parametrize("descending", [False, True])
def test_sequence_fields_decide_before_the_number_null_loses_and_equal_fields_leave_the_decision_to_it(
    descending: bool,
) -> None:
    assert one_key(change(9, 3), change(1, 4), descending=descending) == (0 if descending else 1)
    for value in (-(2**31), 0, 2**31 - 1):
        assert one_key(change(1, value), change(2, None), descending=descending) == 0
    for equal in (None, 3):
        assert one_key(change(2, equal), change(1, equal), descending=descending) == 0


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
