"""The Spark session of floors and lakelsm: the project's spark-defaults.conf without settings that would bias a
comparison."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pyspark.sql import SparkSession

from benchmarks.config import BenchConfig

Result = TypeVar("Result")

_PROPERTIES = Path(__file__).resolve().parent.parent / "spark-defaults.conf"
# Floors write parquet with Spark's defaults, and a benchmark prints no progress bars.
_LEFT_TO_SPARK = ("spark.sql.parquet.compression.codec", "spark.ui.showConsoleProgress", "spark.master")


def project_settings(path: Path = _PROPERTIES) -> dict[str, str]:
    """Return the settings of a Spark properties file (key, white space, value; ``#`` starts a comment line)."""
    settings: dict[str, str] = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            key, _, value = line.strip().partition(" ")
            if key and not key.startswith("#") and key not in _LEFT_TO_SPARK:
                settings[key] = value.strip()
    return settings


def open_session(config: BenchConfig) -> SparkSession:
    """Open a local session of ``config.cores`` cores with its scratch files below the working directory."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings = project_settings() | {
        "spark.master": f"local[{config.cores}]",
        "spark.app.name": "lakelsm-bench",
        "spark.driver.memory": config.driver_memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.local.dir": str(config.root / "spark-local"),
        "spark.sql.warehouse.dir": str(config.root / "spark-warehouse"),
    }
    if config.floor_codec:
        settings["spark.sql.parquet.compression.codec"] = config.floor_codec
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def in_session(run: Callable[[BenchConfig, SparkSession], Result]) -> Callable[[BenchConfig], Result]:
    """Return a function that measures in a new session and then stops it."""

    def opened(config: BenchConfig) -> Result:
        spark = open_session(config)
        try:
            return run(config, spark)
        finally:
            spark.stop()

    return opened
