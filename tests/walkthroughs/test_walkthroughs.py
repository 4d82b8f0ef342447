"""The scripts of five users run without changes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
    run("spark_user")
