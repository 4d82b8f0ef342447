"""A server checks all that a client sends, returns no more than the client needs, and ends when it is stopped."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import flight

from lakelsm.errors import CorruptTableError, InvalidInputError, LakelsmError, LookupServiceError, StorageError
from lakelsm.lookup.cache import FoundRows, LookupSpec
from lakelsm.lookup.service import query_server
from lakelsm.lookup.service.protocol import (
    MAX_KEYS,
    LookupRequest,
    TableIdentity,
    decoded_error,
    decoded_snapshot,
)
from lakelsm.lookup.service.query_server import QueryServer, ServedTable
from lakelsm.lookup.service.remote_cache import RemoteCache
from lakelsm.schema_changes import AddColumn
from tests.compact.local_table import LocalTable
from tests.lookup.scanned_cache import Opened, ScannedCache
from tests.lookup.service.whole_table import Pausing, service, started
from tests.processes import PATIENCE


@pytest.fixture
def table(tmp_path: Path) -> LocalTable:
    table = LocalTable(tmp_path / "t")
    table.write((1, "one"), (2, "two"))
    return table


def request_of(table: LocalTable) -> LookupRequest:
    return LookupRequest(table=TableIdentity.of(table.store), server=0, servers=1, schema=0, columns=("v",))


def answer_of(server: QueryServer, request: bytes, keys: pa.RecordBatch | None) -> Any:
    """Return the batches of a server's answer."""
    with flight.FlightClient(f"grpc://{server.address}") as client:
        descriptor = flight.FlightDescriptor.for_command(request)
        writer, reader = client.do_exchange(descriptor, flight.FlightCallOptions(timeout=PATIENCE))
        with writer:
            if keys is not None:
                writer.begin(keys.schema)
                writer.write_batch(keys)
            writer.done_writing()
            return list(reader)


def refusal(server: QueryServer, request: bytes, keys: pa.RecordBatch | None) -> LakelsmError:
    with pytest.raises(flight.FlightServerError) as failure:
        answer_of(server, request, keys)
    reported = decoded_error(failure.value.extra_info)
    assert reported is not None
    return reported


def ids(*values: int | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": pa.array(values, pa.int32())})


def test_an_answer_has_key_indexes_rows_and_the_snapshot(table: LocalTable) -> None:
    with service(table.store) as (server,):
        (chunk,) = answer_of(server, request_of(table).encoded(), ids(9, 2))
    assert chunk.data.to_pydict() == {"": [1], "v": ["two"]}
    assert decoded_snapshot(chunk.app_metadata.to_pybytes()) == table.latest


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        (None, "keys of the request cannot be read"),
        (pa.RecordBatch.from_pydict({"id": pa.array([1], pa.int64())}), "id int64 instead of id int32"),
        (pa.RecordBatch.from_pydict({"key": pa.array([1], pa.int32())}), "key int32"),
        (pa.RecordBatch.from_pydict({"id": pa.array([1], pa.int32()), "v": ["x"]}), "v string"),
        (ids(1, None), "NULL is not allowed"),
        (pa.RecordBatch.from_pydict({"id": pa.array(np.zeros(MAX_KEYS + 1, np.int32))}), "the maximum is 65536"),
    ],
)
def test_keys_that_do_not_fit_the_table_are_refused(table: LocalTable, keys: Any, reason: str) -> None:
    with service(table.store) as (server,):
        reported = refusal(server, request_of(table).encoded(), keys)
    assert isinstance(reported, InvalidInputError)
    assert reason in str(reported)


