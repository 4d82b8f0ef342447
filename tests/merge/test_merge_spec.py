"""The merge rules of a table follow from its schema and options."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from lakelsm.merge.merge_spec import ColumnRule, MergeSpec, SequenceGroup
from lakelsm.options import MergeEngine, TableOptions
from lakelsm.schema.table_schema import create_schema


def spec(columns: str, options: Mapping[str, str], key: tuple[str, ...] = ("id",)) -> MergeSpec:
    schema = create_schema(columns, key, [], options)
    return MergeSpec.of(schema, TableOptions.parse(schema.options))


def functions(found: MergeSpec) -> dict[str, str | None]:
    return {rule.name: rule.function for rule in found.columns}


def test_the_spec_of_a_table_comes_from_its_schema_and_options() -> None:
    options = {"sequence.field": "b,c", "sequence.field.sort-order": "descending", "ignore-delete": "true"}
    schema = create_schema("p INT, a INT, b INT, c INT", ["a", "p"], ["p"], options)
    found = MergeSpec.of(schema, TableOptions.parse(schema.options))
    assert found == MergeSpec(("a",), sequence_columns=("b", "c"), sequence_descending=True, ignore_delete=True)
    assert found.decisive_columns == ("a", "b", "c", "_SEQUENCE_NUMBER", "_VALUE_KIND")


def test_a_sequence_field_that_is_a_key_column_decides_once() -> None:
    assert MergeSpec(("a",), sequence_columns=("a",)).decisive_columns == ("a", "_SEQUENCE_NUMBER", "_VALUE_KIND")


@pytest.mark.parametrize(
    ("engine", "keeps"),
    [("deduplicate", True), ("first-row", True), ("partial-update", False), ("aggregation", False)],
)
def test_only_engines_that_choose_a_row_keep_rows_and_need_no_rules(engine: str, keeps: bool) -> None:
    found = spec("id INT, a INT", {"merge-engine": engine})
    assert found.keeps_rows is keeps
    assert [rule.name for rule in found.columns] == ([] if keeps else ["a"])


def test_columns_of_an_aggregation_have_their_function_the_default_or_the_last_value_that_is_not_null() -> None:
    options = {"merge-engine": "aggregation", "fields.a.aggregate-function": "sum", "sequence.field": "s"}
    columns = "id INT, a INT, b INT, s INT"
    assert functions(spec(columns, options)) == {"a": "sum", "b": "last_non_null_value", "s": "last_value"}
    options["fields.default-aggregate-function"] = "max"
    assert functions(spec(columns, options)) == {"a": "sum", "b": "max", "s": "last_value"}


def test_columns_of_a_partial_update_have_a_function_only_if_one_is_named_and_sequences_have_none() -> None:
    options = {
        "merge-engine": "partial-update",
        "fields.g,h.sequence-group": "a, b",
        "fields.a.aggregate-function": "sum",
        "partial-update.remove-record-on-sequence-group": "g",
    }
    found = spec("id INT, a INT, b INT, c INT, g INT, h INT", options)
    assert functions(found) == {"a": "sum", "b": None, "c": None, "g": None, "h": None}
    assert found.groups == (SequenceGroup(("g", "h"), ("a", "b")),)
    assert found.groups[0].columns == ("a", "b", "g", "h")
    assert found.remove_on_groups == {"g"}
    options["fields.default-aggregate-function"] = "max"
    found = spec("id INT, a INT, b INT, g INT, h INT", options)
    assert functions(found) == {"a": "sum", "b": "max", "g": None, "h": None}


def test_the_options_of_a_column_are_those_of_its_rule() -> None:
    options = {
        "merge-engine": "aggregation",
        "fields.a.aggregate-function": "nested_update",
        "fields.a.ignore-retract": "true",
        "fields.a.nested-key": "k, l",
        "fields.a.nested-sequence-field": "s",
        "fields.a.nested-key-null-strategy": " IGNORE ",
        "fields.a.count-limit": "7",
        "fields.b.aggregate-function": "listagg",
        "fields.b.list-agg-delimiter": "; ",
        "fields.b.distinct": "TRUE",
        "fields.c.aggregate-function": "merge_map_with_keytime",
        "fields.c.ts-field": "at",
    }
    columns = "id INT, a ARRAY<ROW<k INT, l INT, s INT>>, b STRING NOT NULL, c MAP<INT, ROW<at STRING>>"
    a, b, c = spec(columns, options).columns
    assert a == ColumnRule(
        "a", "nested_update", ignore_retract=True, nested_key=("k", "l"), nested_sequence=("s",),
        null_strategy="ignore", count_limit=7,
    )
    assert b == ColumnRule("b", "listagg", not_null=True, delimiter="; ", distinct=True)
    assert c == ColumnRule("c", "merge_map_with_keytime", time_member="at")


@pytest.mark.parametrize("engine", ["aggregation", "partial-update"])
def test_remove_on_delete_is_read_from_the_option_of_the_engine(engine: str) -> None:
    options = {"merge-engine": engine, f"{engine}.remove-record-on-delete": "true"}
    assert spec("id INT, a INT", options).remove_on_delete
    assert not spec("id INT, a INT", {"merge-engine": engine}).remove_on_delete


@pytest.mark.parametrize("engine", list(MergeEngine))
def test_only_engines_that_combine_rows_need_to_know_that_a_table_looks_rows_up(engine: MergeEngine) -> None:
    combines = engine in (MergeEngine.AGGREGATION, MergeEngine.PARTIAL_UPDATE)
    for options in ({"changelog-producer": "lookup"}, {"force-lookup": "true"}):
        assert spec("id INT, a INT", {"merge-engine": engine.value, **options}).lookup is combines
    assert not spec("id INT, a INT", {"merge-engine": engine.value}).lookup
