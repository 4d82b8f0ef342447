"""Fixtures of the interoperation tests: the other engines, each in a process of its own, and lakelsm beside them."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.interop import environments
from tests.interop.lakelsm_tables import LakelsmTables
from tests.interop.peers import JavaPaimon, Peer, PyPaimon
from tests.interop.side import SIDES, Side, SideError

#: The peers' versions. pypaimon pins its own pyarrow, hence an environment of its own.
PYPAIMON = "pypaimon==2.1.0"
JAVA_PAIMON = "org.apache.paimon:paimon-bundle:1.4.2"

PEERS = ("pypaimon", "java-paimon")


@pytest.fixture(scope="session")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Peer]]:
    """``peers(name)``: that engine, started at its first use; skips the test, by name, where it cannot be had."""
    scratch = tmp_path_factory.mktemp("peers")
    start = {"pypaimon": _pypaimon, "java-paimon": _java_paimon}
    running: dict[str, Peer] = {}
    absent: dict[str, str] = {}

    def peer(name: str) -> Peer:
        if name in absent:
            pytest.skip(absent[name])
        if name not in running:
            try:
                running[name] = start[name](scratch)
            except pytest.skip.Exception as reason:
                absent[name] = str(reason)
                raise
        return running[name]

    yield peer
    for engine in running.values():
        engine.close()


@pytest.fixture(params=PEERS)
def peer(request: pytest.FixtureRequest, peers: Callable[[str], Peer]) -> Peer:
    """Each of the other engines."""
    return peers(request.param)


@pytest.fixture
def ours(spark: SparkSession) -> LakelsmTables:
    """lakelsm with the same operations as a peer."""
    return LakelsmTables(spark)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The directory of a table that does not exist yet."""
    return tmp_path / "warehouse" / "db.db" / "t"


def _pypaimon(scratch: Path) -> Peer:
    python = environments.python_with("pypaimon", [PYPAIMON])
    side = Side([python, str(SIDES / "pypaimon_side.py")], scratch / "pypaimon.log", _plain_environment())
    return PyPaimon(side, scratch)


def _java_paimon(scratch: Path) -> Peer:
    jars = environments.root() / "jars"
    command = [sys.executable, str(SIDES / "java_side.py"), JAVA_PAIMON, str(jars)]
    side = Side(command, scratch / "java-paimon.log", {"TZ": "UTC"})
    try:
        side.call("ready")
    except SideError:
        tail = side.log_tail(400)
        with contextlib.suppress(OSError):
            side.close()
        if "unresolved dependency" in tail or "download failed" in tail:
            pytest.skip(f"java-paimon: {JAVA_PAIMON} cannot be resolved")
        raise
    return JavaPaimon("java-paimon", side)


def _plain_environment() -> dict[str, str]:
    """Nothing of this environment's Python reaches the other one."""
    return {"PYTHONPATH": "", "PYTHONHOME": ""} if "PYTHONPATH" in os.environ else {}
