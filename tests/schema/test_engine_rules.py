"""Wrong aggregate functions and sequence groups are refused when the table is created."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.merge.functions.aggregate_functions import FUNCTIONS
from lakelsm.options import TableOptions
from lakelsm.schema.engine_rules import (
    AGGREGATE_FUNCTIONS,
    check_deletable,
    check_function,
    check_merge_engine,
    has_order,
)
from lakelsm.schema.table_schema import create_schema
from lakelsm.types import parse_type

COLUMNS = (
    "id INT, i INT, s STRING, b BOOLEAN, y BYTES, a ARRAY<INT>, m MAP<STRING, INT>, "
    "r ARRAY<ROW<k INT, v INT>>, t MAP<STRING, ROW<v INT, at STRING, n INT>>"
)


def check(**options: str) -> None:
    keys = {key.replace("__", "."): value for key, value in options.items()}
    engine = {"merge-engine": "aggregation"}
    schema = create_schema(COLUMNS, ["id"], [], {**engine, **keys})
    check_merge_engine(schema, TableOptions.parse(schema.options))


@pytest.mark.parametrize("key", ["fields.i.aggregate-function", "fields.default-aggregate-function"])
@pytest.mark.parametrize("engine", ["aggregation", "partial-update"])
def test_an_unknown_function_is_refused_with_the_known_ones(engine: str, key: str) -> None:
    with pytest.raises(InvalidInputError, match=f"'{key}': 'total' is not an aggregate function. Use one of .*sum"):
        check(**{"merge-engine": engine, key: "total"})


def test_a_default_function_is_checked_on_the_columns_that_it_merges() -> None:
    with pytest.raises(InvalidInputError, match=r"column 's': .*'sum' does not support.*choose another 'fields\.s\.agg"):
        check(**{"fields.default-aggregate-function": "sum"})
    every = "i,b,y,a,m,r,t"
    sums = {"merge-engine": "partial-update", "fields.default-aggregate-function": "sum"}
    with pytest.raises(InvalidInputError, match="column 'b': aggregate function 'sum' does not support type"):
        check(**sums, **{"fields.s.sequence-group": every})
    others = {f"fields.{name}.aggregate-function": "last_value" for name in every.split(",")[1:]}
    check(**sums, **{"fields.s.sequence-group": every}, **others)
    check(**{"fields.default-aggregate-function": "last_value", "sequence.field": "s"})


@pytest.mark.parametrize("function", ["sum", "last_value", "first_value"])
def test_a_function_outside_the_sequence_groups_is_refused_as_in_paimon(function: str) -> None:
    engine = {"merge-engine": "partial-update", "fields.s.sequence-group": "b"}
    with pytest.raises(InvalidInputError, match=rf"column 'i': .*'{function}' needs a sequence group.*'fields\.i\.agg"):
        check(**engine, **{"fields.i.aggregate-function": function})
    check(**engine, **{"fields.i.aggregate-function": "last_non_null_value"})


@pytest.mark.parametrize(
    ("columns", "governed", "message"),
    [
        ("i", "s,nope", "'fields.i.sequence-group': column 'nope' does not exist. Columns: id, i, s"),
        ("i,nope", "s", "'fields.i,nope.sequence-group': column 'nope' does not exist"),
        ("i", "s, b", "column ' b' does not exist. Remove the blanks"),
        ("i", "", "column '' does not exist"),
        ("i", "id", "'id' is a primary key column. Leave it out"),
        ("id", "i", "'id' is a primary key column. Leave it out"),
        ("i", "s,b,s", "'s' is named twice. Name it once"),
    ],
)
def test_a_sequence_group_with_wrong_columns_is_refused(
    columns: str, governed: str, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        check(**{"merge-engine": "partial-update", f"fields.{columns}.sequence-group": governed})


@pytest.mark.parametrize("options", [{"fields.a.sequence-group": "s"}, {"sequence.field": "a"}], ids=str)
def test_a_sequence_without_an_order_is_refused_by_name(options: dict[str, str]) -> None:
    with pytest.raises(UnsupportedFeatureError, match="field 'a': lakelsm cannot order values of type ARRAY<INT>"):
        check(**{"merge-engine": "partial-update", **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ignore-delete": "true", "partial-update.remove-record-on-delete": "true"}, "'ignore-delete' and 'partial"),
        (
            {"fields.i.sequence-group": "s", "partial-update.remove-record-on-delete": "true"},
            "'fields.i.sequence-group' and 'partial-update.remove-record-on-delete' contradict each other. Remove one",
        ),
        (
            {"fields.i.sequence-group": "s", "partial-update.remove-record-on-sequence-group": "s"},
            "'s' is not a sequence column of a group. Choose from i",
        ),
        ({"partial-update.remove-record-on-sequence-group": "i"}, "The table has none; remove the option"),
        (
            {
                "fields.i.sequence-group": "s",
                "partial-update.remove-record-on-sequence-group": "i",
                "ignore-delete": "true",
            },
            "'ignore-delete' and 'partial-update.remove-record-on-sequence-group' contradict each other",
        ),
    ],
)
def test_options_of_deletes_that_contradict_each_other_are_named(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        check(**{"merge-engine": "partial-update", **options})


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
def test_a_column_in_two_sequence_groups_is_refused(groups: dict[str, str]) -> None:
    options = {f"fields.{columns}.sequence-group": governed for columns, governed in groups.items()}
    with pytest.raises(InvalidInputError, match="is also in the group of"):
        check(**{"merge-engine": "partial-update", **options})


def test_a_sequence_column_may_govern_itself() -> None:
    check(**{"merge-engine": "partial-update", "fields.i.sequence-group": "i,s"})


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        ({"merge-engine": "first-row"}, "Overwrite"),
        ({"merge-engine": "partial-update"}, "partial-update.remove-record-on-delete"),
        ({"merge-engine": "aggregation"}, "aggregation.remove-record-on-delete"),
        ({"ignore-delete": "true"}, "ignore-delete"),
    ],
    ids=str,
)
def test_a_delete_that_would_remove_no_row_is_refused_with_the_remedy(options: dict[str, str], remedy: str) -> None:
    with pytest.raises(InvalidInputError, match=remedy):
        check_deletable("t", TableOptions.parse(options))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
        {"merge-engine": "partial-update", "partial-update.remove-record-on-sequence-group": "g"},
        {"merge-engine": "aggregation", "aggregation.remove-record-on-delete": "true"},
    ],
    ids=str,
)
def test_a_delete_that_removes_rows_is_allowed(options: dict[str, str]) -> None:
    check_deletable("t", TableOptions.parse(options))


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


def check_column(column: str, function: str, **settings: str) -> None:
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
def test_a_function_on_an_unsupported_type_is_refused_with_both_names(column: str, function: str) -> None:
    with pytest.raises(InvalidInputError, match=f"column '{column}': .*'{function}' does not support type .* Use "):
        check_column(column, function)


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
def test_unknown_members_of_nested_rows_are_named(
    column: str, function: str, settings: dict[str, str], named: str
) -> None:
    with pytest.raises(InvalidInputError, match=named):
        check_column(column, function, **settings)


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
def test_functions_on_supported_types_are_accepted(column: str, function: str, settings: dict[str, str]) -> None:
    check_column(column, function, **settings)


@pytest.mark.parametrize(
    ("text", "ordered"), [("DECIMAL(38, 2)", True), ("BYTES", True), ("VARIANT", False), ("ROW<x INT>", False)]
)
def test_nested_types_and_variants_have_no_order(text: str, ordered: bool) -> None:
    assert has_order(parse_type(text)) is ordered
