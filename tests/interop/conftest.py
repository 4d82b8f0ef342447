"""Fixtures of the interoperation tests: the other engines, one process each, and lakelsm."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lakelsm.schema.table_schema import create_schema
from tests.class_archive import jvm_options
from tests.engines import TableEngine
from tests.interop import environments
from tests.interop.engine_cases import EngineCase, Written
from tests.interop.file_tables import write
from tests.interop.lakelsm_tables import LakelsmTables
from tests.interop.peers import JavaPaimon, PaimonSpark, Peer, PyPaimon
from tests.interop.side import SIDES, Side, SideError
from tests.read.file_engine import FileTable

#: The versions of the peers. pypaimon pins pyarrow, so it needs another environment.
PYPAIMON = "pypaimon==2.1.0"
JAVA_PAIMON = "org.apache.paimon:paimon-bundle:1.4.2"
#: The newest Spark connector in the available registries; an old reader is the harder test.
PAIMON_SPARK = os.environ.get("LAKELSM_PAIMON_SPARK", "org.apache.paimon:paimon-spark-3.5:0.9.0")
SPARK_OF_PAIMON = "pyspark==3.5.*"

PEERS = ("pypaimon", "java-paimon")


@pytest.fixture(scope="session")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Peer]]:
    """``peers(name)`` returns an engine, started at its first use, or skips the test, by name, if it is unavailable."""
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


@pytest.fixture(scope="session")
def java(peers: Callable[[str], Peer]) -> JavaPaimon:
    peer = peers("java-paimon")
    assert isinstance(peer, JavaPaimon)
    return peer


@pytest.fixture(params=PEERS)
def peer(request: pytest.FixtureRequest, peers: Callable[[str], Peer]) -> Peer:
    """Each of the other engines."""
    return peers(request.param)


@pytest.fixture
def ours(local: TableEngine) -> LakelsmTables:
    """lakelsm in this process, with the operations of a peer."""
    return LakelsmTables(local)


@pytest.fixture
def either(engine: TableEngine) -> LakelsmTables:
    """lakelsm on each of its engines in turn, with the operations of a peer."""
    return LakelsmTables(engine)


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[EngineCase], Written]:
    """``written(case)`` returns tables of lakelsm, created once for all peers. Tests copy them before changes."""
    made: dict[str, Written] = {}

    def tables_of(case: EngineCase) -> Written:
        if case.name not in made:
            states = ("begun", "loose", "compacted")
            tables = Written(*(tmp_path_factory.mktemp(state) / "db.db" / case.name for state in states))
            first, *others = case.batches
            begun = FileTable.of(tables.begun, create_schema(case.columns, ["k"], [], case.table_options))
            write(begun, case, *first)
            begun.compact()
            for batch in others[:-1]:
                write(begun, case, *batch)
            shutil.copytree(tables.begun, tables.loose)
            write(FileTable(tables.loose), case, *others[-1])
            shutil.copytree(tables.loose, tables.compacted)
            FileTable(tables.compacted).compact()
            made[case.name] = tables
        return made[case.name]

    return tables_of


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
    side = Side(command, scratch / "java-paimon.log", {"TZ": "UTC", "JDK_JAVA_OPTIONS": jvm_options()})
    _await(side, "java-paimon", JAVA_PAIMON, lambda: side.call("ready"))
    return JavaPaimon("java-paimon", side)


@pytest.fixture(scope="session")
def paimon_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaimonSpark]:
    """Java Paimon's Spark connector in another Spark; skips the test, by name, if one of the two is unavailable."""
    scratch = tmp_path_factory.mktemp("paimon-spark")
    python = environments.python_with("paimon-spark", [SPARK_OF_PAIMON])
    warehouse = scratch / "warehouse"
    warehouse.mkdir()
    script = str(SIDES / "paimon_spark_side.py")
    jars = str(environments.root() / "jars")
    clean = {name: "" for name in ("SPARK_HOME", "PYTHONPATH", "PYTHONHOME") if name in os.environ}
    side = Side([python, script, PAIMON_SPARK, jars, warehouse.as_uri()], scratch / "spark.log", clean)
    _await(side, "paimon-spark", PAIMON_SPARK, lambda: side.call("sql", statements=["SELECT 1"]))
    yield PaimonSpark(side, warehouse)
    side.close()


def _await(side: Side, name: str, coordinate: str, first: Callable[[], object]) -> None:
    """Wait for the first answer of the engine; skip the test, by name, if its jar cannot be resolved."""
    try:
        first()
    except SideError:
        tail = side.log_tail(400)
        with contextlib.suppress(OSError):
            side.close()
        if "unresolved dependency" in tail or "download failed" in tail:
            pytest.skip(f"{name}: {coordinate} cannot be resolved")
        raise


def _plain_environment() -> dict[str, str]:
    """Return environment variables without those of this Python."""
    return {"PYTHONPATH": "", "PYTHONHOME": ""} if "PYTHONPATH" in os.environ else {}
