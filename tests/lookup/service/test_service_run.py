"""Addresses are published while servers run, and no longer; a newer service takes over."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from lakelsm.errors import CorruptTableError, LookupServiceError, TableNotFoundError
from lakelsm.lookup.service.server_lease import ServerLease
from lakelsm.lookup.service.service_addresses import ServerAddress, publish, published_addresses
from lakelsm.lookup.service.service_run import Addresses, run_service
from tests.compact.local_table import LocalTable

ONE, OTHER = (ServerAddress("127.0.0.1", 1),), (ServerAddress("127.0.0.1", 2), ServerAddress("127.0.0.1", 3))


class Scripted:
    """Servers that have the addresses of a script, one a look; then ``end`` is called."""

    def __init__(self, script: list[Addresses | Callable[[], None] | None], end: Callable[[], None]) -> None:
        self.script = script
        self.end = end
        self.now: Addresses | None = None
        self.stopped = False

    def addresses(self) -> Addresses | None:
        if not self.script:
            self.end()
            return self.now
        step = self.script.pop(0)
        if callable(step):
            step()
        else:
            self.now = step
        return self.now

    def stop(self) -> None:
        self.stopped = True


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalTable:
    monkeypatch.setattr("lakelsm.lookup.service.service_run._TICK", 0.001)
    return LocalTable(tmp_path / "t")


def test_addresses_are_published_once_all_servers_have_started_and_go_at_the_end(table: LocalTable) -> None:
    seen: list[Addresses | None] = []
    said: list[str] = []
    stop = threading.Event()
    look = lambda: seen.append(published_addresses(table.store))  # noqa: E731
    servers = Scripted([None, look, ONE, look, OTHER, look], stop.set)
    assert run_service(table.store, servers, stop, said.append)
    assert seen == [None, ONE, OTHER]
    assert published_addresses(table.store) is None
    assert servers.stopped
    assert [line.split(": ", 1)[1] for line in said] == [
        "1 servers answer at 127.0.0.1:1",
        "2 servers answer at 127.0.0.1:2, 127.0.0.1:3",
    ]


def test_stale_addresses_of_a_killed_service_are_replaced(table: LocalTable) -> None:
    publish(table.store, OTHER)
    said: list[str] = []
    stop = threading.Event()
    assert run_service(table.store, Scripted([ONE], stop.set), stop, said.append)
    assert "takes over from the query service at 127.0.0.1:2, 127.0.0.1:3" in said[0]
    assert published_addresses(table.store) is None


def test_a_service_ends_when_a_newer_one_has_taken_over_and_leaves_its_addresses(table: LocalTable) -> None:
    said: list[str] = []
    servers = Scripted([ONE, lambda: publish(table.store, OTHER)], lambda: pytest.fail("it goes on"))
    assert not run_service(table.store, servers, threading.Event(), said.append)
    assert published_addresses(table.store) == OTHER
    assert servers.stopped
    assert "another query service has taken over at 127.0.0.1:2" in said[-1]


def test_leases_of_older_services_end_once_the_new_servers_are_published(table: LocalTable) -> None:
    older = ServerLease.of(table.store, "older")
    older.write(["127.0.0.1:2"])
    seen: list[bool] = []
    stop = threading.Event()
    look = lambda: seen.append(older.lasts)  # noqa: E731
    run_service(table.store, Scripted([None, look, ONE, look], stop.set), stop, lambda line: None, [older])
    assert seen == [True, False]


def test_addresses_that_are_lost_or_damaged_are_published_again(table: LocalTable) -> None:
    path = Path(table.store.paths.lookup_service)
    stop = threading.Event()
    seen: list[Addresses | None] = []
    look = lambda: seen.append(published_addresses(table.store))  # noqa: E731
    damage = lambda: path.write_text("{")  # noqa: E731
    servers = Scripted([ONE, path.unlink, ONE, look, damage, ONE, look], stop.set)  # type: ignore[list-item]
    path.parent.mkdir()
    path.write_text("damaged")
    assert run_service(table.store, servers, stop, lambda line: None)
    assert seen == [ONE, ONE]


def test_a_service_of_a_table_that_is_dropped_ends_and_does_not_make_its_directory_again(table: LocalTable) -> None:
    stop = threading.Event()
    servers = Scripted([ONE, lambda: shutil.rmtree(table.root)], stop.set)
    with pytest.raises(TableNotFoundError, match="dropped while its query service ran"):
        run_service(table.store, servers, stop, lambda _: None)
    assert servers.stopped and not table.root.exists()


def test_addresses_go_when_servers_fail(table: LocalTable) -> None:
    def fail() -> None:
        raise LookupServiceError("the stage has ended")

    servers = Scripted([ONE, fail], lambda: None)
    with pytest.raises(LookupServiceError):
        run_service(table.store, servers, threading.Event(), lambda line: None)
    assert published_addresses(table.store) is None
    assert servers.stopped


def test_servers_are_stopped_where_the_table_is_damaged_before_the_first_look(table: LocalTable) -> None:
    store = table.store
    (table.root / "schema" / "schema-0").unlink()
    servers = Scripted([ONE], lambda: None)
    with pytest.raises(CorruptTableError, match="schema-0 is missing"):
        run_service(store, servers, threading.Event(), lambda line: None)
    assert servers.stopped
