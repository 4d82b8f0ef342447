"""Records of the third act: flights as first known, then corrections. Plain pandas and Arrow, no Spark.

The board has every flight with its departure, and the arrival of flights that landed within an hour of their schedule.
The corrections delete cancelled flights and add late arrivals: about one flight in nine.
"""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
from demo_stream import ARRIVAL, OP, PRIMARY_KEY, to_arrow

#: An arrival that is more than this number of minutes late is a correction.
LATE = 60


def _late(flights: pd.DataFrame) -> pd.Series:
    return flights["dep_time"].notna() & flights["arr_time"].notna() & (flights["arr_delay"] > LATE)


def board(flights: pd.DataFrame) -> pd.DataFrame:
    """Return the flights before the corrections: with cancelled flights, without late arrivals."""
    rows = flights.copy()
    rows.loc[rows["arr_time"].isna() | _late(flights), ARRIVAL] = None
    return rows.sort_values(list(PRIMARY_KEY))


def corrections(flights: pd.DataFrame) -> pa.Table:
    """Return the rows that change the board into `demo_stream.final_rows`, with a last column ``op`` (-D or +U)."""
    cancelled, late = flights[flights["dep_time"].isna()], flights[_late(flights)]
    kinds = pa.array(["-D"] * len(cancelled) + ["+U"] * len(late), pa.string())
    return to_arrow(pd.concat([cancelled, late])).append_column(OP, kinds)
