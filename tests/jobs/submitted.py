"""Runs a job with ``spark-submit`` and this Python, as the README does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark

from tests.class_archive import jvm_options

ROOT = Path(__file__).resolve().parents[2]


def submit(job: str | Path, *arguments: str) -> subprocess.Popen[str]:
    """Start a file of ``jobs/``, or a file by its path."""
    command = [
        str(Path(pyspark.__file__).parent / "bin" / "spark-submit"),
        *("--properties-file", "spark-defaults.conf", "--conf", "spark.ui.enabled=false"),
        *("--driver-java-options", jvm_options()),
        str(Path("jobs", job)),
        *arguments,
    ]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": path,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
