"""What a server answers is looked at before it is believed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import flight

from lakelsm.errors import LookupServiceError
from lakelsm.lookup.service.lookup_request import LookupRequest, TableIdentity
from lakelsm.lookup.service.server_connection import ServerConnection
from lakelsm.lookup.service.service_access import ClientAccess
from lakelsm.lookup.service.service_addresses import ServerAddress
from tests.processes import PATIENCE

ROWS = pa.schema([("v", pa.string())])
KEYS = pa.table({"id": [1, 2, 3]})
REQUEST = LookupRequest(table=TableIdentity("/t", "ab"), server=0, servers=1, schema=0, columns=("v",))


class Answering(flight.FlightServerBase):  # type: ignore[misc]
    """Answers each lookup with the same batches."""

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
        yield ServerConnection("shop.customers", ServerAddress("127.0.0.1", server.port), REQUEST, ROWS, access=access)


def answer(places: list[int | None], values: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(places, pa.int64()), pa.array(values)], names=["", "v"])


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
def test_an_answer_that_cannot_be_one_is_the_servers_fault(batches: tuple[pa.RecordBatch, ...]) -> None:
    with connected(*batches) as connection, pytest.raises(LookupServiceError) as failure:
        connection.find(KEYS, 3)
    text = str(failure.value)
    assert text.startswith("Table shop.customers, bucket 3: the server of its query service at 127.0.0.1:")
