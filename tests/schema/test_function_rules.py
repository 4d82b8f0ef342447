"""Which aggregate function takes which column."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.merge.functions.aggregate_functions import FUNCTIONS
from lakelsm.schema.function_rules import AGGREGATE_FUNCTIONS, check_function, has_order
from lakelsm.types import parse_type

TYPES = {
    "i": "INT",
    "s": "STRING",
    "c": "VARCHAR(10)",
    "b": "BOOLEAN",
    "y": "BYTES",
    "a": "ARRAY<INT>",
    "m": "MAP<STRING, INT>",
    "r": "ARRAY<ROW<k INT, v INT>>",
    "t": "MAP<STRING, ROW<v INT, at STRING, n INT>>",
    "o": "MAP<STRING, ROW<v STRING>>",
}


def check(column: str, function: str, **settings: str) -> None:
    named = {key.replace("_", "-"): value for key, value in settings.items()}
    check_function(column, parse_type(TYPES[column]), function, named)


def test_every_function_is_known_to_the_rules_and_to_the_merge() -> None:
    assert sorted(AGGREGATE_FUNCTIONS) == sorted(FUNCTIONS)


@pytest.mark.parametrize(
    ("column", "function"),
    [
        ("s", "sum"),
        ("b", "product"),
        ("i", "bool_and"),
        ("s", "bool_or"),
        ("i", "listagg"),
        ("m", "collect"),
        ("a", "merge_map"),
        ("m", "merge_map_with_keytime"),
        ("a", "nested_update"),
        ("a", "max"),
        ("m", "min"),
        ("s", "rbm32"),
        ("i", "rbm64"),
        ("s", "theta_sketch"),
        ("i", "hll_sketch"),
        ("c", "listagg"),
        ("o", "merge_map_with_keytime"),
        ("a", "nested_partial_update"),
    ],
)
def test_a_function_on_a_type_that_it_cannot_take_is_refused_naming_both(column: str, function: str) -> None:
    with pytest.raises(InvalidInputError, match=f"'{function}' cannot take column '{column}' of type .*; make it "):
        check(column, function)


@pytest.mark.parametrize(
    ("column", "function", "settings", "named"),
    [
        ("r", "nested_partial_update", {}, "nested-key"),
        ("r", "nested_update", {"nested_key": "x"}, "'x'"),
        ("r", "nested_update", {"nested_key": "k", "nested_sequence_field": "x"}, "'x'"),
        ("r", "nested_update", {"nested_sequence_field": "v"}, "nested-sequence-field"),
        ("r", "nested_update", {"nested_key_null_strategy": "ignore"}, "nested-key-null-strategy"),
        ("t", "merge_map_with_keytime", {"ts_field": "x"}, "'x'"),
        ("t", "merge_map_with_keytime", {}, "'n'"),
    ],
)
def test_members_that_a_function_lacks_are_named(
    column: str, function: str, settings: dict[str, str], named: str
) -> None:
    with pytest.raises(InvalidInputError, match=named):
        check(column, function, **settings)


@pytest.mark.parametrize(
    ("column", "function", "settings"),
    [
        ("i", "sum", {}),
        ("a", "last_value", {}),
        ("s", "listagg", {}),
        ("y", "rbm32", {}),
        ("y", "rbm64", {}),
        ("a", "collect", {}),
        ("r", "nested_update", {"nested_key": "k", "nested_sequence_field": "v"}),
        ("t", "merge_map_with_keytime", {"ts_field": "at"}),
    ],
)
def test_functions_on_their_types_pass(column: str, function: str, settings: dict[str, str]) -> None:
    check(column, function, **settings)


@pytest.mark.parametrize(
    ("text", "ordered"), [("DECIMAL(38, 2)", True), ("BYTES", True), ("VARIANT", False), ("ROW<x INT>", False)]
)
def test_nested_types_and_variants_have_no_order(text: str, ordered: bool) -> None:
    assert has_order(parse_type(text)) is ordered
