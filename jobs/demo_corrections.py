"""The third act's records: flights as they stood, then what came late. Plain pandas and Arrow, no Spark.

The board knows every flight with its departure, and the arrival of those that landed within an hour of their schedule.
Then the cancelled flights go, and those that landed later get their arrival: one flight in nine or so.
"""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
from demo_stream import ARRIVAL, OP, PRIMARY_KEY, to_arrow

#: Minutes after the scheduled arrival from which a flight's arrival is among the corrections.
LATE = 60


def _late(flights: pd.DataFrame) -> pd.Series:
    return flights["dep_time"].notna() & flights["arr_time"].notna() & (flights["arr_delay"] > LATE)


def board(flights: pd.DataFrame) -> pd.DataFrame:
    """The flights before the corrections: cancelled ones are still there, late arrivals are unknown, as are those of
    flights that never landed."""
    rows = flights.copy()
    rows.loc[rows["arr_time"].isna() | _late(flights), ARRIVAL] = None
    return rows.sort_values(list(PRIMARY_KEY))


def corrections(flights: pd.DataFrame) -> pa.Table:
    """The rows that change the board into `demo_stream.final_rows`, with a last column ``op`` (-D or +U)."""
    cancelled, late = flights[flights["dep_time"].isna()], flights[_late(flights)]
    kinds = pa.array(["-D"] * len(cancelled) + ["+U"] * len(late), pa.string())
    return to_arrow(pd.concat([cancelled, late])).append_column(OP, kinds)
