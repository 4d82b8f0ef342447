"""Any content of a JSON file is parsed to an object or raises a typed error."""

from __future__ import annotations

import json

import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.json_document import parse_object, parse_texts


def deep(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "5",
        "{",
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1e999}',
        '{"a": [' + "9" * 5000 + "]}",
        '{"a": [{"b": ' + str(1 << 63) + "}]}",
        '{"a": 1e30}',
        deep(257),
        deep(100_000),
        '{"a":' + "[" * 100_000,
        '{"a": "\\ud800"}',
        '{"a": {"\\udfff": 1}}',
        b'{"a": "\xff"}',
        b"\0\0\0",
    ],
    ids=lambda text: str(text)[:20],
)
def test_invalid_json_is_refused_with_the_name_of_the_file(text: str | bytes) -> None:
    with pytest.raises(CorruptTableError, match=r"^/t/snapshot-1 is damaged: (it is not|it has more|[ab?] is .*, which)"):
        parse_object(text, "/t/snapshot-1")


def test_an_object_is_parsed_up_to_the_limits() -> None:
    document = {"a": [(1 << 63) - 1, -(1 << 63), 0.5, None, True], "ü": {"b": "\U0001f600"}}
    assert parse_object(json.dumps(document), "x") == document
    assert parse_object(deep(200), "x")["a"]["a"]


def test_a_list_of_texts_is_parsed() -> None:
    assert parse_texts('["a", "\\u00e9"]', "the file") == ["a", "é"]


@pytest.mark.parametrize("text", ["", "{}", '"a"', "[1]", "[null]", '[["a"]]', '["\\ud800"]', "[" * 5000])
def test_other_json_than_a_list_of_texts_is_refused(text: str) -> None:
    with pytest.raises(CorruptTableError, match="the file"):
        parse_texts(text, "the file")
