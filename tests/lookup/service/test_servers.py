"""Servers in processes of this machine: their answers, their failures, and how they end."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakelsm.errors import CorruptTableError, InvalidInputError, LookupServiceError
from lakelsm.lookup.service.query_service import QueryService, run_service
from lakelsm.lookup.service.remote_cache import RemoteCache
from lakelsm.lookup.service.servers import ClusterServers, LocalServers, ServerSetup, ServerTask
from lakelsm.lookup.service.service_access import (
    ServerAccess,
    ServerAddress,
    ServerLease,
    publish,
    published_addresses,
    withdraw,
)
from tests.compact.local_table import LocalTable
from tests.lookup.scanned_cache import ScannedCache
from tests.lookup.service.test_remote_cache import ids, simple, spec_of
from tests.lookup.service.whole_table import OPEN
from tests.processes import PATIENCE


def setup_of(table: LocalTable, servers: int = 1, host: str | None = None) -> ServerSetup:
    return ServerSetup(
        store=table.store, servers=servers, host=host, access=OPEN, refresh=600.0, opener=ScannedCache
    )


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_killed_server_is_replaced_and_clients_find_the_new_one(tmp_path: Path) -> None:
    table = simple(tmp_path / "t")
    stop, said = threading.Event(), list[str]()
    servers = LocalServers(setup_of(table, 2), said.append)
    outcome: list[bool] = []
    running = threading.Thread(
        target=lambda: outcome.append(run_service(table.store, servers, stop, said.append)), daemon=True
    )
    running.start()
    until(lambda: published_addresses(table.store))
    before = published_addresses(table.store)
    cache = RemoteCache.open(spec_of(table))
    assert cache.find(ids(*range(120))).rows.num_rows == 100
    process = servers._processes[1].process
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    dead = [key for key in range(100) if cache._servers.choice.servers_of(ids(key), _buckets(cache, key))[0] == 1]
    until(lambda: published_addresses(table.store) != before)
    assert cache.find(ids(*dead)).rows.num_rows == len(dead)
    assert any("server 1 at" in line and "has ended (exit code -9)" in line for line in said)
    pids = [server.process for server in servers._processes]
    newer = [ServerAddress("127.0.0.1", 1)]
    publish(table.store, newer)  # The service ends, because another service has replaced it.
    running.join(PATIENCE)
    assert outcome == [False]
    assert [process.exitcode for process in pids] == [0, 0]
    assert withdraw(table.store, newer)
    with pytest.raises(LookupServiceError, match="query-service"):
        cache.find(ids(1))


def _buckets(cache: RemoteCache, key: int) -> object:
    return cache._servers.choice.buckets_of(ids(key))


def test_a_server_that_cannot_start_reports_the_reason(tmp_path: Path) -> None:
    setup = setup_of(LocalTable(tmp_path / "t"))
    (tmp_path / "t" / "schema" / "schema-0").unlink()
    servers = LocalServers(setup, lambda line: None)
    with pytest.raises(CorruptTableError, match="schema-0 is missing"):
        until(servers.addresses)
    servers.stop()


def test_a_pickled_setup_starts_servers_at_loopback_by_default(tmp_path: Path) -> None:
    setup = pickle.loads(pickle.dumps(setup_of(LocalTable(tmp_path / "t"), 2)))
    servers = [setup.server(0), setup.server(1, "localhost"), replace(setup, host="localhost").server(0, "elsewhere")]
    assert [server.address.host for server in servers] == ["127.0.0.1", "localhost", "localhost"]
    assert len({server.address.port for server in servers}) == 3
    for server in servers:
        assert server.stop()


def test_a_host_that_other_machines_reach_needs_a_token(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="Give a token file"):
        setup_of(LocalTable(tmp_path / "t"), host="10.0.0.1")


@pytest.mark.parametrize("host", ["", " ", "a b", "a\x01", "127.0.0.1:80", "[::1]", "http://localhost", "h" * 300])
def test_an_invalid_host_is_refused(host: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"host: expected the name or IP address of a machine"):
        replace(setup_of(LocalTable(tmp_path / "t")), host=host, access=ServerAccess(token="t"))


def test_more_servers_than_a_file_of_addresses_may_have_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="servers: 10001 is more than 10000"):
        replace(setup_of(LocalTable(tmp_path / "t")), servers=10_001)


def test_more_servers_than_tasks_can_run_at_once_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    service = QueryService(ServerSetup(store=table.store, servers=1000), spark)
    with pytest.raises(InvalidInputError, match="1000 tasks must run at the same time"):
        service.run(threading.Event(), lambda line: None)
    assert list((tmp_path / "t" / "service").iterdir()) == []


def test_servers_of_a_cluster_need_a_token(tmp_path: Path) -> None:
    elsewhere: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="spark://master:7077"))
    with pytest.raises(InvalidInputError, match="Give a token file"):
        ClusterServers(setup_of(LocalTable(tmp_path / "t")), elsewhere)


def test_a_task_answers_while_its_lease_exists(tmp_path: Path) -> None:
    table = simple(tmp_path / "t")
    lease = Path(table.store.paths.lookup_lease("u"))
    lease.parent.mkdir()
    lease.write_text("[]")
    gathered: list[str] = []

    def gather(text: str) -> list[str]:
        gathered.append(text)
        return [text]

    task = ServerTask(setup_of(table), ServerLease(table.store.file_io, str(lease)))
    running = threading.Thread(target=task, args=(0, "worker-1", gather))
    running.start()
    until(lambda: len(gathered) == 2)
    address = ServerAddress.parse(gathered[0])
    assert address is not None
    assert address.host == "127.0.0.1"
    assert gathered[0] in lease.read_text()
    lease.unlink()
    running.join(PATIENCE)
    assert not running.is_alive()
    assert published_addresses(table.store) is None


def test_with_a_token_a_server_answers_at_the_machine_of_its_task(tmp_path: Path) -> None:
    setup = replace(setup_of(simple(tmp_path / "t")), access=ServerAccess(token="t"))
    sent: list[str] = []
    lease = ServerLease.of(setup.store, "none")
    ServerTask(setup, lease)(0, "localhost", lambda text: sent.append(text) or [text])  # type: ignore[func-returns-value]
    assert sent[0].startswith("localhost:")


def test_a_stage_that_ends_ends_the_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = simple(tmp_path / "t")
    monkeypatch.setattr(ClusterServers, "_run", lambda self: None)
    local: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[2]"))
    servers = ClusterServers(setup_of(table), local)
    until(lambda: not servers._job.is_alive())
    with pytest.raises(LookupServiceError, match=r"the stage of its query service has ended\. Start"):
        servers.addresses()
    servers._lease.end()
    with pytest.raises(LookupServiceError, match="perhaps by a newer service"):
        servers.addresses()
    servers.stop()
    assert list((tmp_path / "t" / "service").iterdir()) == []
