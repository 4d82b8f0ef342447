"""The running service: answers for every merge engine, how it ends, and several client processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakelsm.errors import CorruptTableError, InvalidInputError, LookupServiceError, TableNotFoundError
from lakelsm.lookup.service.query_service import run_service
from lakelsm.lookup.service.remote_cache import RemoteCache
from lakelsm.lookup.service.servers import Addresses, ServerSetup, opened_partial_cache
from lakelsm.lookup.service.service_access import ServerAddress, ServerLease, publish, published_addresses
from lakelsm.schema_changes import RenameColumn
from lakelsm.table import Table
from tests.compact.local_table import LocalTable
from tests.lookup.service.test_remote_cache import ids, simple, spec_of
from tests.lookup.service.test_servers import until
from tests.lookup.service.whole_table import service
from tests.processes import PATIENCE

ROOT = Path(__file__).resolve().parents[3]
COMMAND = "import sys; from lakelsm.cli.main import console; sys.exit(console())"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"merge-engine": "partial-update"},
        {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
        {"merge-engine": "first-row"},
        {"deletion-vectors.enabled": "true"},
        {"sequence.field": "n"},
    ],
)
def test_rows_are_those_of_a_read_for_every_engine_while_the_table_changes(
    tmp_path: Path, options: dict[str, str]
) -> None:
    columns = "dt STRING NOT NULL, id INT NOT NULL, n INT, v STRING"
    table = LocalTable(tmp_path / "t", columns, ("dt", "id"), ("dt",), **{"bucket": "3", **options})
    draw = np.random.default_rng(3)
    keys = pa.table(
        {"dt": [f"d{number % 4}" for number in range(400)], "id": pa.array(np.arange(400) // 4, pa.int32())}
    )
    with service(table.store, 2, opener=opened_partial_cache):
        cache = RemoteCache.open(spec_of(table))
        for step in range(3):
            some = zip(draw.integers(0, 3, 90), draw.integers(0, 110, 90), draw.integers(0, 9, 90))
            rows = {(f"d{day}", int(key)): (f"d{day}", int(key), int(n), f"{step}") for day, key, n in some}
            table.write(*rows.values())
            if step == 1:
                table.compact(full=False)
            cache.refresh()
            expected = {(row["dt"], row["id"]): row for row in Table.for_path(str(table.root)).to_arrow().to_pylist()}
            found = cache.find(keys)
            searched = [(row["dt"], row["id"]) for row in keys.to_pylist()]
            assert found.probes.tolist() == [index for index, key in enumerate(searched) if key in expected]
            assert found.rows.to_pylist() == [expected[key] for key in searched if key in expected]
            assert cache.snapshot == table.latest


def test_lookups_use_the_service_of_their_table_automatically(tmp_path: Path) -> None:
    table = simple(tmp_path / "t")
    client = Table.for_path(str(table.root))
    served = service(table.store, opener=opened_partial_cache)
    with served, client.lookup(["v"], where="id < 50", refresh="never") as lookup:
        assert lookup.get(7) == {"v": "row 7"}
        assert lookup.get(70) is None
        table.write((7, "new"), (60, "new"))
        lookup.refresh()
        found = lookup.get_many(pa.table({"id": [60, 7, 7, None]}))
        assert found.to_pylist() == [{"id": each, "v": "new" if each == 7 else None} for each in (60, 7, 7, None)]
        assert lookup.staleness().snapshot_id == table.latest.id


def test_clients_of_a_renamed_column_get_an_error_and_others_continue(tmp_path: Path) -> None:
    table = LocalTable(tmp_path / "t", "id INT NOT NULL, a INT, b INT")
    table.write((1, 10, 100))
    with service(table.store, opener=opened_partial_cache):
        both, one = (RemoteCache.open(spec_of(table, *names)) for names in (("a", "b"), ("a",)))
        assert both.find_key((1,)) == [(10, 100)]
        table.alter(RenameColumn("b", "c"))
        table.write((1, 11, 111))
        one.refresh()
        assert one.find_key((1,)) == [(11,)]
        with pytest.raises(InvalidInputError, match="'b'"):
            both.find_key((1,))
        assert one.find_key((1,)) == [(11,)]
        assert RemoteCache.open(spec_of(table, "c")).find_key((1,)) == [(111,)]


def test_the_refresh_interval_is_that_of_the_table_unless_it_is_given(tmp_path: Path) -> None:
    def seconds(refresh: float | None, **options: str) -> float:
        store = LocalTable(tmp_path / str(len(list(tmp_path.iterdir()))), **options).store
        return ServerSetup(store=store, refresh=refresh).interval

    assert seconds(None) == 10.0
    assert seconds(None, **{"continuous.discovery-interval": "3 s"}) == 3.0
    assert seconds(None, **{"lookup.continuous.discovery-interval": "4 s", "continuous.discovery-interval": "3 s"}) == 4.0
    assert seconds(0.5) == 0.5
    with pytest.raises(InvalidInputError, match="refresh: 0 seconds"):
        seconds(0.0)


@contextmanager
def running(root: Path, without: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run the command for a table, in its own process group and without Java."""
    command = [sys.executable, "-c", COMMAND, "query-service", "--path", str(root), "--report", "json", *arguments]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=bare(without),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def bare(without: Path) -> dict[str, str]:
    """An environment without Java, and without pandas, whose import takes as long as that of all other modules."""
    without.mkdir(exist_ok=True)
    (without / "pandas.py").write_text("raise ImportError")
    return {"PYTHONPATH": f"{without}:{ROOT}", "PATH": "/nowhere"}


