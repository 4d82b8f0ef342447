"""Functions of dates and times with literal patterns, and intervals."""

from __future__ import annotations

from datetime import date, datetime, timezone

import pytest

from lakelsm.errors import InvalidInputError, UnsupportedFeatureError
from lakelsm.expressions import duckdb_casts
from tests.sql.local.bound import type_of, value_of

TIME = "TIMESTAMP_NTZ '2024-02-29 13:04:05.678901'"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (f"date_format({TIME}, 'yyyy-MM-dd HH:mm:ss.SSS')", "2024-02-29 13:04:05.678"),
        (f"date_format({TIME}, 'EEE, d MMMM yy h:m a')", "Thu, 29 February 24 1:4 PM"),
        ("date_format(DATE '0099-01-02', 'yyyy''T''y')", "0099T99"),
        ("date_format(NULL, 'y')", None),
        ("trunc(DATE '2024-05-17', 'MM')", date(2024, 5, 1)),
        ("trunc(DATE '2024-05-17', 'week')", date(2024, 5, 13)),
        ("trunc(DATE '2024-05-17', 'x')", None),
        ("to_date('17/05/2024', 'dd/MM/yyyy')", date(2024, 5, 17)),
        ("to_date('20240517', 'yyyyMMdd')", date(2024, 5, 17)),
        ("to_date(NULL, 'yyyyMMdd')", None),
        ("to_date('2024-05-17')", date(2024, 5, 17)),
        (f"to_date({TIME})", date(2024, 2, 29)),
        ("to_timestamp_ntz('2024-05-17 01:02:03')", datetime(2024, 5, 17, 1, 2, 3)),
        (f"{TIME} + INTERVAL 36 HOURS", datetime(2024, 3, 2, 1, 4, 5, 678901)),
        (f"{TIME} - INTERVAL 1 DAY 2 MINUTES", datetime(2024, 2, 28, 13, 2, 5, 678901)),
        (f"{TIME} + INTERVAL '1 day 1.5 seconds'", datetime(2024, 3, 1, 13, 4, 7, 178901)),
        (f"{TIME} + INTERVAL -1 YEAR", datetime(2023, 2, 28, 13, 4, 5, 678901)),
        ("DATE '2024-05-17' - INTERVAL 1 WEEK", date(2024, 5, 10)),
        ("DATE '2024-03-31' - INTERVAL '1' MONTH", date(2024, 2, 29)),
        ("unix_date(DATE '1970-01-03')", 2),
        (f"date_trunc('month', {TIME})", datetime(2024, 2, 1, tzinfo=timezone.utc)),
        (f"date_trunc('x', {TIME})", None),
        (f"hour(date_trunc('HOUR', {TIME}))", 13),
        ("to_timestamp('2024-05-17 01:02:03')", datetime(2024, 5, 17, 1, 2, 3, tzinfo=timezone.utc)),
        ("DATE '2024-05-17' + INTERVAL 3 HOURS", datetime(2024, 5, 17, 3, tzinfo=timezone.utc)),
        ("date_format(timestamp_seconds(-1) + INTERVAL 1 DAY, 'dd HH:mm:ss')", "01 23:59:59"),
        ("from_unixtime(1715907723)", "2024-05-17 01:02:03"),
        ("unix_timestamp(timestamp_millis(-1500))", -1),
        ("timestamp_micros(1)", datetime(1970, 1, 1, microsecond=1, tzinfo=timezone.utc)),
        ("current_date = date(now()) AND current_timestamp() = now() AND now() > DATE '2024-01-01'", True),
        (f"CAST({TIME} AS TIMESTAMP) = {TIME}", True),
        ("CAST(TIMESTAMP '2024-01-02 03:04:05' AS STRING)", "2024-01-02 03:04:05"),
    ],
)
def test_values(expression: str, value: object) -> None:
    assert value_of(expression) == value


@pytest.mark.parametrize(
    "expression", ["current_date", "now() > DATE '2024-01-01'", f"date_trunc('month', {TIME})", "TIMESTAMP '2024-01-01'"]
)
def test_times_with_a_time_zone_are_refused_if_the_machine_has_another_one(
    expression: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duckdb_casts, "utc_zone", lambda: None)
    with pytest.raises(UnsupportedFeatureError, match="engine='spark'"):
        value_of(expression)


@pytest.mark.parametrize("text", ["to_date('1/5/2024', 'dd/MM/yyyy')", "to_date('2024-02-30', 'yyyy-MM-dd')"])
def test_texts_that_are_no_dates_are_errors(text: str) -> None:
    with pytest.raises(InvalidInputError, match="SQL: "):
        value_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "date_format(DATE '2024-01-01', CAST(NULL AS STRING))",
        "trunc(DATE '2024-01-01', CAST(NULL AS STRING))",
        "to_date('2024', CAST(NULL AS STRING))",
        "to_date()",
        "trunc()",
        "date_format(DATE '2024-01-01', 'u')",
        "date_format(DATE '2024-01-01', '{x}')",
        "date_format(DATE '2024-01-01', '')",
        "to_date('x', 'yyyy-M-d')",
        "date_trunc('month', '2024-01-01')",
        "to_timestamp('2024', 'yyyy')",
        "DATE '2024-01-01' + INTERVAL 1 MONTH 1 DAY",
        "DATE '2024-01-01' + INTERVAL 1 QUARTER",
        "DATE '2024-01-01' * INTERVAL 1 DAY",
        "INTERVAL 1 DAY - DATE '2024-01-01'",
        "1 + INTERVAL 1 DAY",
    ],
)
def test_other_patterns_and_intervals_are_refused_by_name(text: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="engine='spark'"):
        value_of(text)


def test_dates_stay_dates() -> None:
    assert type_of("DATE '2024-01-01' + INTERVAL 1 DAY") == "date32[day]"
    assert type_of("trunc(DATE '2024-01-01', 'year')") == "date32[day]"
