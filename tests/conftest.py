"""Fixtures of all tests: one Spark session, the engines, the golden tables, the seeds and the order of the tests."""

from __future__ import annotations

import gc
import os
import shutil
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from lakelsm import environment
from tests import chance, golden_tables
from tests.engines import TableEngine
from tests.golden_tables import GoldenTable
from tests.storage.object_server import ObjectServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

chance.fix()

#: Settings of the machine for object stores and Spark. No test may depend on them.
_SETTINGS = ("AWS_", "AZURE_", "GOOGLE_", "HADOOP_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_LOCAL_DIRS")
for _name in [name for name in os.environ if name.startswith(_SETTINGS)]:
    del os.environ[_name]
# The other engines of tests/interop are in UTC as well. A test of another zone sets its zone. In the locale C, a JVM does
# not open files with names other than ASCII. gRPC's handlers of forks disturb JVMs that start after a Connect session.
os.environ |= {"TZ": "UTC", "LC_ALL": "C.UTF-8", "GRPC_ENABLE_FORK_SUPPORT": "0"}
time.tzset()


def _synced(descriptor: int) -> None:
    """Replaces ``os.fsync``: tests may kill a process, but never the machine, and thousands of calls would wait for the
    disk. tests/format/data_file/test_durable_files.py checks what is synced before it gets its name.
    """
    os.fstat(descriptor)


os.fsync = _synced


#: Folders whose tests share processes that they start.
_SHARED = ("tests/interop", "tests/connect")
#: Tests that start processes, the longest of all. They are the first of those with a JVM, so that the last ones do not
#: keep one process of a run busy alone.
_LONGEST = (
    *(*_SHARED, "tests/test_concurrency.py", "tests/test_standalone_cluster.py", "tests/jobs"),
    *("tests/walkthroughs", "tests/spark/test_session.py"),
)


def group_of(test: str) -> str:
    """Return the group of tests that one process of a run (``pytest -n``) takes: the tests of a file, or all of
    ``tests/interop`` or ``tests/connect``, which share the processes of the other engines, or a server.
    """
    file = test.partition("::")[0]
    return next((folder for folder in _SHARED if file.startswith(f"{folder}/")), file)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Set the seeds before Hypothesis reads its seed."""
    chance.choose_seed(config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give all processes of a run (``-n``) one seed."""
    chance.share_seed(node.workerinput)


def pytest_report_header(config: pytest.Config) -> str:
    """Show at the start how the run draws its samples."""
    return chance.described(config)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show the same line at the end of a long run of `make fuzz`, next to the failures."""
    if terminalreporter.stats.get("failed"):
        terminalreporter.write_line(chance.described(config))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let each test draw the same ids and waits, in any order of the tests."""
    chance.begin(item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests without the garbage collector: thousands of tests are no garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their needs. Run the groups without a JVM first, and the longest of the others next."""
    needs_jvm: set[str] = set()
    for item in items:
        if {"spark", "connect_url"} & {*getattr(item, "fixturenames", ())}:
            item.add_marker(pytest.mark.spark)
        if item.get_closest_marker("spark"):
            needs_jvm.add(group_of(item.nodeid))
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.property)

    def stage(item: pytest.Item) -> tuple[bool, bool, bool]:
        group = group_of(item.nodeid)
        return group in needs_jvm, not group.startswith(_LONGEST), bool(item.get_closest_marker("spark"))

    items.sort(key=stage)
    # All objects that are loaded now stay to the end, so the collector need not walk over them. It walks less often
    # over others.
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 10, 10)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Assign groups to the processes of a run. (``--dist=loadgroup`` fails with pytest 9.2.)"""
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return Groups(config, log)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The only Spark session of a test run: two cores, no UI, UTC."""
    from tests.spark_session import build_session

    session = build_session("lakelsm-tests", tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def connect_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the only Spark Connect server of a test run, a separate process."""
    from tests.connect_server import connect_server

    with connect_server(tmp_path_factory.mktemp("connect")) as url:
        yield url


@pytest.fixture(scope="session")
def connect(connect_url: str) -> Iterator[SparkSession]:
    """A session of the Connect server. PySpark's functions in this process remain those of classic sessions."""
    from tests.connect_server import connect_session

    session = connect_session(connect_url)
    yield session
    session.stop()


@pytest.fixture
def classic_functions() -> Iterator[None]:
    """Functions of columns for classic sessions, for tests of what public calls use after they have chosen these."""
    from lakelsm.spark.functions import functions_of

    with functions_of(object()):  # type: ignore[arg-type]
        yield


@pytest.fixture
def local() -> TableEngine:
    """The engine of this process."""
    return TableEngine("local")


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest) -> TableEngine:
    """Each engine in turn. Only a case on Spark starts a session, and has the mark for it."""
    return TableEngine(request.param, request.getfixturevalue("spark") if request.param == "spark" else None)


@pytest.fixture(scope="session")
def _golden_archives(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    unpacked: dict[str, Path] = {}

    def archive(version: str) -> Path:
        if version not in unpacked:
            unpacked[version] = golden_tables.unpack(version, tmp_path_factory.mktemp(f"golden-{version}"))
        return unpacked[version]

    return archive


@pytest.fixture
def golden(tmp_path: Path, _golden_archives: Callable[[str], Path]) -> Callable[..., GoldenTable]:
    """``golden(name, version="2.1")`` returns a new copy of a table that Java Paimon wrote.

    It skips the test, with the reason, if the golden tables do not exist.
    """

    def table(name: str, version: str = "2.1") -> GoldenTable:
        if not golden_tables.available():
            pytest.skip(f"golden table {name} ({version}): {golden_tables.FOLDER} is not present")
        columns, rows = golden_tables.expectations(version)[name]
        path = tmp_path / f"golden-{version}" / name
        if not path.exists():
            shutil.copytree(_golden_archives(version) / name, path)
        return GoldenTable(name, path, columns, rows)

    return table


@pytest.fixture(scope="session")
def object_server() -> ObjectServer:
    """An S3 server on loopback, one for all tests of this process."""
    server = ObjectServer()
    server.start()
    return server


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The waits of the engine in this process take a hundredth of their time."""
    hurried = {**vars(time), "sleep": lambda seconds: time.sleep(seconds / 100)}
    monkeypatch.setattr(environment, "time", SimpleNamespace(**hurried))
