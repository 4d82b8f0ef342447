"""Options of single columns: the parts of their keys, and their values."""

from __future__ import annotations

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.options import TableOptions
from lakelsm.options.field_options import FIELD_OPTIONS, parse_field_options, split_field_key


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("fields.a.distinct", ("a", "distinct")),
        ("fields.a,b.sequence-group", ("a,b", "sequence-group")),
        ("fields.r.m.aggregate-function", ("r", "m.aggregate-function")),
        ("fields.a.map.storage-layout", ("a", "map.storage-layout")),
        ("fields.a", ("a", "")),
        ("fields.default-aggregate-function", None),
        ("field.a.distinct", None),
        ("bucket", None),
    ],
)
def test_a_key_is_split_at_the_first_dot_after_the_columns(key: str, expected: tuple[str, str] | None) -> None:
    assert split_field_key(key) == expected


def test_column_options_are_grouped_by_column() -> None:
    options = TableOptions.parse({"fields.a,b.sequence-group": "c", "fields.c.stats-mode": "none"})
    assert options.field_options == {"a,b": {"sequence-group": "c"}, "c": {"stats-mode": "none"}}


def test_options_of_a_column_are_grouped_as_texts_without_the_default_function() -> None:
    raw = {
        "fields.a.count-limit": " 7",
        "fields.a.distinct": "TRUE",
        "fields.default-aggregate-function": "sum",
        "bucket": "1",
    }
    assert parse_field_options(raw) == ({"a": {"count-limit": " 7", "distinct": "TRUE"}}, "sum")
    assert parse_field_options({}) == ({}, None)


def test_an_unknown_column_option_is_ignored_because_creation_refuses_it() -> None:
    assert parse_field_options({"fields.a.nope": "1", "fields.r.m.distinct": "x"}) == ({}, None)


def test_an_option_that_names_no_column_is_refused_with_the_form() -> None:
    with pytest.raises(InvalidInputError, match=r"names no column\. Write fields\.<column>\.<option>"):
        parse_field_options({"fields..distinct": "true"})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ignore-retract", "maybe"),
        ("count-limit", "1.5"),
        ("nested-key-null-strategy", "drop"),
        ("map.storage-layout", "columns"),
        ("stats-mode", "half"),
    ],
)
def test_a_text_of_the_wrong_kind_is_refused_naming_the_whole_key(name: str, text: str) -> None:
    assert name in FIELD_OPTIONS
    with pytest.raises(InvalidInputError, match=rf"option 'fields\.a\.{name}': '{text}' is not "):
        parse_field_options({f"fields.a.{name}": text})
