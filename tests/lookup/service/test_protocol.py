"""Requests, snapshots and errors in the form in which they are sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import flight

from lakelsm.errors import CorruptTableError, InvalidInputError, LookupServiceError
from lakelsm.lookup.service.protocol import (
    LookupRequest,
    ServerConnection,
    TableIdentity,
    decoded_error,
    decoded_snapshot,
    encoded_error,
    encoded_snapshot,
)
from lakelsm.lookup.service.service_access import ClientAccess, ServerAddress
from tests.compact.local_table import LocalTable
from tests.processes import PATIENCE

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


def test_a_table_created_again_at_the_same_path_has_another_identity(tmp_path: Path) -> None:
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
    reported = decoded_error(encoded_error(CorruptTableError("x is damaged")))
    assert (type(reported), str(reported)) == (CorruptTableError, "x is damaged")


ROWS = pa.schema([("v", pa.string())])
KEYS = pa.table({"id": [1, 2, 3]})
OF_VALUES = LookupRequest(table=TableIdentity("/t", "ab"), server=0, servers=1, schema=0, columns=("v",))


class Answering(flight.FlightServerBase):  # type: ignore[misc]
    """A server that answers each lookup with the same batches."""

    def __init__(self, batches: list[pa.RecordBatch]) -> None:
        super().__init__("grpc://127.0.0.1:0")
        self.batches = batches

    def do_exchange(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        reader.read_chunk()
        if self.batches:
            writer.begin(self.batches[0].schema)
        for batch in self.batches:
            writer.write_batch(batch)


@contextmanager
def connected(*batches: pa.RecordBatch) -> Iterator[ServerConnection]:
    with Answering(list(batches)) as server:
        access = ClientAccess(timeout=PATIENCE)
        yield ServerConnection("shop.customers", ServerAddress("127.0.0.1", server.port), OF_VALUES, ROWS, access=access)


def answer(probes: list[int | None], values: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(probes, pa.int64()), pa.array(values)], names=["", "v"])


def test_batches_of_an_answer_are_joined() -> None:
    with connected(answer([0], ["a"]), answer([2], ["c"])) as connection:
        assert not connection.answered
        found = connection.find(KEYS, 3)
        assert connection.answered
        assert connection.snapshot is None
    assert (found.probes.tolist(), found.rows.to_pydict()) == ([0, 2], {"v": ["a", "c"]})


OFFSETS = pa.py_buffer(np.array([0, 1 << 30, 1], np.int32))
WILD = pa.RecordBatch.from_arrays(
    [
        pa.array([0, 1]),
        pa.Array.from_buffers(pa.string(), 2, [None, OFFSETS, pa.py_buffer(b"x")]),
    ],
    names=["", "v"],
)


@pytest.mark.parametrize(
    "batches",
    [
        (),
        (answer([0], [5]),),
        (answer([3], ["a"]),),
        (answer([-1], ["a"]),),
        (answer([1, 0], ["a", "b"]),),
        (answer([0], ["a"]), answer([0], ["b"])),
        (answer([None], ["a"]),),
        (WILD,),
    ],
)
def test_an_invalid_answer_is_an_error_of_the_server(batches: tuple[pa.RecordBatch, ...]) -> None:
    with connected(*batches) as connection, pytest.raises(LookupServiceError) as failure:
        connection.find(KEYS, 3)
    text = str(failure.value)
    assert text.startswith("Table shop.customers, bucket 3: the server of its query service at 127.0.0.1:")