def test_keys_with_invalid_offsets_are_refused_before_the_offsets_are_used(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", "id STRING NOT NULL, v STRING")
    table.write(("a", "x"))
    offsets = pa.py_buffer(np.array([0, 1 << 30, 1], np.int32))
    wild = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"ab")])
    with service(table.store) as (server,):
        reported = refusal(server, request_of(table).encoded(), pa.RecordBatch.from_arrays([wild], ["id"]))
        assert isinstance(reported, InvalidInputError)
        good = pa.RecordBatch.from_pydict({"id": ["a"]})
        assert answer_of(server, request_of(table).encoded(), good)[0].data.num_rows == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"columns": ("w",)}, "schema 0 has no column 'w'"),
        ({"schema": 7}, "schema 7 does not exist"),
        ({"schema": -1}, "schema -1 does not exist"),
    ],
)
def test_columns_that_the_schema_lacks_are_refused(table: LocalTable, change: dict[str, Any], reason: str) -> None:
    with service(table.store) as (server,):
        reported = refusal(server, replace(request_of(table), **change).encoded(), ids(1))
    assert isinstance(reported, InvalidInputError)
    assert reason in str(reported)


@pytest.mark.parametrize(
    "change",
    [
        {"table": TableIdentity("/elsewhere", "0")},
        {"server": 1},
        {"servers": 2},
    ],
)
def test_a_request_for_another_server_is_refused(table: LocalTable, change: dict[str, Any]) -> None:
    with service(table.store) as (server,):
        reported = refusal(server, replace(request_of(table), **change).encoded(), ids(1))
    assert isinstance(reported, LookupServiceError)


@pytest.mark.parametrize("data", [b"", b"\x80\x04N.", b"{}", b"[]", b'{"version": 1}', b"{" * 5000, b"x" * (5 << 20)])
def test_bytes_that_are_not_a_request_are_refused(table: LocalTable, data: bytes) -> None:
    with service(table.store) as (server,):
        with pytest.raises(flight.FlightError):
            answer_of(server, data, ids(1))
        assert len(answer_of(server, request_of(table).encoded(), ids(1))) == 1


def test_an_unknown_action_is_refused(table: LocalTable) -> None:
    refused = pytest.raises(flight.FlightServerError, match="is not 'open' or 'refresh'")
    with service(table.store) as (server,), flight.FlightClient(f"grpc://{server.address}") as client, refused:
        list(client.do_action(flight.Action("stop", b"")))


class Failing(ScannedCache):
    """A cache whose lookups fail."""

    error: Exception

    def find(self, keys: pa.Table) -> FoundRows:
        raise self.error


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (CorruptTableError("Data file x is damaged"), CorruptTableError, "Data file x is damaged"),
        (KeyError("secret\nstack"), LookupServiceError, "KeyError"),
        (StorageError("GET https://store/x?sig=abc123 failed"), StorageError, "GET https"),
        (MemoryError(), LookupServiceError, "MemoryError"),
    ],
)
def test_the_client_gets_an_error_of_the_server_without_a_traceback(
    table: LocalTable, error: Exception, kind: type[Exception], text: str, caplog: pytest.LogCaptureFixture
) -> None:
    Failing.error = error
    (server,) = started(table.store, opener=Failing)
    cache = RemoteCache.open(LookupSpec(table.store, ("id",), ("v",)))
    with pytest.raises(kind, match=text) as failure:
        cache.find_key((1,))
    assert "Traceback" not in str(failure.value)
    assert str(server.address) in str(failure.value)
    server.stop()
    logged = [record for record in caplog.records if record.name == query_server.__name__]
    assert {record.levelname for record in logged} == {"WARNING"} and "abc123" not in caplog.text
    assert f"Table {table.store.name}: a request to its query service failed: " in logged[0].message


def test_a_stop_waits_for_running_lookups(table: LocalTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_server, "_GRACE", PATIENCE)
    (server,) = started(table.store, opener=Pausing)
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.extend(answer_of(server, request_of(table).encoded(), ids(1))))
    asking.start()
    assert Pausing.entered.wait(PATIENCE)
    threading.Timer(0.2, Pausing.go_on.set).start()
    assert server.stop()
    asking.join(PATIENCE)
    assert answers[0].data.num_rows == 1


