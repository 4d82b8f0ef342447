"""The Spark session that lakelsm works in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from pyspark.sql import SparkSession

from lakelsm.errors import LakelsmError

_MINIMUM_JAVA = 17
#: The environment variable by which spark-submit tells its Python program where its JVM is.
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
_INSTALL_JAVA = "install one (Debian/Ubuntu: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"


class SparkUnavailableError(LakelsmError):
    """No Spark session could be had; the message says what to install."""


def resolve_session(spark: SparkSession | None = None) -> SparkSession:
    """Return the session given, else the active one, else a new one.

    Under ``spark-submit`` the new one is as the command line and its properties say; elsewhere it is a local one whose
    workers run this same Python. Raises SparkUnavailableError, with the install command, where a session has to be
    started and no JDK 17+ is found.
    """
    found = spark or SparkSession.getActiveSession()
    if found is not None:
        return found
    if _SUBMITTED in os.environ:
        return SparkSession.builder.getOrCreate()
    _require_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return (
        SparkSession.builder.master("local[*]")
        .appName("lakelsm")
        .config("spark.pyspark.python", sys.executable)
        .config("spark.sql.shuffle.partitions", str(max(8, 2 * (os.cpu_count() or 1))))
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not java or not os.path.exists(java):
        raise SparkUnavailableError(
            f"Spark needs a Java runtime {_MINIMUM_JAVA} or newer and none was found: {_INSTALL_JAVA}."
        )
    text = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = _major_version(text)
    if version is not None and version < _MINIMUM_JAVA:
        raise SparkUnavailableError(
            f"Spark needs a Java runtime {_MINIMUM_JAVA} or newer, and {java} is version {version}: {_INSTALL_JAVA}."
        )


def _major_version(text: str) -> int | None:
    """The major version in the output of ``java -version`` ('1.8.0_292' is 8); None if there is none."""
    quoted = text.split('"')
    numbers = quoted[1].split(".") if len(quoted) > 1 else []
    if not numbers or not numbers[0].isdigit():
        return None
    return int(numbers[1]) if numbers[0] == "1" and len(numbers) > 1 else int(numbers[0])
