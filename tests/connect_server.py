"""A Spark Connect server of the tests: a separate process with the settings of the tests' session, on loopback.

The classes of the server are in PySpark's wheel; the client needs ``pyspark[connect]``.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from tests.spark_session import ROOT, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STARTED = re.compile(r"server started at: \S*?:(\d+)")
#: Maximum time of the start in seconds, also on a busy machine.
_PATIENCE = 180


@contextlib.contextmanager
def connect_server(scratch: Path) -> Iterator[str]:
    """Run a server, and yield its URL."""
    confs = settings("lakelsm-connect", scratch) | {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.log.level": "INFO",
        # To compile code for small rows costs more than the rows.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.hadoop.fs.s3a.test-setting": "of the server",
    }
    java = confs.pop("spark.driver.extraJavaOptions").replace("-Xlog:disable", "")
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--driver-java-options", java]
    command += [part for key, value in confs.items() for part in ("--conf", f"{key}={value}")]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    log = scratch / "server.log"
    environment = {key: value for key, value in os.environ.items() if key not in ("SPARK_REMOTE", "SPARK_API_MODE")}
    environment |= {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=output, stderr=output, start_new_session=True
        )
    try:
        yield f"sc://127.0.0.1:{_port(log, process)}"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


def _port(log: Path, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + _PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        found = _STARTED.search(log.read_text(errors="replace"))
        if found is not None:
            return found[1]
        time.sleep(0.05)
    raise AssertionError(f"the Connect server did not start:\n{log.read_text(errors='replace')[-3000:]}")


def connect_session(url: str) -> SparkSession:
    """Return a new session of a server. PySpark's functions in this process remain those of classic sessions."""
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    session: SparkSession = ConnectSession.builder.remote(url).create()
    return session
