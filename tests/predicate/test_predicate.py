"""Three-valued logic of predicates, and what they say about columns."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

from hypothesis import given

from lakelsm.predicate.parser import parse_where
from lakelsm.predicate.predicate import (
    And,
    Compare,
    Constant,
    Evaluated,
    In,
    IsNull,
    Or,
    Unknown,
    all_of,
    any_of,
    columns,
    equality_values,
    is_evaluated,
    is_exact,
    negate,
    restrict,
    unknown_part,
)
from tests.predicate.conditions import FIELDS, Condition, conditions, rows
from tests.predicate.doubled import Doubled
from tests.predicate.evaluation import evaluate


@given(conditions(), rows())
def test_evaluation_agrees_with_sql(condition: Condition, row: dict[str, Any]) -> None:
    predicate = parse_where(condition.sql, FIELDS)
    expected = condition.reference(row) is True
    found = evaluate(predicate, row)
    assert found in (None, expected)
    if is_exact(predicate):
        assert found is expected


@given(conditions(), rows())
def test_a_negation_is_true_only_if_the_condition_is_false(
    condition: Condition, row: dict[str, Any]
) -> None:
    found = evaluate(negate(parse_where(condition.sql, FIELDS)), row)
    assert found in (None, condition.reference(row) is False)


@given(conditions(), rows())
def test_a_restricted_predicate_never_loses_a_row(condition: Condition, row: dict[str, Any]) -> None:
    known = {"id", "day"}
    predicate = restrict(parse_where(condition.sql, FIELDS), known)
    assert columns(predicate) <= known
    if condition.reference(row) is True:
        assert evaluate(predicate, {name: row[name] for name in known}) is not False


@given(conditions(), rows())
def test_equality_values_include_every_matching_row(condition: Condition, row: dict[str, Any]) -> None:
    values = equality_values(parse_where(condition.sql, FIELDS), ["id", "Name"])
    if values is not None and condition.reference(row) is True:
        assert (row["id"], row["Name"]) in values


def test_equality_values_are_the_cross_product_of_the_values_of_each_column() -> None:
    predicate = parse_where("id IN (1, 2) AND (name = 'a' OR name IS NULL) AND amount > 1", FIELDS)
    assert equality_values(predicate, ["id", "Name"]) == ((1, "a"), (1, None), (2, "a"), (2, None))
    assert equality_values(predicate, ["id", "amount"]) is None
    assert equality_values(parse_where("id = 1 AND id = 2", FIELDS), ["id"]) == ()
    assert equality_values(Constant(None), ["id"]) == ()


def test_there_are_no_equality_values_above_the_limit() -> None:
    many = In("id", tuple(range(11)))
    assert equality_values(many, ["id"], limit=10) is None
    assert equality_values(And((many, In("Name", ("a", "b")))), ["id", "Name"], limit=21) is None


def test_equality_values_have_the_columns_type() -> None:
    ((value,),) = equality_values(parse_where("id = 5.00", FIELDS), ["id"]) or ()
    assert type(value) is int
    assert equality_values(parse_where("id = 5.5", FIELDS), ["id"]) == ()


def test_both_zeros_of_a_float_are_listed() -> None:
    values = equality_values(parse_where("ratio = 0", FIELDS), ["ratio"]) or ()
    assert sorted(math.copysign(1, value) for (value,) in values) == [-1, 1]


def test_a_value_of_another_python_type_is_unknown() -> None:
    assert evaluate(Compare("day", "=", date(2020, 1, 1)), {"day": "2020-01-01"}) is None
    assert evaluate(In("id", (1, 2)), {"id": "1"}) is None
    assert evaluate(Compare("id", "=", 1), {}) is None


def test_unknown_is_neither_true_nor_false_but_does_not_hide_the_rest() -> None:
    row = {"id": 1}
    no, yes = Compare("id", "=", 2), Compare("id", "=", 1)
    assert evaluate(And((Unknown(), no)), row) is False
    assert evaluate(Or((Unknown(), yes)), row) is True
    assert evaluate(And((Unknown(), yes)), row) is None
    assert evaluate(negate(Unknown()), row) is None
    assert evaluate(IsNull("id"), {"id": None}) is True


def test_equalities_of_one_column_become_one_list_at_the_first_position() -> None:
    ids = [Compare("id", "=", at) for at in (3, 1, 3)]
    name = Compare("Name", "=", "a")
    assert any_of([ids[0], IsNull("id"), ids[1], name, ids[2]]) == Or((In("id", (3, 1)), IsNull("id"), name))
    assert any_of([ids[0], ids[2]]) == ids[0]
    assert all_of([ids[0], ids[1]]) == And((ids[0], ids[1]))
    assert negate(any_of(ids)) == all_of(map(negate, ids)) == In("id", (3, 1), negated=True)


def test_evaluated_parts() -> None:
    evaluated = Evaluated(Doubled("x", 6))
    both = all_of([evaluated, Compare("y", "=", 1)])
    assert columns(both) == {"x", "y"} and is_evaluated(both) and not is_exact(both)
    assert not is_evaluated(Compare("y", "=", 1)) and unknown_part(both) is None
    assert equality_values(both, ["y"]) == ((1,),) and equality_values(both, ["x"]) is None
    assert isinstance(negate(evaluated), Unknown)
    assert restrict(both, ["x"]) == all_of([evaluated, Unknown("other column")])
    assert restrict(evaluated, ["y"]) == Unknown("other column")
