"""The choice of a session, and the errors if none can be used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkImportError, PySparkValueError
from pyspark.sql import DataFrame, SparkSession

from lakelsm import Catalog
from lakelsm.errors import InvalidInputError, SparkUnavailableError
from lakelsm.spark import session as session_module
from lakelsm.spark.session import checked_frame, resolve_session
from tests.class_archive import jvm_options

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkSession, "getActiveSession", staticmethod(lambda: None))


def java(monkeypatch: pytest.MonkeyPatch, directory: Path, version_text: str) -> None:
    """Return a JAVA_HOME whose ``java -version`` prints the text to stderr, as Java does."""
    binary = directory / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text("#!/bin/sh\ncat >&2 <<END\n" + version_text + "\nEND\n", encoding="utf-8")
    binary.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(directory))


def test_without_java_the_error_names_what_to_install(no_session: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SparkUnavailableError, match=r"Java.*17.*apt-get install openjdk-17.*JAVA_HOME"):
        resolve_session()


def test_a_java_home_without_java_is_an_error(no_session: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkUnavailableError, match="17"):
        resolve_session()


def test_a_java_that_ends_at_its_start_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java(monkeypatch, tmp_path, "no libjvm.so")
    program = "from lakelsm.spark.session import resolve_session; resolve_session(None, 'call to_arrow')"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    last = ran.stderr.splitlines()[-1]
    assert last.startswith("lakelsm.errors.SparkUnavailableError: The JVM of Spark ended at its start")
    assert f"JAVA_HOME is {tmp_path})" in last and last.endswith("Without Spark: call to_arrow.")


@pytest.mark.parametrize(
    ("text", "version"),
    [('openjdk version "11.0.22" 2024-01-16', "11"), ('java version "1.8.0_292"', "8")],
)
def test_an_old_java_is_refused_with_its_version(
    no_session: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, version: str
) -> None:
    java(monkeypatch, tmp_path / "jdk", text)
    with pytest.raises(SparkUnavailableError, match=rf"version {version}\b.*openjdk-17"):
        resolve_session()


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.10" 2024-01-16', 17),
        ('java version "1.8.0_292"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("Picked up JAVA_TOOL_OPTIONS: -Dx", None),
        ("", None),
        ('openjdk version "unknown"', None),
    ],
)
def test_the_major_version_is_parsed_from_javas_output(text: str, version: int | None) -> None:
    assert session_module._major_version(text) == version


def test_a_runtime_with_its_version_in_a_file_is_not_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    java(monkeypatch, tmp_path / "jdk", 'openjdk version "21" 2023-09-19')
    (tmp_path / "jdk" / "release").write_text('IMPLEMENTOR="Debian"\nJAVA_VERSION="11.0.22"\n', encoding="utf-8")
    with pytest.raises(SparkUnavailableError, match="version 11:"):
        session_module._require_java()
    (tmp_path / "jdk" / "release").write_text('IMPLEMENTOR="Debian"\n', encoding="utf-8")
    session_module._require_java()


def test_under_spark_submit_the_session_has_the_users_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    class Builder:
        def __getattr__(self, name: str) -> Callable[..., Any]:
            calls.append(name)
            return lambda *args: self

    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    monkeypatch.setattr(SparkSession, "builder", Builder())
    session_module._new_session()
    assert calls == ["getOrCreate"]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PySparkImportError("grpcio >= 1.48.1 must be installed"), r"grpcio .*: pip install 'lakelsm\[connect\]'\."),
        (PySparkValueError("token=secret"), r"SPARK_REMOTE is not the URL of a Connect server, such as 'sc://host:15002'\.$"),
    ],
    ids=["a client without its packages", "a wrong URL"],
)
def test_a_connect_session_that_cannot_be_created_is_an_error(
    error: Exception, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setenv("SPARK_REMOTE", "sc://host/;token=secret")
    monkeypatch.setattr(SparkSession, "builder", SimpleNamespace(getOrCreate=fail))
    with pytest.raises(SparkUnavailableError, match=message):
        session_module._new_session()


def test_a_java_with_an_unknown_version_is_tried(
    no_session: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    java(monkeypatch, tmp_path / "jdk", "who knows")
    started: list[str] = []

    class Builder:
        def __getattr__(self, name: str) -> Callable[..., Any]:
            def call(*args: Any) -> Any:
                started.append(name)
                return Session() if name == "getOrCreate" else self

            return call

    class Session:
        sparkContext = SimpleNamespace(_jsc=object(), master="yarn", _python_includes=[])

    monkeypatch.setattr(SparkSession, "builder", Builder())
    assert isinstance(resolve_session(), Session)
    assert started[-1] == "getOrCreate"


def test_the_given_session_precedes_the_active_one(spark: SparkSession) -> None:
    other = spark.newSession()
    assert resolve_session(other) is other
    assert resolve_session() is SparkSession.getActiveSession()


def test_a_catalog_without_a_session_uses_the_active_one(spark: SparkSession, tmp_path: Path) -> None:
    table = Catalog(str(tmp_path)).create_table("db.t", "id INT", primary_key=["id"], options={"bucket": "1"})
    assert resolve_session(table._spark) is SparkSession.getActiveSession()


def test_opening_and_planning_need_no_session(no_session: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a session was requested")

    monkeypatch.setattr(session_module, "_require_java", refuse)
    monkeypatch.setattr(subprocess, "run", refuse)
    table = Catalog(str(tmp_path)).create_table("db.t", "id INT", primary_key=["id"], options={"bucket": "1"})
    assert table.explain().files_live == 0
    assert table.schema.primary_keys == ("id",)


def python(directory: Path, answer: str) -> Path:
    """Return a program instead of the workers' Python, which records that it was run."""
    program = directory / "bin" / "python3"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho run >> {directory}/runs\n{answer}\n", encoding="utf-8")
    program.chmod(0o755)
    return program


