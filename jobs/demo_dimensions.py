"""Records of the fourth act: flights in deliveries, and the tables of planes, airlines and airports to join.

Plain pandas and Arrow, no Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
from demo_records import records

#: The columns of a delivery.
FLIGHT = pa.schema([(name, pa.string()) for name in ("carrier", "tailnum", "dest")])
PLANES = pa.schema(
    [pa.field("tailnum", pa.string(), nullable=False), ("manufacturer", pa.string()), ("seats", pa.int32())]
)
AIRLINES = pa.schema([pa.field("carrier", pa.string(), nullable=False), ("name", pa.string())])
AIRPORTS = pa.schema([pa.field("faa", pa.string(), nullable=False), ("name", pa.string())])

#: Planes of this year are registered after the first delivery.
NEW_PLANES = 2013
#: On 9 December 2013 US Airways and American Airlines merged. The airline is renamed before the last delivery.
MERGED, MERGED_NAME = "US", "American Airlines Inc. (US Airways)"

GROUPS = ["airline", "manufacturer"]
COUNTS = ["flights", "planes", "seats", "airports"]


@dataclass(frozen=True)
class Dimensions:
    """The three tables at one time."""

    planes: pa.Table
    airlines: pa.Table
    airports: pa.Table


def deliveries(flights: pd.DataFrame, number: int = 4) -> list[pa.Table]:
    """Split the flights, in their order, into ``number`` parts of about the same size."""
    size = -(-len(flights) // number)
    return [_arrow(flights.iloc[start : start + size], FLIGHT) for start in range(0, len(flights), size)]


def dimensions() -> Dimensions:
    """Return the tables before the first delivery: without the new planes."""
    planes = records("planes")
    return Dimensions(
        _arrow(planes[planes["year"] != NEW_PLANES], PLANES),
        _arrow(records("airlines"), AIRLINES),
        _arrow(records("airports"), AIRPORTS),
    )


def new_planes() -> pa.Table:
    """Return the planes that are registered late."""
    planes = records("planes")
    return _arrow(planes[planes["year"] == NEW_PLANES], PLANES)


def merged_airline() -> pa.Table:
    """Return the airline's row with its new name."""
    return pa.table([[MERGED], [MERGED_NAME]], schema=AIRLINES)


def answer(parts: Sequence[pa.Table]) -> pd.DataFrame:
    """Return the expected counts by airline and manufacturer, computed by plain pandas.

    The counts are flights, known planes, their seats, and known airports. Each delivery is joined with the tables as
    they were at its time.
    """
    planes, airlines, airports = records("planes"), records("airlines"), records("airports")
    renamed = airlines.assign(name=airlines["name"].where(airlines["carrier"] != MERGED, MERGED_NAME))
    counted = []
    for number, part in enumerate(parts):
        known = planes[planes["year"] != NEW_PLANES] if number == 0 else planes
        named = renamed if number == len(parts) - 1 else airlines
        rows = part.to_pandas().merge(known, on="tailnum", how="left")
        rows = rows.merge(named.rename(columns={"name": "airline"}), on="carrier", how="left")
        rows = rows.merge(airports.rename(columns={"name": "airport"}), left_on="dest", right_on="faa", how="left")
        groups = rows.groupby(GROUPS, dropna=False)
        counted.append(
            groups.agg(
                flights=("carrier", "size"),
                planes=("seats", "count"),
                seats=("seats", "sum"),
                airports=("airport", "count"),
            ).reset_index()
        )
    return summed(counted)


def summed(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the sums of all deliveries, most flights first."""
    sums = pd.concat(parts).groupby(GROUPS, dropna=False)[COUNTS].sum().astype("int64").reset_index()
    sums = sums.fillna({"manufacturer": "unknown"})
    return sums.sort_values(["flights", *GROUPS], ascending=[False, True, True]).reset_index(drop=True)


def _arrow(frame: pd.DataFrame, schema: pa.Schema) -> pa.Table:
    columns = [pa.array(frame[field.name], from_pandas=True).cast(field.type) for field in schema]
    return pa.table(columns, schema=schema)
