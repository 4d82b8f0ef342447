"""The columns that the condition of a merge requires to be equal."""

from __future__ import annotations

import pytest

from lakelsm.plan.merge_request import MergeRequest
from lakelsm.sql.merge_condition import with_equal_columns


@pytest.mark.parametrize(
    ("on", "equal", "is_equality"),
    [
        ("t.k = s.k", {"k": "k"}, True),
        ("s.a == T.`k k` AND (t.j <=> S.b) -- all", {"k k": "a", "j": "b"}, True),
        ("((t.k = s.k) AND (t.j = s.j))", {}, False),
        ("t.k = s.k AND t.n > 1", {"k": "k"}, False),
        ("t.k = s.k AND t.k = s.j", {"k": "k"}, False),
        ("t.k = s.k OR t.j = s.j", {}, False),
        ("NOT t.k = s.k", {}, False),
        ("NOT t.k = s.k AND t.j = s.j", {"j": "j"}, False),
        ("t.n BETWEEN 1 AND t.k = s.k", {}, False),
        ("t.n BETWEEN s.a AND s.b AND t.k = s.k", {"k": "k"}, False),
        ("CASE WHEN t.n = 1 AND t.k = s.k AND t.n = 2 THEN TRUE END", {}, False),
        ("t.k = s.k + 1", {}, False),
        ("t.k = s.a.b", {}, False),
        ("k = s.k", {}, False),
        ("t.k = t.j", {}, False),
        ("t.k >= s.k", {}, False),
        ("TRUE", {}, False),
    ],
)
def test_equal_columns(on: str, equal: dict[str, str], is_equality: bool) -> None:
    found = with_equal_columns(MergeRequest(on, (), "t", "S"))
    assert (found.equal, found.is_equality) == (equal, is_equality)
