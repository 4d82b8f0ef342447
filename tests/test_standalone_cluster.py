"""Writes and compactions on a real Spark cluster: a master, a worker and two executors on loopback."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from tests.class_archive import jvm_options
from tests.compact.local_table import LocalTable

ROOT = Path(__file__).resolve().parents[1]
SPARK_BIN = Path(pyspark.__file__).parent / "bin"
EXECUTORS = 2
#: Maximum time of one step in seconds, also on a busy machine.
PATIENCE = 240

#: An application that never names a session: it writes rows, then new versions and deletes, and runs the compaction job.
#: A lookup of a table with a missing data file fails in an executor.
WRITER = """
import json, pathlib, sys
from pyspark.sql import SparkSession
from lakelsm import Catalog
from lakelsm.cli.main import main
from lakelsm.spark.session import resolve_session

table = Catalog(sys.argv[1]).create_table(
    "d.t", "id BIGINT, v STRING", primary_key=["id"], options={"bucket": "4", "write-only": "true"}
)
spark = resolve_session()
table.write(spark.range(1000).selectExpr("id", "concat('old-', id) AS v"))
changes = spark.range(1000).selectExpr("id", "concat('new-', id) AS v", "if(id < 990, '+U', '-D') AS op")
result = table.write(changes, row_kind="op")
lost = Catalog(sys.argv[1]).create_table("d.lost", {"id": [1], "v": ["x"]}, primary_key="id", load=True)
for file in pathlib.Path(sys.argv[1].removeprefix("file://")).glob("d.db/lost/bucket-*/data-*"):
    file.unlink()
try:
    spark.range(3).transform(lost.lookup_join("id")).collect()
except Exception:
    pass
print(json.dumps([spark.sparkContext.master, result.snapshot_id, table.read().count()]))
status = main(["compact", "--warehouse", sys.argv[1], *"--table d.t --full --report json --commit-every 2".split()])
spark.stop()
sys.exit(status)
"""


def environment(scratch: Path) -> dict[str, str]:
    """Return the environment of master, workers, executors and drivers; lakelsm is importable everywhere."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {
        **os.environ,
        "PYTHONPATH": path,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(scratch / "local"),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": jvm_options(),
        "SPARK_NO_DAEMONIZE": "1",
    }


@contextlib.contextmanager
def running(command: list[str], scratch: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process in a separate process group, and end the whole group after the block."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment(scratch), stdout=output, stderr=output, start_new_session=True
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


def wait_for(pattern: str, log: Path, process: subprocess.Popen[bytes]) -> str:
    """Return the first group of a pattern in a process's log, when it appears."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found[1]
        if process.poll() is not None:
            break
        time.sleep(0.1)
    pytest.fail(f"{pattern} is not in the log of {process.args!r}:\n{log.read_text(errors='replace')[-4000:]}")


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """Start a cluster with room for two executors of one core each, and yield its URL."""
    daemon = [str(SPARK_BIN / "spark-class")]
    address = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    with contextlib.ExitStack() as processes:
        log = tmp_path / "master.log"
        command = [*daemon, "org.apache.spark.deploy.master.Master", *address]
        url = wait_for(r"(spark://127\.0\.0\.1:[1-9]\d*)", log, processes.enter_context(running(command, tmp_path, log)))
        log = tmp_path / "worker.log"
        size = ["--cores", str(EXECUTORS), "--memory", "2g", "--work-dir", str(tmp_path / "worker")]
        command = [*daemon, "org.apache.spark.deploy.worker.Worker", *address, *size, url]
        wait_for("(Successfully registered with master)", log, processes.enter_context(running(command, tmp_path, log)))
        yield url


def submit(scratch: Path, master: str, *arguments: str) -> tuple[int, str, str]:
    """Run an application on the cluster by spark-submit, and return its exit status, output and log."""
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": jvm_options(),
        "spark.executor.extraJavaOptions": jvm_options(),
        # No task starts before both executors have registered.
        "spark.cores.max": str(EXECUTORS),
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    }
    command = [str(SPARK_BIN / "spark-submit"), "--properties-file", "spark-defaults.conf", "--master", master]
    command += [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    done = subprocess.run(
        [*command, *arguments],
        cwd=ROOT,
        env=environment(scratch),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.spark
@pytest.mark.skipif(os.name != "posix", reason="the processes of a cluster are ended as POSIX process groups")
def test_a_table_is_written_and_compacted_on_a_cluster(master: str, tmp_path: Path) -> None:
    warehouse = tmp_path / "wh"
    writer = tmp_path / "writer.py"
    writer.write_text(WRITER, encoding="utf-8")
    status, out, log = submit(tmp_path, master, str(writer), warehouse.as_uri())
    assert status == 0, out + log
    written, compacted = map(json.loads, out.splitlines()[-2:])
    assert written == [master, 2, 990]
    assert (compacted["status"], compacted["snapshot_ids"], compacted["rows_written"]) == ("done", [3, 4], 990)
    logs = [path.read_text(errors="replace") for path in tmp_path.glob("worker/app-*/*/stderr")]
    assert len(logs) == EXECUTORS
    assert any("Table d.lost: a lookup in an executor failed: " in each for each in logs)

    table = LocalTable(warehouse / "d.db" / "t")
    assert table.levels() == [5] * 4
    assert table.rows() == [(number, f"new-{number}") for number in range(990)]
