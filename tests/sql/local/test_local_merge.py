"""Sources and expressions of merges."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError, LakelsmError, UnsupportedFeatureError
from lakelsm.plan.merge_request import DELETE, MATCHED, MergeRequest, MergeRule
from lakelsm.sql.local.local_merge import checked_request


def request(condition: str) -> MergeRequest:
    return MergeRequest("t.k = s.k", (MergeRule(MATCHED, condition, DELETE),), "t", "s")


@pytest.mark.parametrize(
    "text",
    [
        "a > 1 -- (",
        "')' = b",
        "((a))",
        "`select` = 1",
        "a /* ) */ = 1",
        "t.count > max",
        "`max`(a)",
        "over = 1",
        "a LIKE ANY ('b')",
    ],
)
def test_one_expression_is_accepted(text: str) -> None:
    checked_request(request(text))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a) OR (b", InvalidInputError),
        ("(a", InvalidInputError),
        ("a; DROP TABLE t", InvalidInputError),
        ("'a", InvalidInputError),
        ("count(*) > 1", InvalidInputError),
        ("Any (a)", InvalidInputError),
        ("rank() OVER (ORDER BY a) = 1", InvalidInputError),
        ("lag(a) IGNORE NULLS OVER w = 1", InvalidInputError),
        ("EXISTS (SELECT 1)", UnsupportedFeatureError),
        ("a /*+ BROADCAST(t) */", UnsupportedFeatureError),
    ],
)
def test_more_than_one_expression_and_queries_are_refused(text: str, error: type[LakelsmError]) -> None:
    with pytest.raises(error):
        checked_request(request(text))
