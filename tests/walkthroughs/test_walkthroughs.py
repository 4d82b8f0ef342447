"""The scripts of five users run without changes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.class_archive import jvm_options

HERE = Path(__file__).resolve().parent


def run(name: str, **environment: str) -> None:
    done = subprocess.run(
        [sys.executable, str(HERE / f"{name}.py")],
        env={**os.environ, "PYTHONPATH": str(HERE.parents[1]), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["analyst", "cdc_engineer", "platform_engineer", "service_developer"])
def test_a_user_without_spark(name: str) -> None:
    run(name, JAVA_HOME="", PATH="")


@pytest.mark.spark
def test_a_spark_user() -> None:
    submit = "--conf spark.sql.shuffle.partitions=4 pyspark-shell"  # Spark's default, 200, is for a cluster.
    run("spark_user", JDK_JAVA_OPTIONS=jvm_options(), PYSPARK_SUBMIT_ARGS=submit)
