"""Servers in processes of this machine: their answers, their deaths, and how they end."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError, LookupServiceError
from lakelsm.lookup.service.local_servers import LocalServers
from lakelsm.lookup.service.query_service import run_service
from lakelsm.lookup.service.remote_cache import RemoteCache
from lakelsm.lookup.service.server_setup import ServerSetup
from lakelsm.lookup.service.service_addresses import ServerAddress, publish, published_addresses, withdraw
from tests.compact.local_table import LocalTable
from tests.lookup.service.test_remote_cache import ids, simple, spec_of
from tests.lookup.service.whole_table import OPEN, WholeTable
from tests.processes import PATIENCE


def setup_of(table: LocalTable, servers: int = 1, host: str | None = None) -> ServerSetup:
    return ServerSetup(
        store=table.store, servers=servers, host=host, access=OPEN, refresh=600.0, opener=WholeTable
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
    publish(table.store, newer)  # The service ends, as another one has taken over.
    running.join(PATIENCE)
    assert outcome == [False]
    assert [process.exitcode for process in pids] == [0, 0]
    assert withdraw(table.store, newer)
    with pytest.raises(LookupServiceError, match="query-service"):
        cache.find(ids(1))


def _buckets(cache: RemoteCache, key: int) -> object:
    return cache._servers.choice.buckets_of(ids(key))


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    setup = setup_of(LocalTable(tmp_path / "t"))
    (tmp_path / "t" / "schema" / "schema-0").unlink()
    servers = LocalServers(setup, lambda line: None)
    with pytest.raises(CorruptTableError, match="schema-0 is missing"):
        until(servers.addresses)
    servers.stop()
