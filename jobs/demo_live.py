"""Data of the fifth act: feeds as files for streams, SQL on a stream of changes, and the answers of plain pandas."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import demo_delays as delays
import demo_feeds as feeds
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from demo_records import records

KEY = ["carrier", "airport"]
COUNTS = ["departures", "late_out", "arrivals", "late_in"]
TOTALS = pa.schema(
    [
        *(pa.field(name, pa.string(), nullable=False) for name in KEY),
        *(pa.field(name, pa.int64()) for name in COUNTS),
    ]
)
#: Minutes of delay from which a departure is late.
LATE = 120
LATE_FLIGHTS = pa.schema(
    [*(feeds.SCHEMA.field(name) for name in feeds.KEY), ("dep_delay", pa.int32()), ("airline", pa.string())]
)

#: Turns changes of a flight into rows of the totals: its departure at the origin, its arrival at the destination.
COUNTED = """\
SELECT rowkind, carrier, event.* FROM (
  SELECT rowkind, carrier, explode(array(
    named_struct('airport', origin, 'departures', 1L, 'late_out', dep_delay, 'arrivals', 0L, 'late_in', 0),
    named_struct('airport', dest, 'departures', 0L, 'late_out', 0, 'arrivals', 1L, 'late_in', arr_delay))) AS event
  FROM changes)
WHERE event.airport IS NOT NULL AND event.late_out IS NOT NULL AND event.late_in IS NOT NULL"""
#: Changes of late flights. A flight whose delay becomes shorter has its last row as -U.
LATE_CHANGES = f"SELECT rowkind, {', '.join(feeds.KEY)}, dep_delay FROM changes WHERE dep_delay > {LATE}"


def days(number: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the flights of the first days of January, and the weather."""
    flights = feeds.load_timetable(1)
    return flights[flights["day"] <= number], feeds.load_weather()


def split(flights: pd.DataFrame, weather: pd.DataFrame) -> tuple[list[feeds.Delivery], list[feeds.Delivery]]:
    """Return the deliveries of the feeds, whose order across feeds does not matter, and the withdrawals after them."""
    stream = list(feeds.deliveries(flights, weather))
    withdrawn = [delivery for delivery in stream if feeds.OP in delivery.rows.column_names]
    return [delivery for delivery in stream if delivery not in withdrawn], withdrawn


def write_files(deliveries: Sequence[feeds.Delivery], folder: Path) -> int:
    """Write each delivery as a file in the folder of its feed. Return the number of rows."""
    for number, delivery in enumerate(deliveries):
        path = folder / delivery.feed.name / f"{number:02}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(delivery.rows, path)
        os.utime(path, (number, number))  # A stream reads the oldest file first.
    return sum(len(delivery.rows) for delivery in deliveries)


def totals(flights: pa.Table) -> pd.DataFrame:
    """Return the expected totals, in key order, computed by plain pandas from the final rows."""
    return delays.totals(flights.to_pandas())[[*KEY, *COUNTS]]


def late_flights(flights: pa.Table, renamed: dict[str, str]) -> pa.Table:
    """Return the expected late flights, in key order. ``renamed`` has airlines with other names than the records'."""
    rows = flights.to_pandas()
    names = records("airlines").set_index("carrier")["name"].to_dict() | renamed
    rows = rows[rows["dep_delay"] > LATE].sort_values(feeds.KEY)
    rows = rows.assign(airline=rows["carrier"].map(names))
    columns = [pa.array(rows[field.name], from_pandas=True).cast(field.type) for field in LATE_FLIGHTS]
    return pa.table(columns, schema=LATE_FLIGHTS)
