"""Times as the Spark session reads them: its zone, its formats, and what is no time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.spark.times import millis_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOON = datetime(2024, 7, 1, 12, tzinfo=timezone.utc)
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@pytest.fixture
def new_york(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", "UTC")


def after_noon(spark: SparkSession, timestamp: str | datetime) -> timedelta:
    return timedelta(milliseconds=millis_of(spark, timestamp) - int(NOON.timestamp() * 1000))


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        ("2024-07-01 12:00:00", timedelta(0)),
        ("2024-07-01 12:59:59.999", timedelta(hours=1, milliseconds=-1)),
        ("2024-07-02", timedelta(hours=12)),
        ("2024-07-01 14:30:00+02:00", timedelta(minutes=30)),
        (NOON + timedelta(hours=1), timedelta(hours=1)),
        (datetime(2024, 7, 1, 13, 30), timedelta(hours=1, minutes=30)),
        (datetime(2024, 7, 1, 15, 0, tzinfo=timezone(timedelta(hours=2))), timedelta(hours=1)),
        (datetime(1969, 12, 31, 23, 59, 59, 999_999), EPOCH - NOON - timedelta(milliseconds=1)),
    ],
    ids=str,
)
def test_a_time_is_its_epoch_milliseconds_cut_downwards(
    spark: SparkSession, timestamp: str | datetime, expected: timedelta
) -> None:
    assert after_noon(spark, timestamp) == expected


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        ("2024-07-01 08:00:00", timedelta(0)),
        ("2024-07-01 09:59:59", timedelta(hours=2, seconds=-1)),
        (datetime(2024, 7, 1, 9, 0), timedelta(hours=1)),
        (NOON, timedelta(0)),
        (datetime(2024, 7, 1, 22, 0, tzinfo=ZoneInfo("Asia/Tokyo")), timedelta(hours=1)),
    ],
    ids=str,
)
def test_a_time_without_a_zone_is_in_the_sessions_and_a_zone_of_the_caller_counts(
    new_york: SparkSession, timestamp: str | datetime, expected: timedelta
) -> None:
    assert after_noon(new_york, timestamp) == expected


@pytest.mark.parametrize("text", ["yesterday-ish", "", "2024-13-01", "25:00"])
def test_a_text_that_is_no_time_is_refused_with_the_form(spark: SparkSession, text: str) -> None:
    with pytest.raises(InvalidInputError, match="YYYY-MM-DD"):
        millis_of(spark, text)
