"""The merge engine `aggregation`, one key at a time; random tables are in test_engines."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError
from tests.merge.one_key import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, function, kind_and_values, merged, merged_row

SUM = function("sum")
REMOVING = {**SUM, "aggregation.remove-record-on-delete": "true"}


def test_a_key_has_the_number_of_its_last_row_and_is_an_insert_even_if_that_row_retracts() -> None:
    row = merged_row("INT", {**SUM, "fields.g.aggregate-function": "sum"}, (UPDATE_AFTER, 5), (INSERT, 2), (DELETE, 7))
    assert row == {"_SEQUENCE_NUMBER": 2, "_VALUE_KIND": INSERT, "id": 1, "v": 0, "g": -1}


def test_columns_without_a_function_keep_the_last_value_that_is_not_null() -> None:
    assert merged("STRING", {}, (INSERT, "a"), (INSERT, "b"), (INSERT, None)) == "b"


def test_a_delete_that_removes_leaves_its_own_values_and_the_kind_minus_d() -> None:
    assert kind_and_values("INT", REMOVING, (INSERT, 5), (DELETE, 3)) == (DELETE, 3, 1)


def test_rows_after_a_removal_start_with_the_values_of_the_delete() -> None:
    rows = (INSERT, 5), (DELETE, 3), (INSERT, 2), (UPDATE_BEFORE, 1)
    assert kind_and_values("INT", REMOVING, *rows) == (INSERT, 4, None)
    assert merged("INT", REMOVING, (INSERT, 5), (DELETE, 3), (INSERT, 7), (DELETE, None), (INSERT, 2)) == 2


def test_a_minus_u_retracts_even_if_deletes_remove() -> None:
    assert kind_and_values("INT", REMOVING, (INSERT, 5), (UPDATE_BEFORE, 3)) == (INSERT, 2, None)


def test_a_column_that_is_not_null_and_would_become_null_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="column 'v': a merge made it NULL"):
        merged("INT NOT NULL", function("last_value"), (INSERT, 1), (DELETE, 1))
