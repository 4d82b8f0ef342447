"""A session for many small queries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.engines import TableEngine


@pytest.fixture
def interpreted(spark: SparkSession) -> Iterator[SparkSession]:
    """Give a session in which Spark compiles no code, which takes most of the time of a small query."""
    settings = {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
    }
    before = {key: spark.conf.get(key) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    yield spark
    for key, value in before.items():
        spark.conf.set(key, str(value))


@pytest.fixture
def quick_engine(engine: TableEngine, request: pytest.FixtureRequest) -> TableEngine:
    """Give each engine in turn, with the session of `interpreted`."""
    if engine.spark is not None:
        request.getfixturevalue("interpreted")
    return engine
