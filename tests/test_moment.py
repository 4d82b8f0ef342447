"""Points in time: the valid forms, and the instant of each."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pandas
import pytest

from lakelsm.errors import InvalidInputError
from lakelsm.moment import Moment

UTC, TOKYO, BERLIN = timezone.utc, ZoneInfo("Asia/Tokyo"), ZoneInfo("Europe/Berlin")


@pytest.fixture(params=["UTC", "Asia/Tokyo", "America/Los_Angeles"])
def local(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", request.param)
        time.tzset()
        yield request.param
    time.tzset()


def instant(moment: Moment, zone: tzinfo = UTC) -> str:
    found = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=moment.millis(zone))
    return found.isoformat(sep=" ").removesuffix("+00:00")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-07-01 12:00:00", "2024-07-01 12:00:00"),
        ("2024-07-01T12:00:00", "2024-07-01 12:00:00"),
        (" 2024-07-01 12:00 ", "2024-07-01 12:00:00"),
        ("2024-07-01", "2024-07-01 00:00:00"),
        ("2024-07-01 12:00:00.5", "2024-07-01 12:00:00.500000"),
        ("2024-07-01 12:00:00.123999999", "2024-07-01 12:00:00.123000"),
        ("1969-12-31 23:59:59.9999", "1969-12-31 23:59:59.999000"),
        ("2024-07-01 12:00:00Z", "2024-07-01 12:00:00"),
        ("2024-07-01T12:00:00.250+09:00", "2024-07-01 03:00:00.250000"),
        ("2024-07-01 12:00:00 -0530", "2024-07-01 17:30:00"),
        ("2024-07-01 12:00-08", "2024-07-01 20:00:00"),
        ("2024-07-01 12:00:00 Asia/Tokyo", "2024-07-01 03:00:00"),
        ("2024-07-01 Asia/Tokyo", "2024-06-30 15:00:00"),
        ("2024-07-01 12:00:00 UTC", "2024-07-01 12:00:00"),
        ("2024-07-01 12:00:00 GMT-08:00", "2024-07-01 20:00:00"),
    ],
)
def test_a_text_is_the_same_instant_on_every_machine(local: str, text: str, expected: str) -> None:
    assert instant(Moment.of_text(text)) == expected


def test_a_text_without_a_zone_is_in_the_tables_zone(local: str) -> None:
    assert instant(Moment.of_text("2024-07-01 12:00:00"), TOKYO) == "2024-07-01 03:00:00"
    assert instant(Moment.of_text("2024-07-01"), TOKYO) == "2024-06-30 15:00:00"
    assert instant(Moment.of_text("2024-07-01 12:00:00 Europe/Berlin"), TOKYO) == "2024-07-01 10:00:00"
    assert instant(Moment.of_datetime(datetime(2024, 7, 1, 12, tzinfo=BERLIN)), TOKYO) == "2024-07-01 10:00:00"


def test_a_datetime_without_a_tzinfo_is_pythons_local_time(local: str) -> None:
    for value in (datetime(2024, 7, 1, 12), datetime(1960, 1, 1, 0, 0, 0, 999_999), pandas.Timestamp("2024-07-01 12:00")):
        expected = value.replace(tzinfo=ZoneInfo(local)) - datetime(1970, 1, 1, tzinfo=UTC)
        assert Moment.of_datetime(value).millis(TOKYO) == expected // timedelta(milliseconds=1)


def test_a_repeated_local_time_is_the_earlier_one_and_a_skipped_one_is_moved_forward() -> None:
    assert instant(Moment.of_text("2024-10-27 02:30:00"), BERLIN) == "2024-10-27 00:30:00"
    assert instant(Moment.of_text("2024-10-27 02:30:00 Europe/Berlin")) == "2024-10-27 00:30:00"
    assert instant(Moment.of_text("2024-10-27 02:30:00+01:00"), BERLIN) == "2024-10-27 01:30:00"
    assert instant(Moment.of_datetime(datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=BERLIN))) == "2024-10-27 01:30:00"
    assert instant(Moment.of_text("2024-03-31 02:30:00"), BERLIN) == "2024-03-31 01:30:00"


def test_nanoseconds_of_pandas_are_cut_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value = pandas.Timestamp("2024-07-01 12:00:00.000999999", tz="Asia/Tokyo")
        assert instant(Moment.of_datetime(value)) == "2024-07-01 03:00:00"


@pytest.mark.parametrize(
    "text",
    [
        "", "noon", "20240701", "2024-7-1", "2024-13-01", "2024-02-30", "2024-07-01 24:00:00", "2024-07-01 12:00:60",
        "2024-07-01 12", "2024-07-01 12:00:00+25:00", "2024-07-01 12:00:00+09:00 Asia/Tokyo", "2024-07-01+09:00",
        "2024-07-01 12:00:00 Nowhere/City", "2024-07-01 12:00:00 Asia", "2024-07-01 12:00:00 ../etc/passwd",
        "2024-07-01 12:00:00\0", "٢٠٢٤-٠٧-٠١", "1719835200000", "10000-01-01", "2024-07-01 12:00:00 \ud800",
    ],
)  # fmt: skip
def test_a_text_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Moment.of_text(text)


def test_times_without_an_offset_or_outside_the_calendar_are_refused() -> None:
    class Broken(tzinfo):
        def utcoffset(self, _: datetime | None) -> timedelta:
            raise RuntimeError("no offset")

    with pytest.raises(ValueError, match="no known offset"):
        Moment.of_datetime(datetime(2024, 7, 1, tzinfo=Broken()))
    for text, zone in (("0001-01-01 00:00:00", TOKYO), ("9999-12-31 23:00:00", timezone(-timedelta(hours=8)))):
        with pytest.raises(InvalidInputError, match="years 1 to 9999"):
            Moment.of_text(text).millis(zone)
        assert Moment.of_text(text).millis(UTC)
