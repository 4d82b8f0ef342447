"""Requests, snapshots and errors as they travel."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError, InvalidInputError
from lakelsm.lookup.service.lookup_request import (
    LookupRequest,
    TableIdentity,
    decoded_error,
    decoded_snapshot,
    encoded_error,
    encoded_snapshot,
)
from tests.compact.local_table import LocalTable

REQUEST = LookupRequest(table=TableIdentity("/t", "ab"), server=1, servers=3, schema=2, columns=("ä", "b.c"))


def test_a_request_arrives_as_it_was_sent() -> None:
    assert LookupRequest.decoded(REQUEST.encoded()) == REQUEST
    assert LookupRequest.decoded(replace(REQUEST, columns=()).encoded()).columns == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"version": 1', b'"version": 2'),
        (b'"server": 1', b'"server": true'),
        (b'"server": 1', b'"server": "1"'),
        (b'"schema": 2', b'"schema": null'),
        (b'"columns": [', b'"columns": [1, '),
        (b'"columns": [', b'"columns": ["b.c", '),
        (b'"path": "/t"', b'"path": 5'),
    ],
)
def test_a_request_with_a_part_of_another_kind_is_refused(old: bytes, new: bytes) -> None:
    data = REQUEST.encoded()
    assert old in data
    with pytest.raises(InvalidInputError):
        LookupRequest.decoded(data.replace(old, new))


def test_a_table_made_anew_in_the_place_of_another_is_another_one(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    before = TableIdentity.of(table.store)
    assert TableIdentity.of(table.store) == before
    (table.root / "schema" / "schema-0").unlink()
    (table.root / "schema").rmdir()
    assert TableIdentity.of(LocalTable(tmp_path / "t", "id INT NOT NULL, w INT").store) != before


def test_a_table_without_its_first_schema_is_damaged(tmp_path: Path) -> None:
    store = LocalTable(tmp_path / "t").store
    (tmp_path / "t" / "schema" / "schema-0").unlink()
    with pytest.raises(CorruptTableError, match="schema-0 is missing"):
        TableIdentity.of(store)


def test_snapshots_and_errors_arrive_as_they_were_sent(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    table.write((1, "x"))
    assert decoded_snapshot(encoded_snapshot(table.latest)) == table.latest
    assert decoded_snapshot(encoded_snapshot(None)) is None
    told = decoded_error(encoded_error(CorruptTableError("x is damaged")))
    assert (type(told), str(told)) == (CorruptTableError, "x is damaged")
