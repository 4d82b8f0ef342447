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
    text = plan.text()
    assert f" {join} JOIN " in text
    assert plan.finds_known == ("lakelsm_merge_known_" in text) == finds_known
    assert [each.number for each in plan.clauses] == list(range(1, len(clauses) + 1))
    assert list(plan.old) == (["k", "v"] if {"d", "s"} & {*clauses} else ["k"])
    assert plan.pairs == ({} if "s" in clauses else {"k": "k"})


@pytest.mark.parametrize(
    ("clauses", "unique", "counts"),
    [("ui", "k", False), ("ui", "", True), ("ui", "V", True), ("o", "k", True), ("s", "", False), ("d", "k", False)],
)
def test_rows_of_unique_sources_are_not_counted(
    local: TableEngine, tmp_path: Path, clauses: str, unique: str, counts: bool
) -> None:
    store = local.create(tmp_path, "k INT, v STRING", ["k"])._store()
    rules = tuple(CLAUSES[each] for each in clauses)
    request = MergeRequest("t.k = s.k", rules, "t", "s", equal={"k": "k"}, is_equality=True)
    text = plan_merge(store, request, {"k": parse_type("INT"), "V": parse_type("STRING")}).text(unique)
    assert (" OVER (" in text) == counts


def test_clauses_share_the_columns_that_they_copy(local: TableEngine, tmp_path: Path) -> None:
    store = local.create(tmp_path, "k INT, v STRING", ["k"])._store()
    rules = (MergeRule(MATCHED, None, UPDATE, {"v": "`s`.v "}), MergeRule(MATCHED, None, UPDATE, {"v": "v"}))
    rules += (MergeRule(NOT_MATCHED, None, INSERT, {"k": "K", "v": "S.`v` || ''"}),)
    request = MergeRequest("t.k = s.k", rules[:1] + rules[2:], "t", "s")
    update, insert = plan_merge(store, request, {"k": parse_type("INT"), "v": parse_type("STRING")}).clauses
    assert (update.copied, insert.copied) == ({"v": 1}, {"k": 0})
    request = MergeRequest("t.k = s.k", rules[1:2], "t", "s")  # v is ambiguous, and the query says so.
    assert plan_merge(store, request, {"k": parse_type("INT"), "v": parse_type("STRING")}).clauses[0].copied == {}