def session_of(python_exec: str, **more: Any) -> Any:
    conf = more.pop("conf", {})
    context = {"_jsc": object(), "master": "local[*]", "_python_includes": [], "pythonExec": python_exec, **more}
    return SimpleNamespace(sparkContext=SimpleNamespace(**context, getConf=lambda: conf))


VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (f"echo {VERSION} lakelsm pyarrow", "lacks lakelsm, pyarrow"),
        ("echo 3.2", "has version 3.2"),
        ("exit 1", "has version unknown"),
    ],
)
def test_workers_of_another_python_are_an_error_before_the_first_task(
    tmp_path: Path, answer: str, what: str
) -> None:
    program = python(tmp_path, answer)
    with pytest.raises(SparkUnavailableError) as raised:
        resolve_session(session_of(str(program)))
    message = str(raised.value)
    assert f"Spark's workers run {program}, which {what}" in message and "\n" not in message
    assert f"PYSPARK_PYTHON={sys.executable}" in message and f"spark.pyspark.python={sys.executable}" in message


def test_a_python_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SparkUnavailableError, match=r"workers run /nowhere/python, which does not exist"):
        resolve_session(session_of("/nowhere/python"))


def test_another_suitable_python_is_checked_once(tmp_path: Path) -> None:
    program = python(tmp_path, f"echo {VERSION}")
    for _ in range(3):
        resolve_session(session_of(str(program)))
    assert (tmp_path / "runs").read_text(encoding="utf-8") == "run\n"


def test_the_python_of_this_program_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("a Python was started"))
    session_module._check_python.cache_clear()
    resolve_session(session_of(sys.executable))


def test_workers_run_the_python_of_this_program_by_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("a Python was started"))
    assert resolve_session(session_of("python3")).sparkContext.pythonExec == sys.executable
    monkeypatch.setenv("PATH", str(tmp_path))
    for how, set_python in (
        ("the environment", lambda: monkeypatch.setenv("PYSPARK_PYTHON", "python3")),
        ("the configuration", lambda: monkeypatch.delenv("PYSPARK_PYTHON")),
    ):
        set_python()
        with pytest.raises(SparkUnavailableError, match=r"workers run python3, which does not exist"):
            resolve_session(session_of("python3", conf={"spark.pyspark.python": "python3"}))
            pytest.fail(f"by {how}")


def test_a_session_of_another_python_on_the_path_runs_tasks_in_this_one(tmp_path: Path) -> None:
    """A notebook may have no setting, and the python3 of its PATH no lakelsm."""
    python(tmp_path, "echo 3.2")
    program = """
import os, sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.sql.shuffle.partitions", 1).getOrCreate()
assert spark.sparkContext.pythonExec == "python3"
from lakelsm import Catalog
table = Catalog(sys.argv[1], spark).create_table("db.t", "k INT, v INT", primary_key=["k"], options={"bucket": "1"})
table.write(spark.range(3).selectExpr("CAST(id AS INT) AS k", "1 AS v"))
print(spark.sparkContext.pythonExec == sys.executable, table.read().count())
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK")}
    environment |= {"PATH": f"{tmp_path / 'bin'}:{environment['PATH']}", "JDK_JAVA_OPTIONS": jvm_options()}
    command = [sys.executable, "-c", program, str(tmp_path / "warehouse")]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (ran.stdout, (tmp_path / "runs").exists()) == ("True 3\n", False), ran.stderr[-2000:]


def test_on_a_cluster_and_with_shipped_packages_the_python_is_not_checked(tmp_path: Path) -> None:
    resolve_session(session_of("/nowhere/python", master="yarn"))
    resolve_session(session_of("/nowhere/python", _python_includes=["lakelsm.zip"]))


def test_the_probe_finds_what_a_python_lacks() -> None:
    command = [sys.executable, "-c", session_module._PROBE, "lakelsm", "no_such_package"]
    assert subprocess.run(command, capture_output=True, text=True).stdout.split() == [VERSION, "no_such_package"]


def test_a_session_that_has_ended_is_an_error() -> None:
    with pytest.raises(SparkUnavailableError, match=r"session has ended.* running one\. Without Spark: call to_arrow\.$"):
        resolve_session(session_of(sys.executable, _jsc=None), "call to_arrow")


def frame(jsc: object = object(), streaming: bool = False) -> Any:
    """Return a DataFrame of a session without a JVM."""
    session = SimpleNamespace(sparkContext=SimpleNamespace(_jsc=jsc))
    members = {"__module__": "pyspark.sql.classic.dataframe", "sparkSession": session, "isStreaming": streaming}
    return object.__new__(type("DataFrame", (DataFrame,), {**members, "__init__": lambda self: None}))


def test_a_classic_frame_of_a_running_session_is_returned_unchanged() -> None:
    given = frame()
    assert checked_frame(given) is given


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (frame(jsc=None), "its Spark session has ended"),
        (frame(streaming=True), r"frame: a stream cannot .*foreachBatch\(.*batch_id=batch_id"),
    ],
    ids=["an ended session", "a stream"],
)
def test_a_frame_whose_rows_tasks_cannot_write_is_refused_with_the_remedy(given: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        checked_frame(given)
    with pytest.raises(InvalidInputError, match=message.replace("frame:", "source:")):
        checked_frame(given, "source")
