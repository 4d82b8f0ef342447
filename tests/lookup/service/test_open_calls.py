"""A server has a bounded number of calls, and no call waits for its client forever."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import flight

from lakelsm.environment import Environment
from lakelsm.errors import LookupServiceError
from lakelsm.lookup.service.open_calls import OpenCalls, close_connections
from lakelsm.lookup.service.protocol import decoded_error
from lakelsm.lookup.service.query_server import QueryServer
from lakelsm.lookup.service.remote_cache import RemoteCache
from lakelsm.lookup.service.service_access import ServerAccess
from lakelsm.options import TableOptions
from tests.compact.local_table import LocalTable
from tests.lookup.service.test_query_server import answer_of, ids, request_of
from tests.lookup.service.test_remote_cache import spec_of
from tests.lookup.service.test_servers import until
from tests.lookup.service.whole_table import service

EXCHANGE = SimpleNamespace(method=flight.FlightMethod.DO_EXCHANGE)
IDLE = {"lakelsm.lookup-service.idle-timeout": "2 s"}


def calls_of(now: list[float], **options: str) -> OpenCalls:
    return OpenCalls("db.t", ServerAccess(), TableOptions.parse(options), Environment(monotonic=lambda: now[0]))


@contextmanager
def connected(count: int, host: str) -> Iterator[tuple[int, list[socket.socket]]]:
    """Yield the port of a listening socket of this process, and its clients."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    dual = family is socket.AF_INET6
    with socket.create_server((host, 0), family=family, dualstack_ipv6=dual) as listening:
        port = listening.getsockname()[1]
        clients = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(count)]
        accepted = [listening.accept()[0] for _ in clients]
        try:
            yield port, clients
        finally:
            for connection in (*clients, *accepted):
                connection.close()


