"""Decoded fields have the expected types; otherwise the error names the damaged manifests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lakelsm.errors import CorruptTableError
from lakelsm.format.avro.container import read_container, write_container
from lakelsm.format.avro.lanes import decode_columns
from lakelsm.format.manifest.decoded_fields import DecodedFields

_FIELDS: list[tuple[str, Any]] = [
    ("n", "long"),
    ("b", "bytes"),
    ("on", ["null", "long"]),
    ("ot", ["null", "string"]),
    ("ls", ["null", {"type": "array", "items": "string"}]),
    ("ln", ["null", {"type": "array", "items": ["null", "long"]}]),
]
_RECORDS: list[dict[str, Any]] = [
    {"n": 1, "b": b"x", "on": None, "ot": "a", "ls": ["p", "q"], "ln": [1, None]},
    {"n": 2, "b": b"", "on": 7, "ot": None, "ls": None, "ln": []},
    {"n": 3, "b": b"yz", "on": 8, "ot": "c", "ls": [], "ln": None},
]


@pytest.fixture(scope="module")
def fields() -> DecodedFields:
    schema = {"type": "record", "name": "r", "fields": [{"name": name, "type": kind} for name, kind in _FIELDS]}
    container = read_container(write_container(schema, _RECORDS, "null"), "manifest-1")
    return DecodedFields(decode_columns([container], {name for name, _ in _FIELDS}), "manifest-1")


def test_rows_are_decoded_in_any_order(fields: DecodedFields) -> None:
    rows = np.array([2, 0, 1, 2])
    wanted = {name: [_RECORDS[row][name] for row in rows] for name, _ in _FIELDS}
    assert fields.longs("n")[rows].tolist() == wanted["n"]
    assert fields.slices("b", rows) == fields.binary("b", rows).to_pylist() == wanted["b"]
    assert fields.optional_longs("on", rows) == fields.optional_numbers("on", rows).to_pylist() == wanted["on"]
    assert fields.longs_or_minus_one("on", rows).tolist() == [-1 if value is None else value for value in wanted["on"]]
    assert fields.optional_texts("ot", rows) == fields.optional_text("ot", rows).to_pylist() == wanted["ot"]
    assert fields.text_tuples("ls", rows) == [None if names is None else tuple(names) for names in wanted["ls"]]
    assert fields.long_tuples("ln", rows) == [None if found is None else tuple(found) for found in wanted["ln"]]


def test_a_field_that_is_missing_or_of_another_type_is_damage(fields: DecodedFields) -> None:
    rows = np.array([0])
    assert fields.optional_longs("none", rows) == fields.optional_bytes("none", rows) == [None]
    for read in (
        lambda: fields.longs("none"),
        lambda: fields.longs("on"),
        lambda: fields.slices("n", rows),
        lambda: fields.optional_longs("ot", rows),
        lambda: fields.long_tuples("ls", rows),
        lambda: fields.text_tuples("ln", rows),
    ):
        with pytest.raises(CorruptTableError, match=r"manifest-1 is not a manifest: field .* is missing or wrong"):
            read()
