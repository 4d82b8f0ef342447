"""The names of the columns of a merge's query."""

from __future__ import annotations

from lakelsm.plan.merge_request import DELETE, MATCHED, UPDATE, MergeRule, PlannedClause, quoted


def test_each_value_of_a_clause_has_a_column() -> None:
    values = {"v": "1", "n": "s.n"}
    clause = PlannedClause(2, MergeRule(MATCHED, "a > 0", UPDATE, values), values, same={"id": "`s`.`id`"})
    assert [clause.column(name) for name in values] == ["_KEY__MERGE_V2_0", "_KEY__MERGE_V2_1"]
    assert list(clause.texts()) == ["a > 0", "1", "s.n", "`s`.`id`"]
    assert list(PlannedClause(1, MergeRule(MATCHED, None, DELETE), {}).texts()) == []


def test_names_are_quoted() -> None:
    assert quoted("a`b") == "`a``b`"