def is_closed(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False


def peer_of(client: socket.socket) -> str:
    return f"ipv4:127.0.0.1:{client.getsockname()[1]}"


@pytest.mark.parametrize("host", ["127.0.0.1", "::"])
def test_the_connections_of_calls_that_wait_too_long_are_closed_and_no_others(host: str) -> None:
    now = [0.0]
    calls = calls_of(now, **{"lakelsm.lookup-service.idle-timeout": "5 s"})
    with connected(3, host) as (port, clients):
        late, working, idle = (calls.start_call(EXCHANGE, {}) for _ in clients)
        for call, client in zip((late, working), clients):
            call.handled(peer_of(client))
        now[0] = 1.0
        with late.waiting():
            now[0] = 5.5
            idle.call_completed(None)
            assert calls.close_overdue(port) == 0
            now[0] = 6.5
            assert calls.close_overdue(port) == 1
        assert [is_closed(client) for client in clients] == [True, False, False]
        late.call_completed(None)
        assert len(calls) == 1 and calls.close_overdue(port) == 0


def test_a_call_may_wait_for_a_second_while_the_server_is_full() -> None:
    now = [0.0]
    calls = calls_of(now, **{"lakelsm.lookup-service.max-calls": "2"})
    with connected(2, "127.0.0.1") as (port, clients):
        first, second = (calls.start_call(EXCHANGE, {}) for _ in clients)
        first.handled(peer_of(clients[0]))
        now[0] = 1.5
        assert calls.close_overdue(port) == 1
        assert [is_closed(client) for client in clients] == [False, True]
        second.call_completed(None)
        with first.waiting():
            now[0] = 3.0
            assert calls.close_overdue(port) == 0


def test_for_a_call_without_a_message_the_connections_without_another_call_are_closed() -> None:
    now = [0.0]
    calls = calls_of(now)
    with connected(3, "127.0.0.1") as (port, clients), connected(1, "127.0.0.1") as (_, others):
        calls.start_call(EXCHANGE, {}).handled(peer_of(clients[1]))
        calls.start_call(EXCHANGE, {})
        now[0] = calls.idle_seconds + 1
        assert calls.close_overdue(port) == 2
        assert [is_closed(client) for client in clients] == [True, False, True]
        assert close_connections(port) >= 1
        assert is_closed(clients[1]) and not is_closed(others[0])


@pytest.mark.filterwarnings("error:.*closed 1 connections:UserWarning")
@pytest.mark.parametrize("command", [True, False], ids=["command", "schema"])
def test_silent_calls_end_after_the_timeout_and_others_are_answered(tmp_path: Path, command: bool) -> None:
    table = LocalTable(tmp_path / "t", **IDLE)
    table.write((1, "one"))
    with service(table.store) as (server,), flight.FlightClient(f"grpc://{server.address}") as client:
        request = request_of(table).encoded()
        open_ = [client.do_exchange(flight.FlightDescriptor.for_command(request)) for _ in range(30)]
        if not command:
            for writer, _ in open_:
                writer.begin(ids(1).schema)
        until(lambda: server._calls.started == 30)
        assert answer_of(server, request, ids(1))[0].data.num_rows == 1
        until(lambda: len(server._calls) == 0)
        assert answer_of(server, request, ids(1))[0].data.num_rows == 1


def test_the_call_of_a_client_that_reads_no_rows_ends(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", **IDLE)
    table.write((1, "x" * (32 << 20)), (2, "two"))
    warned = pytest.warns(UserWarning, match="closed 1 connections: their clients sent no keys or read no rows for 2 s")
    with warned, service(table.store) as (server,), flight.FlightClient(f"grpc://{server.address}") as client:
        request = request_of(table).encoded()
        writer, _reader = client.do_exchange(flight.FlightDescriptor.for_command(request))
        writer.begin(ids(1).schema)
        writer.write_batch(ids(1))
        until(lambda: server._calls.started == 1 and len(server._calls) == 0)
        assert answer_of(server, request, ids(2))[0].data.num_rows == 1


def test_calls_beyond_the_limit_are_refused_and_admitted_when_there_is_room(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", **{"lakelsm.lookup-service.max-calls": "2"})
    table.write((1, "one"))
    with service(table.store) as (server,), flight.FlightClient(f"grpc://{server.address}") as client:
        cache = RemoteCache.open(spec_of(table))
        request = request_of(table).encoded()
        calls = [client.do_exchange(flight.FlightDescriptor.for_command(request)) for _ in range(2)]
        until(lambda: len(server._calls) == 2)
        with pytest.raises(flight.FlightUnavailableError) as failure:
            answer_of(server, request, ids(1))
        assert isinstance(decoded_error(failure.value.extra_info), LookupServiceError)
        with pytest.raises(LookupServiceError, match=r"2 calls at a time \('lakelsm\.lookup-service\.max-calls'\)"):
            cache.find_key((1,))
        for writer, _ in calls:
            writer.begin(ids(1).schema)
            writer.write_batch(ids(1))
            writer.done_writing()
        assert [reader.read_chunk().data.num_rows for _, reader in calls] == [1, 1]
        until(lambda: len(server._calls) == 0)
        assert cache.find_key((1,)) == [(1, "one")]


def test_other_calls_of_flight_are_refused_before_they_wait_for_a_message(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    table.write((1, "one"))
    descriptor = flight.FlightDescriptor.for_command(b"")
    with service(table.store) as (server,), flight.FlightClient(f"grpc://{server.address}") as client:
        others: list[Any] = [
            lambda: client.do_put(descriptor, ids(1).schema)[0].close(),
            lambda: client.do_get(flight.Ticket(b"")).read_all(),
            lambda: list(client.list_flights()),
            lambda: list(client.list_actions()),
        ]
        for other in others:
            with pytest.raises(flight.FlightUnavailableError, match="accepts only lookups and actions"):
                other()
        assert server._calls.started == 0


def test_a_server_ends_in_time_with_silent_and_hung_clients(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    table.write((1, "x" * (32 << 20)))
    with service(table.store) as (server,), flight.FlightClient(f"grpc://{server.address}") as client:
        request = flight.FlightDescriptor.for_command(request_of(table).encoded())
        calls = [client.do_exchange(request) for _ in range(3)]
        calls[0][0].begin(ids(1).schema)
        calls[0][0].write_batch(ids(1))
        calls[1][0].begin(ids(1).schema)
        until(lambda: len(server._calls) == 3)
        assert server.stop(), "all calls are ended"
        assert len(server._calls) == 0


def test_a_refused_request_names_the_maximum_size_and_clients_send_smaller_ones(tmp_path: Path) -> None:
    table = LocalTable(
        tmp_path / "t", "id STRING NOT NULL, v STRING", **{"lakelsm.lookup-service.max-request-size": "5 mb"}
    )
    table.write(*((f"{key}" * (1 << 20), f"{key}") for key in range(7)))
    with service(table.store) as (server,):
        cache = RemoteCache.open(spec_of(table))
        before = server._calls.started
        found = cache.find(pa.table({"id": [f"{key}" * (1 << 20) for key in (6, 5, 9, 4, 3, 2, 1)]}))
        assert found.rows.column("v").to_pylist() == ["6", "5", "4", "3", "2", "1"]
        assert found.probes.tolist() == [0, 1, 3, 4, 5, 6]
        assert server._calls.started - before == 3
        with pytest.raises(flight.FlightServerError) as failure:
            answer_of(server, request_of(table).encoded(), pa.RecordBatch.from_pydict({"id": ["x" * (6 << 20)]}))
    reported = str(decoded_error(failure.value.extra_info))
    assert "the maximum is 5242880 ('lakelsm.lookup-service.max-request-size')" in reported


def test_a_server_refuses_keys_of_another_schema_before_it_reads_them(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    table.write((1, "one"))
    deep: pa.DataType = pa.int32()
    for _ in range(30):
        deep = pa.list_(deep)
    hostile = [
        pa.RecordBatch.from_pydict({"id": pa.array([1], pa.int32()).dictionary_encode()}),
        pa.RecordBatch.from_arrays([pa.array([None], deep)], ["id"]),
        pa.RecordBatch.from_arrays([pa.array([1])] * 5_000, [f"c{at}" for at in range(5_000)]),
    ]
    with service(table.store) as (server,):
        for keys in hostile:
            with pytest.raises(flight.FlightServerError) as failure:
                answer_of(server, request_of(table).encoded(), keys)
            reported = str(decoded_error(failure.value.extra_info))
            assert "instead of id int32" in reported and len(reported) < 2_000
        assert answer_of(server, request_of(table).encoded(), ids(1))[0].data.num_rows == 1


def test_the_server_of_a_call_is_a_query_server_with_the_options_of_its_table(tmp_path: Path) -> None:
    options = {"lakelsm.lookup-service.idle-timeout": "3 s", "lakelsm.lookup-service.max-calls": "7"}
    with service(LocalTable(tmp_path / "t", **options).store) as (server,):
        assert isinstance(server, QueryServer) and server._calls.idle_seconds == 3.0
