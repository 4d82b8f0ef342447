"""Delays by carrier and airport: the SQL from changes to counts, and the answers of plain pandas."""

from __future__ import annotations

from typing import Any

import demo_delays as delays
import pandas as pd
import pytest
from pyspark.sql import SparkSession

COLUMNS = ["carrier", "origin", "dest", "dep_delay", "arr_delay", "precip"]
FLIGHTS: list[tuple[Any, ...]] = [
    ("UA", "EWR", "IAH", 10, 5, 0.1),  # in rain
    ("UA", "EWR", "IAH", -3, None, 0.0),  # diverted
    ("UA", "EWR", None, 4, 7, None),  # no timetable and no weather yet
    ("AA", "JFK", "EWR", None, None, 0.2),  # not departed
    ("UA", "IAH", "EWR", 20, 30, 0.0),
]
TOTALS: list[tuple[Any, ...]] = [
    ("UA", "EWR", 3, 11, 1, 10, 1, 30),
    ("UA", "IAH", 1, 20, 0, 0, 1, 5),
]
AIRLINES = pd.DataFrame({"carrier": ["UA"], "name": ["United"]})
AIRPORTS = pd.DataFrame({"faa": ["IAH"], "name": ["Houston"]})


@pytest.fixture
def flights() -> pd.DataFrame:
    return pd.DataFrame(FLIGHTS, columns=COLUMNS).astype({"dep_delay": "Int32", "arr_delay": "Int32"})


def test_a_flight_counts_at_its_origin_and_at_its_destination(flights: pd.DataFrame) -> None:
    assert delays.as_answer(delays.totals(flights)) == TOTALS


def test_no_flights_have_no_totals(flights: pd.DataFrame) -> None:
    assert delays.as_answer(delays.totals(flights.head(0))) == []


def test_an_airport_without_a_name_keeps_its_code(flights: pd.DataFrame) -> None:
    answer = delays.worst_answer(delays.totals(flights), AIRLINES, AIRPORTS)
    assert answer == [("United", "EWR", 1, 30), ("United", "Houston", 1, 5)]


def test_departures_in_rain_are_counted_by_airport(flights: pd.DataFrame) -> None:
    assert delays.rain_answer(delays.totals(flights)) == [("EWR", 3, 11, 1, 10), ("IAH", 1, 20, 0, 0)]


def test_the_sql_counts_changes_as_pandas_counts_flights_and_keeps_their_kinds(spark: SparkSession) -> None:
    schema = "rowkind STRING, carrier STRING, origin STRING, dest STRING, dep_delay INT, arr_delay INT, precip DOUBLE"
    wrong = ("UA", "EWR", "IAH", 60, 99, 0.3)
    changes = [("+I", *flight) for flight in FLIGHTS]
    changes += [("+I", *wrong), ("-U", *wrong), ("+U", *wrong), ("-D", *wrong)]
    spark.createDataFrame(changes, schema).createOrReplaceTempView("changes")
    rows = spark.sql(delays.COUNTED)
    assert rows.columns == ["rowkind", *delays.SCHEMA.names]
    found = rows.toArrow().to_pandas()
    sign = found["rowkind"].map({"+I": 1, "+U": 1, "-U": -1, "-D": -1})
    found[delays.COUNTS] = found[delays.COUNTS].mul(sign, axis=0)
    sums = found.groupby(delays.KEY)[delays.COUNTS].sum().reset_index()
    assert delays.as_answer(sums) == TOTALS


def test_the_queries_return_the_answers_of_pandas(spark: SparkSession, flights: pd.DataFrame) -> None:
    want = delays.totals(flights)
    cancelled = ("DL", "JFK", 0, 0, 0, 0, 0, 0)
    schema = "carrier STRING, airport STRING, " + ", ".join(f"{name} BIGINT" for name in delays.COUNTS)
    spark.createDataFrame([*TOTALS, cancelled], schema).createOrReplaceTempView("delays")
    for name, frame in (("airlines", AIRLINES), ("airports", AIRPORTS)):
        rows = [tuple(row) for row in frame.itertuples(index=False)]
        spark.createDataFrame(rows, ", ".join(f"{column} STRING" for column in frame)).createOrReplaceTempView(name)
    answers = [[tuple(row) for row in spark.sql(query).collect()] for query in (delays.TOTALS, delays.WORST_QUERY)]
    assert answers == [TOTALS, delays.worst_answer(want, AIRLINES, AIRPORTS)]
    assert [tuple(row) for row in spark.sql(delays.RAIN_QUERY).collect()] == delays.rain_answer(want)
