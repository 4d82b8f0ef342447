"""``lakelsm query-service``: arguments and reports. tests/lookup/service tests the answers of servers."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelsm import Catalog
from lakelsm.cli.main import main
from lakelsm.lookup.service.query_service import QueryService
from tests.cli.fake_table import last_object


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("lakelsm.cli.query_service.has_session", lambda spark: False)
    Catalog(str(tmp_path)).create_table("d.t", pa.schema([pa.field("id", pa.int32(), False)]), primary_key=["id"])
    return str(tmp_path)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[QueryService]:
    """The services that ran. Each ends immediately, as after a signal."""
    services: list[QueryService] = []

    def run(service: QueryService, stop: threading.Event, say: Callable[[str], None]) -> bool:
        services.append(service)
        say("d.t: 1 servers answer at 127.0.0.1:1")
        return True

    monkeypatch.setattr(QueryService, "run", run)
    return services


def run(warehouse: str, *arguments: str) -> int:
    return main(["query-service", "--warehouse", warehouse, "--table", "d.t", *arguments])


def test_without_options_one_server_answers_on_this_machine(
    warehouse: str, ran: list[QueryService], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(warehouse) == 0
    setup = ran[0].setup
    assert (setup.store.name, setup.servers, setup.host, setup.interval, ran[0].spark) == ("d.t", 1, None, 10.0, None)
    assert setup.access.token is None
    output = capsys.readouterr()
    assert output.out == "d.t: the query service has ended\n"
    assert output.err == "d.t: 1 servers answer at 127.0.0.1:1\n"


def test_options_reach_the_service(warehouse: str, ran: list[QueryService], tmp_path: Path) -> None:
    for name in ("token", "cert", "key"):
        (tmp_path / name).write_text(name)
    files = [f"--token-file={tmp_path}/token", f"--tls-cert={tmp_path}/cert", f"--tls-key={tmp_path}/key"]
    assert run(warehouse, "--servers", "3", "--host", "0.0.0.0", "--refresh", "1 min", "--engine", "local", *files) == 0
    setup = ran[0].setup
    assert (setup.servers, setup.host, setup.refresh) == (3, "0.0.0.0", 60.0)
    assert (setup.access.token, setup.access.certificate, setup.access.private_key) == ("token", b"cert", b"key")


@pytest.mark.parametrize(("stopped", "status"), [(True, "stopped"), (False, "replaced")])
def test_the_report_says_how_it_ended(
    warehouse: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], stopped: bool, status: str
) -> None:
    monkeypatch.setattr(QueryService, "run", lambda *_: stopped)
    assert run(warehouse, "--report", "json") == 0
    assert last_object(capsys.readouterr().out) == {"table": "d.t", "status": status, "exit_status": 0}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_service(warehouse: str, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def until_stopped(service: QueryService, stop: threading.Event, say: Any) -> bool:
        os.kill(os.getpid(), number)
        return stop.wait(10)

    monkeypatch.setattr(QueryService, "run", until_stopped)
    before = signal.getsignal(number)
    assert run(warehouse) == 0
    assert signal.getsignal(number) is before


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--host", "10.0.0.1"], "Give a token file"),
        (["--token-file", "/nowhere"], "token file /nowhere cannot be read"),
        (["--tls-cert", "/nowhere"], "TLS needs a certificate and its key"),
        (["--refresh", "0"], "refresh: 0 seconds"),
    ],
)
def test_wrong_arguments_are_reported_before_servers_start(
    warehouse: str, ran: list[QueryService], capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    assert run(warehouse, "--report", "json", *arguments) == 1
    output = capsys.readouterr()
    assert reason in output.err
    assert last_object(output.out)["error_kind"] == "fix"
    assert ran == []


def test_the_table_may_be_named_by_its_path(warehouse: str, ran: list[QueryService]) -> None:
    assert main(["query-service", "--path", f"file://{warehouse}/d.db/t"]) == 0
    assert ran[0].setup.store.paths.root == f"{warehouse}/d.db/t"
