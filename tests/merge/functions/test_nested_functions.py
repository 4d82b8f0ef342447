"""nested_update and nested_partial_update: arrays of rows, value by value."""

from __future__ import annotations

from typing import Any

import pytest

from lakelsm.errors import InvalidInputError
from tests.merge.one_key import DELETE, GROUP, INSERT, function, merged

ROWS = "ARRAY<ROW<k INT, v INT, s INT>>"
PLAIN, KEYED = function("nested_update"), function("nested_update", nested_key="k")
PARTIAL = function("nested_partial_update", nested_key="k")


def row(k: int | None, v: int | None = None, s: int | None = None) -> dict[str, Any]:
    return {"k": k, "v": v, "s": s}


def folded(options: dict[str, str], *values: Any) -> Any:
    return merged(ROWS, options, *((INSERT, value) for value in values))


def test_rows_without_a_nested_key_are_appended_without_nulls() -> None:
    assert folded(PLAIN, [row(1)], None, [row(1), None]) == [row(1), row(1)]
    assert folded(PLAIN, None, None) is None
    assert folded(PLAIN, None, []) == []


def test_the_last_row_of_a_nested_key_wins() -> None:
    assert folded(KEYED, [row(1, 1), row(2, 2)], [row(1, None)]) == [row(1, None), row(2, 2)]
    both = function("nested_update", nested_key="k,v")
    assert folded(both, [row(1, 1, 1)], [row(1, 2, 2), row(1, 1, 3)]) == [row(1, 1, 3), row(1, 2, 2)]


def test_a_nested_sequence_decides_before_the_order_with_null_below_all() -> None:
    options = function("nested_update", nested_key="k", nested_sequence_field="s")
    assert folded(options, [row(1, 1, 5)], [row(1, 2, 4)]) == [row(1, 1, 5)]
    assert folded(options, [row(1, 1, 5)], [row(1, 2, 5)]) == [row(1, 2, 5)]
    assert folded(options, [row(1, 1, 0)], [row(1, 2, None)]) == [row(1, 1, 0)]
    assert folded(options, None, [], [row(1, 1, None)]) == [row(1, 1, None)]


def test_the_limit_applies_to_new_rows_and_existing_ones_stay_and_change() -> None:
    assert folded(function("nested_update", count_limit="2"), [row(1)], [row(2), row(3)], [row(4)]) == [row(1), row(2)]
    keyed = function("nested_update", nested_key="k", count_limit="1")
    assert folded(keyed, [row(1, 1)], [row(2, 2), row(1, 3)]) == [row(1, 3)]


def test_an_older_row_of_a_sequence_group_comes_first() -> None:
    rows = (INSERT, [row(1, 9)], 2), (INSERT, [row(1, 1), row(2, 2)], 1)
    assert merged(ROWS, {**GROUP, **PLAIN}, *rows) == [row(1, 1), row(2, 2), row(1, 9)]
    assert merged(ROWS, {**GROUP, **KEYED}, *rows) == [row(1, 9), row(2, 2)]
    rows = (INSERT, [row(1, 9)], 2), (INSERT, [row(1, 1, 5)], 1)
    assert merged(ROWS, {**GROUP, **PARTIAL}, *rows) == [row(1, 9, 5)]


def test_a_retraction_removes_the_rows_of_its_keys_or_those_equal_to_its_own() -> None:
    accumulated, retracted = [row(1, 1), row(2, 2), row(1, 1)], [row(1, 1), row(2, 3)]
    assert merged(ROWS, PLAIN, (INSERT, accumulated), (DELETE, retracted)) == [row(2, 2)]
    assert merged(ROWS, KEYED, (INSERT, accumulated), (DELETE, retracted)) == []
    assert merged(ROWS, PLAIN, (INSERT, accumulated), (DELETE, None)) == accumulated
    assert merged(ROWS, PLAIN, (INSERT, None), (DELETE, retracted)) is None


def test_members_are_updated_one_by_one_by_values_that_are_not_null() -> None:
    assert folded(PARTIAL, [row(1, 1, None)], [row(2, 2), row(1, None, 3)], [row(1, 4)]) == [row(1, 4, 3), row(2, 2)]
    assert folded(PARTIAL, [row(1, 1), row(1, None, 2)], None) == [row(1, 1, 2)]
    assert folded(PARTIAL, None, [row(1, 1), None, row(1, None, 2)]) == [row(1, 1, 2)]


@pytest.mark.parametrize("name", ["nested_update", "nested_partial_update"])
def test_a_nested_row_with_a_null_key_is_refused_ignored_or_merged_by_option(name: str) -> None:
    def with_strategy(strategy: str) -> Any:
        options = function(name, nested_key="k", nested_key_null_strategy=strategy)
        return folded(options, [row(1, 1), row(None, 2)], [row(None, 3)])

    message = r"column 'v': a row has NULL in its nested key \(k\)\. Write a value, or set .*'ignore'"
    with pytest.raises(InvalidInputError, match=message):
        with_strategy("error")
    assert with_strategy("ignore") == [row(1, 1)]
    assert with_strategy("merge") == [row(1, 1), row(None, 3)]
