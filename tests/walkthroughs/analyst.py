"""An analyst loads a pandas frame into a table, corrects it, and reads it at two points in time. No Spark."""

from __future__ import annotations

import os
import tempfile

import pandas as pd

from lakelsm import Catalog

os.chdir(tempfile.mkdtemp())
trips = pd.DataFrame(
    {
        "id": [1, 2, 3],
        "day": pd.to_datetime(["2026-01-01", "2026-01-01", "2026-01-02"]),
        "fare": [12.5, 8.0, 30.25],
        "city": ["Oslo", "Bergen", None],
    }
)
catalog = Catalog("./warehouse")
table = catalog.create_table("taxi.trips", trips, primary_key="id", load=True)
print(table.schema)

table.write([{"id": 2, "day": "2026-01-03", "fare": 9.75, "city": "Bergen"}])
table.write({"id": [4], "day": ["2026-01-04"], "fare": [1.5], "city": ["Oslo"]})
table.delete(keys=[3])

print(table.head(5))
assert table.to_pandas(where="fare > 9", columns=["id"])["id"].tolist() == [1, 2]
assert table.count().rows == 3
assert table.at(snapshot=1).to_pandas()["fare"].sum() == 50.75
print(table.inspect.history())
