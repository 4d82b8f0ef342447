"""The query of a merge: the join that its clauses need, and whether it must look for keys of inserted rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakelsm.plan.merge_plan import plan_merge
from lakelsm.plan.merge_request import (
    DELETE,
    INSERT,
    MATCHED,
    NOT_MATCHED,
    NOT_MATCHED_BY_SOURCE,
    UPDATE,
    MergeRequest,
    MergeRule,
)
from lakelsm.types import parse_type
from tests.engines import TableEngine

CLAUSES = {
    "u": MergeRule(MATCHED, None, UPDATE, {"V": "'x'"}),
    "d": MergeRule(MATCHED, None, DELETE),
    "i": MergeRule(NOT_MATCHED, None, INSERT),
    "o": MergeRule(NOT_MATCHED, None, INSERT, {"k": "k + 1"}),
    "s": MergeRule(NOT_MATCHED_BY_SOURCE, None, DELETE),
}


@pytest.mark.parametrize(
    ("clauses", "join", "compares_key", "finds_known"),
    [
        ("u", "INNER", False, False),
        ("us", "LEFT", False, False),
        ("ui", "RIGHT", True, False),
        ("ui", "RIGHT", False, True),
        ("o", "RIGHT", True, True),
        ("dis", "FULL", True, False),
    ],
)
def test_the_join_and_the_search_for_known_keys(
    local: TableEngine, tmp_path: Path, clauses: str, join: str, compares_key: bool, finds_known: bool
) -> None:
    store = local.create(tmp_path, "k INT, v STRING", ["k"])._store()
    rules = tuple(CLAUSES[each] for each in clauses)
    request = MergeRequest("t.k = s.k", rules, "t", "s", equal={"k": "k"}, is_equality=compares_key)
    plan = plan_merge(store, request, {"k": parse_type("INT"), "V": parse_type("STRING")})
    assert f" {join} JOIN " in plan.text
    assert plan.finds_known == ("lakelsm_merge_known_" in plan.text) == finds_known
    assert [each.number for each in plan.clauses] == list(range(1, len(clauses) + 1))
    assert list(plan.old) == (["k", "v"] if {"d", "s"} & {*clauses} else ["k"])
    assert plan.pairs == ({} if "s" in clauses else {"k": "k"})
