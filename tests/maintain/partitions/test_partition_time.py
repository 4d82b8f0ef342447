"""The times in partition values, as Paimon's PartitionTimeExtractor reads them."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.maintain.partitions.partition_time import PartitionTimes


def read(texts: dict[str, str | None], pattern: str | None = None, formatter: str | None = None) -> datetime | None:
    millis = PartitionTimes(list(texts), pattern, formatter).millis(list(texts.values()))
    return None if millis is None else datetime(1970, 1, 1) + timedelta(milliseconds=millis)


@pytest.mark.parametrize(
    ("texts", "pattern", "formatter", "time"),
    [
        ({"dt": "2023-01-01"}, None, None, datetime(2023, 1, 1)),
        ({"dt": "2023-1-1 2:3:4"}, None, None, datetime(2023, 1, 1, 2, 3, 4)),
        ({"dt": "2023-01-01 20:08:08.5"}, None, None, datetime(2023, 1, 1, 20, 8, 8, 500_000)),
        ({"dt": "2023-13-01"}, None, None, datetime(2024, 1, 1)),
        ({"dt": "2023-02-30"}, None, None, datetime(2023, 3, 2)),
        ({"year": "2023", "month": "01", "day": "05"}, "$year-$month-$day", None, datetime(2023, 1, 5)),
        ({"dt": "2023-01-01", "hour": "7"}, "$dt $hour:00:00", None, datetime(2023, 1, 1, 7)),
        ({"dt": "20230101"}, None, "yyyyMMdd", datetime(2023, 1, 1)),
        ({"dt": "20230101"}, "$dt", "yyyyMMdd", datetime(2023, 1, 1)),
        ({"dt": "2023/1/9", "hour": "8"}, "$dt $hour", "yyyy/M/d H", datetime(2023, 1, 9, 8)),
        ({"dt": "2023.02.31"}, None, "yyyy.MM.dd", datetime(2023, 2, 28)),
        ({"dt": "230215T1205"}, None, "yyMMdd'T'HHmm", datetime(2023, 2, 15, 12, 5)),
        ({"dt1": "31", "dt": "2023-12"}, "$dt-$dt1", None, datetime(2023, 12, 31)),
        ({"dt": "2023-01-01"}, "$dt $other", "yyyy-MM-dd '$other'", datetime(2023, 1, 1)),
        ({"dt": "20230101"}, None, "yyyy-MM-dd", None),
        ({"dt": "2023-13-01"}, None, "yyyy-MM-dd", None),
        ({"dt": "2023-01"}, None, "yyyy-MM", None),
        ({"dt": "x"}, None, None, None),
        ({"dt": None}, None, None, None),
        ({"dt": "2023-01-01", "hour": None}, "$dt $hour:00:00", None, None),
        ({"dt": "2023-01-01", "hour": None}, "$dt", None, datetime(2023, 1, 1)),
        ({"dt": "2023-01-01", "hour": None}, None, None, datetime(2023, 1, 1)),
        ({"dt": "a", "hour": "2023-01-01"}, None, None, None),
    ],
)
def test_a_time_is_read_by_pattern_and_formatter(
    texts: dict[str, str | None], pattern: str | None, formatter: str | None, time: datetime | None
) -> None:
    assert read(texts, pattern, formatter) == time


@pytest.mark.parametrize(
    "formatter", ["yyyy-MMM-dd", "yyyy-MM-dd hh a", "[yyyy]", "yyyyyy", "yyyy-DDD", "dd dd", "YYYY-MM-dd"]
)
def test_unsupported_formatters_are_refused(formatter: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"partition\.timestamp-formatter"):
        read({"dt": "2023-01-01"}, None, formatter)


def test_a_pattern_with_an_unknown_column_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"timestamp-pattern.*\$nope is not a partition column.* are dt, hour\."):
        read({"dt": "2023-01-01", "hour": "1"}, "$dt $nope:00:00", None)
    assert read({"dt": "2023-01-01"}, "$$dt", "'$'yyyy-MM-dd") == datetime(2023, 1, 1)


@given(time=st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31)))
def test_each_time_is_read_back_from_its_text(time: datetime) -> None:
    whole = time.replace(microsecond=0)
    text = f"{whole.year:04}-{whole:%m-%d %H:%M:%S}"
    assert read({"dt": text}) == read({"dt": text}, None, "yyyy-MM-dd HH:mm:ss") == whole
    assert read({"dt": f"{whole.year:04}{whole:%m%d}"}, None, "yyyyMMdd") == whole.replace(hour=0, minute=0, second=0)
