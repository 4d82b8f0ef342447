"""The engine of a session: nothing is started before it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_an_engine_starts_no_session_before_it_runs_something(monkeypatch: pytest.MonkeyPatch) -> None:
    from lakelsm.frames import spark_engine

    asked = []
    monkeypatch.setattr(spark_engine, "resolve_session", lambda spark: asked.append(spark))
    engine = spark_engine.SparkEngine(None)
    assert asked == []
    engine.runner  # noqa: B018
    assert asked == [None]


def test_times_are_of_the_sessions_zone(spark: SparkSession) -> None:
    from lakelsm.frames.spark_engine import SparkEngine

    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "+02:00")
    try:
        assert SparkEngine(spark).millis_of("1970-01-01 02:00:01") == 1000
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
