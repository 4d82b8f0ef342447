"""Servers in the tasks of a Spark stage. That they answer there is in tests/jobs/test_query_service_job.py."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakelsm.errors import InvalidInputError, LookupServiceError
from lakelsm.lookup.service.cluster_servers import ClusterServers, ServerTask
from lakelsm.lookup.service.query_service import QueryService
from lakelsm.lookup.service.service_access import ServerAccess
from lakelsm.lookup.service.service_addresses import ServerAddress, ServerLease, published_addresses
from tests.compact.local_table import LocalTable
from tests.lookup.service.test_local_servers import setup_of, until
from tests.lookup.service.test_remote_cache import simple
from tests.processes import PATIENCE


def test_more_servers_than_tasks_can_run_at_once_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t")
    service = QueryService.of(table.store, 1000, host=None, access=ServerAccess(), refresh=600.0, spark=spark)
    with pytest.raises(InvalidInputError, match="1000 tasks must run at once"):
        service.run(threading.Event(), lambda line: None)
    assert list((tmp_path / "t" / "service").iterdir()) == []


def test_servers_of_a_cluster_need_a_token(tmp_path: Path) -> None:
    elsewhere: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="spark://master:7077"))
    with pytest.raises(InvalidInputError, match="give a token file"):
        ClusterServers(setup_of(LocalTable(tmp_path / "t")), elsewhere)


def test_a_task_answers_while_its_lease_is_there(tmp_path: Path) -> None:
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


def test_with_a_token_a_server_is_at_the_machine_of_its_task(tmp_path: Path) -> None:
    setup = replace(setup_of(simple(tmp_path / "t")), access=ServerAccess(token="t"))
    asked: list[str] = []
    lease = ServerLease.of(setup.store, "none")
    ServerTask(setup, lease)(0, "localhost", lambda text: asked.append(text) or [text])  # type: ignore[func-returns-value]
    assert asked[0].startswith("localhost:")


def test_a_stage_that_ends_by_itself_ends_the_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = simple(tmp_path / "t")
    monkeypatch.setattr(ClusterServers, "_run", lambda self: None)
    local: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[2]"))
    servers = ClusterServers(setup_of(table), local)
    until(lambda: not servers._job.is_alive())
    with pytest.raises(LookupServiceError, match="the stage of its query service has ended: start"):
        servers.addresses()
    servers._lease.end()
    with pytest.raises(LookupServiceError, match="another service was started meanwhile"):
        servers.addresses()
    servers.stop()
    assert list((tmp_path / "t" / "service").iterdir()) == []
