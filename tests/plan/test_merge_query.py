"""The columns of the target that the expressions of a merge use."""

from __future__ import annotations

import pytest

from lakelsm.plan.merge_query import named_columns

NAMES = ["id", "v", "S", "a b", "x`y", "ä"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("t.id = s.v", ["id", "S"]),  # s may be a column with members.
        ("ID = `s`.`v` AND s . v > 1 AND `s` .`a b` = 1", ["id", "S"]),
        ("`a b` > 0 OR t.`X``Y` = 1", ["a b", "x`y"]),
        ("us.v = 1", ["v"]),
        ("t.s.v = 'id'", ["id", "v", "S"]),
        ("Ä + 1", ["ä"]),
        ("s.v * 2 > t.v", ["v", "S"]),
        ("hash(*) = 1", NAMES),
        ("struct(t.*) = s.r", NAMES),
    ],
)
def test_columns_that_an_expression_may_use(text: str, found: list[str]) -> None:
    assert named_columns([text], NAMES, "s") == found
