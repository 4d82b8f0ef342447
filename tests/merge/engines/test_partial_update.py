"""The merge engine `partial-update`, one key at a time; random tables are in test_engines."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError
from tests.merge.one_key import (
    DELETE,
    GROUP,
    INSERT,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    function,
    kind_and_values,
    merged,
    merged_row,
)

PARTIAL = {"merge-engine": "partial-update"}
REMOVING = {**PARTIAL, "partial-update.remove-record-on-delete": "true"}
GROUP_REMOVING = {**GROUP, "partial-update.remove-record-on-sequence-group": "g"}


def test_each_column_keeps_its_last_value_that_is_not_null() -> None:
    row = merged_row("STRING", PARTIAL, (INSERT, "a", 1), (UPDATE_AFTER, None, 2), (INSERT, None, None))
    assert row == {"_SEQUENCE_NUMBER": 2, "_VALUE_KIND": INSERT, "id": 1, "v": "a", "g": 2}


def test_a_group_takes_the_row_of_the_greatest_sequence_nulls_included_and_the_later_of_equals() -> None:
    assert merged("STRING", GROUP, (INSERT, "new", 5), (INSERT, "old", 4)) == "new"
    assert merged("STRING", GROUP, (INSERT, "a", 5), (INSERT, None, 6)) is None
    assert merged("STRING", GROUP, (INSERT, "a", 5), (INSERT, "b", 5)) == "b"


def test_a_row_whose_sequence_is_null_does_not_change_the_group() -> None:
    assert kind_and_values("STRING", GROUP, (INSERT, "a", 5), (INSERT, "b", None)) == (INSERT, "a", 5)
    assert kind_and_values("STRING", GROUP, (INSERT, "a", None), (INSERT, "b", None)) == (INSERT, None, None)


@pytest.mark.parametrize("kind", [UPDATE_BEFORE, DELETE])
def test_a_retraction_that_is_not_older_empties_the_group_and_an_older_one_has_no_effect(kind: int) -> None:
    assert kind_and_values("STRING", GROUP, (INSERT, "a", 5), (kind, "a", 6)) == (INSERT, None, 6)
    assert kind_and_values("STRING", GROUP, (INSERT, "a", 5), (kind, "a", 4)) == (INSERT, "a", 5)


def test_a_function_of_a_group_puts_an_older_row_before_the_present_value() -> None:
    listed = {**GROUP, **function("listagg")}
    assert merged("STRING", listed, (INSERT, "b", 5), (INSERT, "a", 4), (INSERT, "c", 6)) == "a,b,c"


def test_a_key_without_an_added_row_has_no_row_and_the_number_of_the_last_row_with_an_effect() -> None:
    ignoring = {**PARTIAL, "ignore-delete": "true"}
    for options, rows, number, kind in (
        (GROUP, [(DELETE, 1, 5), (UPDATE_BEFORE, 2, 6)], 1, DELETE),
        (ignoring, [(INSERT, 1), (DELETE, 2), (UPDATE_BEFORE, 3)], 0, INSERT),
        (ignoring, [(DELETE, 1), (DELETE, 2)], 0, DELETE),
    ):
        row = merged_row("INT", options, *rows) or {}
        assert (row["_SEQUENCE_NUMBER"], row["_VALUE_KIND"]) == (number, kind)
        assert kind == DELETE or row["v"] == 1


def test_a_delete_that_removes_is_the_start_of_the_next_row() -> None:
    assert kind_and_values("INT", REMOVING, (INSERT, 1, 1), (DELETE, 2, 2)) == (DELETE, 2, 2)
    rows = (INSERT, 1, 1), (DELETE, None, 2), (INSERT, 3, None)
    assert kind_and_values("INT", REMOVING, *rows) == (INSERT, 3, 2)


@pytest.mark.parametrize(
    ("retraction", "kind", "value"),
    [((DELETE, 2, 5), DELETE, 2), ((DELETE, 2, 4), INSERT, 1), ((UPDATE_BEFORE, 2, 6), INSERT, None)],
)
def test_a_delete_of_the_named_sequence_removes_the_row_unless_it_is_older(
    retraction: tuple[int, int, int], kind: int, value: int | None
) -> None:
    assert kind_and_values("INT", GROUP_REMOVING, (INSERT, 1, 5), retraction)[:2] == (kind, value)


def test_a_row_that_was_removed_twice_may_keep_the_first_value_from_before() -> None:
    options = {**GROUP_REMOVING, **function("first_non_null_value", ignore_retract="true")}
    assert merged("INT", options, (DELETE, 5, 1), (INSERT, 6, 0), (DELETE, 7, 2), (INSERT, 8, 1)) == 8


@pytest.mark.parametrize("kind", [UPDATE_BEFORE, DELETE])
def test_a_retraction_without_an_option_is_refused_with_all_options_that_allow_it(kind: int) -> None:
    message = (
        "'merge-engine' = 'partial-update': .*are refused.*'ignore-delete' = 'true' to drop them.*"
        r"remove-record-on-delete' = 'true'.*'fields\.<column>\.sequence-group'"
    )
    with pytest.raises(InvalidInputError, match=message):
        merged("INT", PARTIAL, (INSERT, 1), (kind, 1))


def test_a_not_null_column_of_a_group_that_a_retraction_would_empty_is_refused() -> None:
    message = "column 'v': a merge made it NULL.*nullable, or set 'ignore-delete' = 'true'"
    with pytest.raises(InvalidInputError, match=message):
        merged("STRING NOT NULL", GROUP, (INSERT, "a"), (DELETE, "a"))
    assert merged("STRING", GROUP, (INSERT, "a"), (DELETE, "a")) is None
