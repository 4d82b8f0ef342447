"""The merge engine `first-row`, one key at a time; random tables are in test_engines."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError
from tests.merge.one_key import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE, merged, merged_row

FIRST_ROW = {"merge-engine": "first-row"}
IGNORING = {**FIRST_ROW, "ignore-delete": "true"}


@pytest.mark.parametrize("kind", [INSERT, UPDATE_AFTER])
def test_the_first_row_stays_with_its_number_kind_and_nulls(kind: int) -> None:
    row = merged_row("STRING", FIRST_ROW, (kind, None), (INSERT, "b"), (INSERT, "c"))
    assert row == {"_SEQUENCE_NUMBER": 0, "_VALUE_KIND": kind, "id": 1, "v": None, "g": 0}


def test_retractions_that_the_table_ignores_are_never_first() -> None:
    assert merged("INT", IGNORING, (DELETE, 1), (UPDATE_BEFORE, 2), (INSERT, 3), (INSERT, 4)) == 3


def test_a_key_of_ignored_retractions_alone_has_no_row() -> None:
    assert merged_row("INT", IGNORING, (DELETE, 1), (UPDATE_BEFORE, 2)) is None


@pytest.mark.parametrize("kind", [UPDATE_BEFORE, DELETE])
def test_a_retraction_is_refused_with_the_remedy(kind: int) -> None:
    message = "'merge-engine' = 'first-row': .*are refused.*'ignore-delete' = 'true'"
    with pytest.raises(InvalidInputError, match=message):
        merged("INT", FIRST_ROW, (INSERT, 1), (kind, 1))