def test_a_refresh_that_fails_is_logged_and_tried_again(
    table: LocalTable, recwarn: pytest.WarningsRecorder, caplog: pytest.LogCaptureFixture
) -> None:
    class FailingCache(ScannedCache):
        tries = 0
        again = threading.Event()

        def refresh(self) -> Any:
            FailingCache.tries += 1
            if FailingCache.tries == 2:
                raise CorruptTableError("snapshot-2 is damaged")
            if FailingCache.tries > 2:
                FailingCache.again.set()
            return super().refresh()

    (server,) = started(table.store, refresh=0.02, opener=FailingCache)
    assert answer_of(server, request_of(table).encoded(), ids(1))[0].data.num_rows == 1
    assert FailingCache.again.wait(PATIENCE)
    assert any("snapshot-2 is damaged" in str(warning.message) for warning in recwarn)
    assert f"Table {table.store.name}: its query service could not refresh: snapshot-2 is damaged" in caplog.messages
    server.stop()


def test_an_error_that_no_server_sent_decodes_to_none() -> None:
    for data in (None, b"", b"x", b"{}", json.dumps({"error": "ValueError", "message": "m"}).encode(), b'{"error": 1}'):
        assert decoded_error(data) is None


KEYS = pa.table({"id": pa.array([1, 2], pa.int32())})


@pytest.fixture
def wide(tmp_path: Path) -> LocalTable:
    wide = LocalTable(tmp_path / "t", "id INT NOT NULL, a INT, b INT")
    wide.write((1, 10, 100), (2, 20, 200))
    return wide


def test_a_cache_has_the_columns_requested_so_far_and_is_replaced_by_a_wider_one(wide: LocalTable) -> None:
    opened = Opened()
    served = ServedTable(wide.store, opened)
    for columns in (("a",), ("a",), ("b",), ("a", "b"), ("b", "a")):
        found, snapshot = served.find(0, columns, KEYS)
        assert found.rows.column_names == list(columns)
        assert snapshot == wide.latest
    assert [cache.spec.columns for cache in opened.caches] == [("a",), ("a", "b")]
    assert [cache.closed for cache in opened.caches] == [True, False]
    served.close()
    assert opened.caches[-1].closed
    with pytest.raises(LookupServiceError, match="has ended"):
        served.find(0, ("a",), KEYS)


def test_the_least_recently_used_schema_is_dropped_first(wide: LocalTable) -> None:
    opened = Opened()
    served = ServedTable(wide.store, opened)
    for number in range(5):
        wide.alter(AddColumn(f"c{number}", "INT"))
    for schema in (0, 1, 2, 3, 0, 4):
        served.find(schema, ("a",), KEYS)
    assert [cache.closed for cache in opened.caches] == [False, True, False, False, False]


def test_a_cache_in_use_is_closed_after_its_last_lookup(wide: LocalTable) -> None:
    entered, go_on = threading.Event(), threading.Event()

    class Slow(ScannedCache):
        def find(self, keys: pa.Table) -> object:  # type: ignore[override]
            entered.set()
            assert go_on.wait(PATIENCE)
            return super().find(keys)

    opened = Opened(Slow)
    served = ServedTable(wide.store, opened)
    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(served.find, 0, ("a",), KEYS)
        assert entered.wait(PATIENCE)
        served.snapshot(0, ("a", "b"), refreshed=False)
        served.close()
        assert not opened.caches[0].closed
        assert opened.caches[1].closed
        go_on.set()
        assert looking.result()[0].rows.num_rows == 2
    assert opened.caches[0].closed


def test_a_refresh_reaches_every_cache(wide: LocalTable) -> None:
    served = ServedTable(wide.store, Opened())
    wide.alter(AddColumn("c", "INT"))
    for schema in (0, 1):
        served.find(schema, ("a",), KEYS)
    wide.write((1, 11, 111, 1))
    served.refresh()
    for schema in (0, 1):
        assert served.snapshot(schema, ("a",), refreshed=False) == wide.latest
