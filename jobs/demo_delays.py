"""The aggregation table of the second act: delays by carrier and airport, fed by the changelog of the flights.

A flight counts at two airports: its departure at the origin, its arrival at the destination. A change of a flight
subtracts the counts of the old row and adds those of the new one. No Spark here, only its SQL.
"""

from __future__ import annotations

import pandas as pd
import pyarrow as pa

KEY = ["carrier", "airport"]
COUNTS = ["departures", "late_out", "wet", "late_wet", "arrivals", "late_in"]
SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.string(), nullable=False) for name in KEY),
        *(pa.field(name, pa.int64()) for name in COUNTS),
    ]
)
#: The meaning of the counts, for display.
MEANING = "departures (late_out minutes), those in rain (wet, late_wet), arrivals (late_in)"
OPTIONS = {"merge-engine": "aggregation", "fields.default-aggregate-function": "sum"}

#: Turns changes of a flight into rows of the aggregation table. Rows of kind -U and -D are subtracted.
COUNTED = """\
SELECT rowkind, carrier, origin AS airport, 1 AS departures, dep_delay AS late_out,
  IF(precip > 0, 1, 0) AS wet, IF(precip > 0, dep_delay, 0) AS late_wet, 0 AS arrivals, 0 AS late_in
FROM changes WHERE dep_delay IS NOT NULL
UNION ALL
SELECT rowkind, carrier, dest, 0, 0, 0, 0, 1, arr_delay
FROM changes WHERE dest IS NOT NULL AND arr_delay IS NOT NULL"""

#: The row of a carrier without flights at an airport has zeros, and is left out.
TOTALS = "SELECT * FROM delays WHERE departures <> 0 OR arrivals <> 0 ORDER BY carrier, airport"

WORST_QUERY = """\
SELECT airlines.name AS airline, coalesce(airports.name, airport) AS airport, arrivals, late_in
FROM delays JOIN airlines USING (carrier) LEFT JOIN airports ON faa = airport
WHERE arrivals > 0 ORDER BY late_in DESC, carrier, delays.airport"""

RAIN_QUERY = """\
SELECT airport, sum(departures), sum(late_out), sum(wet), sum(late_wet)
FROM delays WHERE departures > 0 GROUP BY airport ORDER BY airport"""

Answer = list[tuple[object, ...]]


def totals(flights: pd.DataFrame) -> pd.DataFrame:
    """Return the counts by :data:`KEY`, in key order, computed by plain pandas.

    ``flights`` has one row for each flight: ``carrier``, ``origin``, ``dest``, ``dep_delay``, ``arr_delay``,
    ``precip``.
    """
    out = flights[flights["dep_delay"].notna()]
    wet = (out["precip"] > 0).fillna(False).astype(bool)
    left = pd.DataFrame(
        {
            "carrier": out["carrier"],
            "airport": out["origin"],
            "departures": 1,
            "late_out": out["dep_delay"],
            "wet": wet.astype(int),
            "late_wet": out["dep_delay"].where(wet, 0),
        }
    )
    back = flights[flights["arr_delay"].notna() & flights["dest"].notna()]
    landed = pd.DataFrame(
        {"carrier": back["carrier"], "airport": back["dest"], "arrivals": 1, "late_in": back["arr_delay"]}
    )
    return pd.concat([left, landed]).groupby(KEY)[COUNTS].sum().astype("int64").reset_index()


def as_answer(frame: pd.DataFrame) -> Answer:
    """Return the rows as tuples of plain Python values, like Spark's ``collect``."""
    return [tuple(row) for row in frame.astype(object).itertuples(index=False, name=None)]


def worst_answer(delays: pd.DataFrame, airlines: pd.DataFrame, airports: pd.DataFrame) -> Answer:
    """Return the expected answer of :data:`WORST_QUERY`, from :func:`totals`."""
    rows = delays[delays["arrivals"] > 0]
    rows = rows.merge(airlines, on="carrier").rename(columns={"name": "airline"})
    rows = rows.merge(airports[["faa", "name"]], left_on="airport", right_on="faa", how="left")
    rows["name"] = rows["name"].fillna(rows["airport"])
    rows = rows.sort_values(["late_in", "carrier", "airport"], ascending=[False, True, True])
    return as_answer(rows[["airline", "name", "arrivals", "late_in"]])


def rain_answer(delays: pd.DataFrame) -> Answer:
    """Return the expected answer of :data:`RAIN_QUERY`, from :func:`totals`."""
    rows = delays[delays["departures"] > 0].groupby("airport").sum(numeric_only=True).reset_index()
    return as_answer(rows[["airport", *COUNTS[:4]]].sort_values("airport"))