def ended(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


CLIENT = """
import sys
import numpy as np
import pyarrow as pa
from lakelsm.lookup.cache import LookupSpec
from lakelsm.lookup.service.remote_cache import RemoteCache
from lakelsm.snapshots.table_store import TableStore

cache = RemoteCache.open(LookupSpec(TableStore.open(sys.argv[1]), ("id",), ("id", "v")))
draw = np.random.default_rng(int(sys.argv[2]))
for _ in range(20):
    asked = draw.integers(0, 2000, 3000)
    found = cache.find(pa.table({"id": pa.array(asked, pa.int32())}))
    assert found.probes.tolist() == np.flatnonzero(asked < 1000).tolist()
    assert found.rows.column("v").to_pylist() == [f"row {key}" for key in asked[asked < 1000]]
"""


def test_client_processes_are_answered_until_the_service_is_killed_and_by_the_next_one_until_a_signal(
    tmp_path: Path,
) -> None:
    table, without = simple(tmp_path / "t", 1000), tmp_path / "without"
    with running(table.root, without, "--servers", "2") as first:
        until(lambda: published_addresses(table.store) or first.poll() is not None)
        command = [sys.executable, "-c", CLIENT, str(table.root)]
        clients = [
            subprocess.Popen([*command, str(seed)], cwd=ROOT, env=bare(without), stderr=subprocess.PIPE)
            for seed in range(3)
        ]
        assert [(client.communicate(timeout=PATIENCE)[1], client.returncode) for client in clients] == [(b"", 0)] * 3
        cache = RemoteCache.open(spec_of(table))
        assert cache.find_key((5,)) == [(5, "row 5")]
        first.kill()
        first.wait()
        outdated = published_addresses(table.store)
        assert outdated is not None
        until(lambda: not any(map(answers, outdated)))
        with running(table.root, without) as next_one:
            until(lambda: published_addresses(table.store) != outdated or next_one.poll() is not None)
            assert cache.find(ids(5)).rows.to_pylist() == [{"id": 5, "v": "row 5"}]
            os.killpg(next_one.pid, signal.SIGINT)  # As a terminal does: the server gets the signal too.
            assert ended(next_one) == {"table": str(table.root), "status": "stopped", "exit_status": 0}
    assert published_addresses(table.store) is None


def answers(address: ServerAddress) -> bool:
    try:
        socket.create_connection((address.host, address.port), 1).close()
    except OSError:
        return False
    return True


ONE, OTHER = (ServerAddress("127.0.0.1", 1),), (ServerAddress("127.0.0.1", 2), ServerAddress("127.0.0.1", 3))


class Scripted:
    """Servers with the addresses of a script, one entry for each check; then ``end`` is called."""

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
    monkeypatch.setattr("lakelsm.lookup.service.query_service._TICK", 0.001)
    return LocalTable(tmp_path / "t")


def test_addresses_are_published_when_all_servers_have_started_and_removed_at_the_end(table: LocalTable) -> None:
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


def test_addresses_of_a_killed_service_are_replaced(table: LocalTable) -> None:
    publish(table.store, OTHER)
    said: list[str] = []
    stop = threading.Event()
    assert run_service(table.store, Scripted([ONE], stop.set), stop, said.append)
    assert "replaces the query service at 127.0.0.1:2, 127.0.0.1:3" in said[0]
    assert published_addresses(table.store) is None


def test_a_service_ends_when_a_newer_one_replaces_it_and_leaves_the_new_addresses(table: LocalTable) -> None:
    said: list[str] = []
    servers = Scripted([ONE, lambda: publish(table.store, OTHER)], lambda: pytest.fail("it goes on"))
    assert not run_service(table.store, servers, threading.Event(), said.append)
    assert published_addresses(table.store) == OTHER
    assert servers.stopped
    assert "another query service has replaced this one, at 127.0.0.1:2" in said[-1]


def test_leases_of_older_services_end_once_the_new_servers_are_published(table: LocalTable) -> None:
    older = ServerLease.of(table.store, "older")
    older.write(["127.0.0.1:2"])
    seen: list[bool] = []
    stop = threading.Event()
    look = lambda: seen.append(older.exists)  # noqa: E731
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


def test_the_service_of_a_dropped_table_ends_and_does_not_create_its_directory_again(table: LocalTable) -> None:
    stop = threading.Event()
    servers = Scripted([ONE, lambda: shutil.rmtree(table.root)], stop.set)
    with pytest.raises(TableNotFoundError, match=r"was dropped\. Its query service ends"):
        run_service(table.store, servers, stop, lambda _: None)
    assert servers.stopped and not table.root.exists()


def test_addresses_are_removed_when_servers_fail(table: LocalTable) -> None:
    def fail() -> None:
        raise LookupServiceError("the stage has ended")

    servers = Scripted([ONE, fail], lambda: None)
    with pytest.raises(LookupServiceError):
        run_service(table.store, servers, threading.Event(), lambda line: None)
    assert published_addresses(table.store) is None
    assert servers.stopped


def test_servers_are_stopped_if_the_table_is_damaged_before_the_first_check(table: LocalTable) -> None:
    store = table.store
    (table.root / "schema" / "schema-0").unlink()
    servers = Scripted([ONE], lambda: None)
    with pytest.raises(CorruptTableError, match="schema-0 is missing"):
        run_service(store, servers, threading.Event(), lambda line: None)
    assert servers.stopped
