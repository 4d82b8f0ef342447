"""The Spark session of the tests and of the conformance runner."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from tests.class_archive import jvm_options

ROOT = Path(__file__).resolve().parents[1]


def build_session(app: str, scratch: Path, **conf: str) -> SparkSession:
    """Start a local session of two cores, for many small jobs; Spark's files are written to ``scratch``.

    ``conf`` overrides settings; a key is written with ``__`` for each dot (``spark__driver__memory="1g"``).
    """
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder
    for key, value in (settings(app, scratch) | {key.replace("__", "."): value for key, value in conf.items()}).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def settings(app: str, scratch: Path) -> dict[str, str]:
    """Return the settings of a local session, also of that of a Connect server."""
    return {
        "spark.master": "local[2]",
        "spark.app.name": app,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.default.parallelism": "2",
        "spark.sql.shuffle.partitions": "2",
        # Each sort and each hash table takes a page, of 64 MB by default, and the JVM clears and collects it.
        "spark.buffer.pageSize": "1m",
        # Otherwise each function of columns sends the line of its call to the JVM, with eight calls.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        # Workers are forked with all modules loaded.
        "spark.python.daemon.module": "tests.worker_daemon",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        # Tasks must process rows in memory as they process files, instead of the planner.
        "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
        "spark.sql.warehouse.dir": (scratch / "spark-warehouse").as_uri(),
        "spark.local.dir": str(scratch / "spark-local"),
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={scratch} {jvm_options()}",
    }
