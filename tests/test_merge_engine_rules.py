"""Functions and sequence groups that cannot work are refused when the table is created."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.merge_engine_rules import check_merge_engine
from lakelsm.options import TableOptions
from lakelsm.schema import create_schema

COLUMNS = (
    "id INT, i INT, s STRING, b BOOLEAN, y BYTES, a ARRAY<INT>, m MAP<STRING, INT>, "
    "r ARRAY<ROW<k INT, v INT>>, t MAP<STRING, ROW<v INT, at STRING, n INT>>"
)


def check(**options: str) -> None:
    keys = {key.replace("__", "."): value for key, value in options.items()}
    engine = {"merge-engine": "aggregation"}
    schema = create_schema(COLUMNS, ["id"], [], {**engine, **keys})
    check_merge_engine(schema, TableOptions.parse(schema.options))


def check_function(column: str, function: str, **settings: str) -> None:
    named = {f"fields.{column}.{key.replace('_', '-')}": value for key, value in settings.items()}
    check(**{f"fields.{column}.aggregate-function": function, **named})


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
    ],
)
def test_a_function_on_a_type_that_it_cannot_take_is_refused_naming_both(column: str, function: str) -> None:
    with pytest.raises(InvalidInputError, match=f"'{function}' cannot take column '{column}'"):
        check_function(column, function)


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
        check_function(column, function, **settings)


@pytest.mark.parametrize(
    ("column", "function", "settings"),
    [
        ("i", "sum", {}),
        ("s", "listagg", {}),
        ("y", "rbm32", {}),
        ("y", "rbm64", {}),
        ("a", "collect", {}),
        ("r", "nested_update", {"nested_key": "k", "nested_sequence_field": "v"}),
        ("t", "merge_map_with_keytime", {"ts_field": "at"}),
    ],
)
def test_functions_on_their_types_pass(column: str, function: str, settings: dict[str, str]) -> None:
    check_function(column, function, **settings)


@pytest.mark.parametrize(
    "groups",
    [
        {"i": "s", "b": "s"},
        {"i": "s", "b": "i"},
        {"i,b": "s", "b": "y"},
        {"b": "i", "i": "s"},
    ],
    ids=str,
)
def test_a_column_is_in_one_sequence_group_only(groups: dict[str, str]) -> None:
    options = {f"fields.{columns}.sequence-group": governed for columns, governed in groups.items()}
    with pytest.raises(InvalidInputError, match="another group"):
        check(**{"merge-engine": "partial-update", **options})


def test_a_sequence_column_may_govern_itself() -> None:
    check(**{"merge-engine": "partial-update", "fields.i.sequence-group": "i,s"})
