"""JoinColumns: the key and the added columns of a lookup join, as arguments name them."""

from __future__ import annotations

from typing import Any

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.lookup.join.join_columns import JoinColumns
from lakelsm.schema.table_schema import create_schema

_SCHEMA = create_schema("id INT NOT NULL, name STRING, tier STRING", ["id"], [], {"bucket": "1"}, None, 0)


def named(on: Any, columns: Any = None) -> tuple[dict[str, str], dict[str, str]]:
    found = JoinColumns.of(_SCHEMA, on, columns)
    return {fact: key.name for fact, key in found.keys.items()}, {name: own.name for name, own in found.added.items()}


@pytest.mark.parametrize("on", ["id", ["id"], {"id": "id"}, {"id": "ID"}])
def test_a_key_is_named_by_itself_in_a_list_or_by_the_facts_column(on: object) -> None:
    assert named(on) == ({"id": "id"}, {"name": "name", "tier": "tier"})


def test_fact_columns_may_have_names_of_their_own() -> None:
    assert named({"customer": "id"}, ["tier"]) == ({"customer": "id"}, {"tier": "tier"})


def test_added_columns_may_be_renamed_and_the_key_may_be_among_them() -> None:
    assert named("id", {"NAME": "customer_name", "id": "found"})[1] == {"customer_name": "name", "found": "id"}


@pytest.mark.parametrize(
    ("on", "columns", "text"),
    [
        ({}, None, "on is {}"),
        ([], None, r"on is \[\]"),
        (5, None, "on is 5"),
        ({"a": "id", "b": "id"}, None, "each of the table's columns once"),
        ("nothing", None, "no column 'nothing'; the columns are id, name, tier"),
        ("id", [], r"columns is \[\]"),
        ("id", "name", "a list: write"),
        ("id", ["name", "name"], "each once"),
        ("id", ["name", "NAME"], "each name once"),
        ("id", {"name": "a", "tier": "A"}, "each name once"),
        ("id", ["nothing"], "no column 'nothing'"),
        (["id", "name", "tier"], None, "name one, such as columns={'id': 'found'}"),
    ],
)
def test_wrong_arguments_are_refused_by_name(on: Any, columns: Any, text: str) -> None:
    with pytest.raises(InvalidInputError, match=text):
        JoinColumns.of(_SCHEMA, on, columns)
