"""The engine of a session: nothing is started before it is needed."""

from __future__ import annotations

import pytest


def test_an_engine_starts_no_session_before_it_runs_something(monkeypatch: pytest.MonkeyPatch) -> None:
    from lakelsm.frames import spark_engine

    asked = []
    monkeypatch.setattr(spark_engine, "resolve_session", lambda spark: asked.append(spark))
    engine = spark_engine.SparkEngine(None)
    assert asked == []
    engine.runner  # noqa: B018
    assert asked == [None]
