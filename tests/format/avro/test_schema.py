"""Schemas that would exhaust or crash a decoder are refused before any data is decoded."""

from __future__ import annotations

from typing import Any

import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.format.avro.container import read_container, read_records
from lakelsm.format.avro.schema import check_decodable
from lakelsm.format.manifest.avro_schemas import INDEX_MANIFEST_SCHEMA, MANIFEST_LIST_SCHEMA, MANIFEST_SCHEMA
from tests.format.avro.avro_files import container, record


def doubling(levels: int) -> dict[str, Any]:
    """Return a schema in which each type has two members of the one before: 2 ** levels fields."""
    inner: Any = "long"
    for level in range(levels):
        name = f"n{level}"
        inner = record(name, inner, f"n{level - 1}" if level else "long")
    return inner  # type: ignore[no-any-return]


def nested(depth: int) -> Any:
    inner: Any = "long"
    for _ in range(depth):
        inner = {"type": "array", "items": inner}
    return inner


HOSTILE_SCHEMAS: dict[str, tuple[Any, str]] = {
    "contains itself": (record("r", ["null", "r"]), "a type r that contains itself"),
    "by way of another": (
        record("r", record("a", ["null", {"type": "array", "items": "x.r"}])),
        "a type r that contains itself",
    ),
    "array of null": (record("r", {"type": "array", "items": "null"}), "an array of values without bytes"),
    "map of empty records": (record("r", {"type": "map", "values": record("e")}), "an map of values without bytes"),
    "array of fixed(0)": (
        record("r", {"type": "array", "items": {"type": "fixed", "name": "z", "size": 0}}),
        "an array of values without bytes",
    ),
    "doubling": (doubling(18), "more than 5000 fields"),
    "deep": (record("r", nested(500)), "nested too deeply|recursion"),
    "many fields": (record("r", *["long"] * 20_000), "more than 5000 fields"),
    "unknown name": (record("r", "nothing"), "does not define the type nothing"),
    "no type": (record("r", 5), "has 5 instead of a type"),
    "no schema": ([], ""),
    "a number": (7, "has 7 instead of a type"),
}


@pytest.mark.parametrize("name", HOSTILE_SCHEMAS)
def test_a_schema_that_would_exhaust_the_decoder_is_refused(name: str) -> None:
    schema, fault = HOSTILE_SCHEMAS[name]
    with pytest.raises(CorruptTableError, match=f"m is not a readable Avro file: .*({fault})"):
        read_records(read_container(container([(1, b"\2" * 2000)], schema=schema), "m"))


def test_a_second_use_of_a_named_type_is_not_a_recursion() -> None:
    schema = record("r", record("stats", "long"), "stats")
    assert read_records(read_container(container([(1, b"\2\4")], schema=schema), "m")) == [
        {"f0": {"f0": 1}, "f1": {"f0": 2}}
    ]


@pytest.mark.parametrize(
    ("bound", "within", "beyond", "fault"),
    [
        ("depth", record("r", nested(23)), record("r", nested(24)), "nested too deeply"),
        ("nodes", record("r", *["long"] * 4_999), record("r", *["long"] * 5_000), "more than 5000 fields"),
        (
            "a type's nodes wherever it is named again",
            record("r", record("a", *["long"] * 2_498), "a"),
            record("r", record("a", *["long"] * 2_499), "a"),
            "more than 5000 fields",
        ),
        (
            "bytes of an item",
            record("r", {"type": "array", "items": {"type": "fixed", "name": "z", "size": 1}}),
            record("r", {"type": "array", "items": {"type": "fixed", "name": "z", "size": 0}}),
            "an array of values without bytes",
        ),
        (
            "bytes of a named item",
            record("r", record("a", "null", "int"), {"type": "map", "values": "a"}),
            record("r", record("a", "null", "null"), {"type": "map", "values": "a"}),
            "an map of values without bytes",
        ),
    ],
)
def test_each_bound_accepts_its_last_value(bound: str, within: Any, beyond: Any, fault: str) -> None:
    check_decodable(within)
    with pytest.raises(ValueError, match=fault):
        check_decodable(beyond)


@pytest.mark.parametrize("schema", [MANIFEST_SCHEMA, MANIFEST_LIST_SCHEMA, INDEX_MANIFEST_SCHEMA])
def test_the_schemas_of_manifests_are_decodable(schema: Any) -> None:
    check_decodable(schema)
