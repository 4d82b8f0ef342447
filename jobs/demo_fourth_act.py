"""The fourth act of ``make demo``: lookup joins.

A stream of flights is joined with planes, airlines and airports, which change while the stream runs: planes are
registered late, and an airline is renamed. Neither side is shuffled. Each task looks its flights up in caches that its
executor keeps across micro-batches.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import demo_dimensions as dimensions
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from demo_dimensions import COUNTS, FLIGHT, GROUPS
from demo_screen import Screen
from demo_verdicts import Verdicts
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakelsm import Catalog, Table

#: With 0 seconds each micro-batch looks for newer snapshots of the tables.
REFRESH = "0 s"
SHOWN = 6


class FourthAct:
    """One run of the fourth act over the given flights; the deliveries are files in ``folder``."""

    def __init__(
        self, screen: Screen, verdicts: Verdicts, spark: SparkSession, catalog: Catalog, folder: Path
    ) -> None:
        self.screen = screen
        self.verdicts = verdicts
        self.spark = spark
        self.catalog = catalog
        self.folder = folder

    def run(self, flights: pd.DataFrame) -> None:
        """Run all steps; differences are in the verdicts."""
        with self.screen.step("Fourth act: three lookup tables") as remarks:
            parts = dimensions.deliveries(flights)
            planes, airlines, airports = self._tables()
            self._deliver(parts)
            remarks.append(f"{sum(map(len, parts)):,} flights in {len(parts)} deliveries")
        changes = {
            0: lambda: self._change(planes, dimensions.new_planes(), "planes are registered late"),
            len(parts) - 2: lambda: self._change(airlines, dimensions.merged_airline(), "airline is renamed"),
        }
        with self.screen.step("A stream of flights, joined while the tables change") as remarks:
            found = self._stream([planes, airlines, airports], changes)
            rows = [tuple(row) for row in found.head(SHOWN).itertuples(index=False)]
            self.screen.table((*GROUPS, *COUNTS), rows)
            self.screen.say(f"   … {len(found)} in total")
            want = dimensions.answer(parts)
            remarks.append(self.verdicts.add(f"{len(found)} counts of joined flights", found.equals(want)))

    def _tables(self) -> list[Table]:
        now = dimensions.dimensions()
        made = []
        for name, rows in (("planes", now.planes), ("airlines", now.airlines), ("airports", now.airports)):
            key = rows.schema.names[:1]
            table = self.catalog.create_table(f"nyc.{name}", rows.schema, primary_key=key, options={"bucket": "1"})
            table.write(rows)
            made.append(table)
        sizes = f"{len(now.planes):,} planes, {len(now.airlines)} airlines, {len(now.airports):,} airports"
        self.screen.say(f"   {sizes}, written by this process")
        return made

    def _deliver(self, parts: list[pa.Table]) -> None:
        self.folder.mkdir()
        for number, part in enumerate(parts):
            path = self.folder / f"{number}.parquet"
            pq.write_table(part, path)
            os.utime(path, (number, number))  # The stream reads the oldest file first.

    def _stream(self, tables: list[Table], changes: dict[int, Callable[[], None]]) -> pd.DataFrame:
        """Return the counts of the joined stream. ``changes`` run after the micro-batches with their numbers."""
        planes, airlines, airports = tables
        columns = ", ".join(f"{name} STRING" for name in FLIGHT.names)
        flights = self.spark.readStream.schema(columns).option("maxFilesPerTrigger", 1).parquet(str(self.folder))
        joined = (
            flights.transform(planes.lookup_join("tailnum", ["manufacturer", "seats"], refresh=REFRESH))
            .transform(airlines.lookup_join("carrier", {"name": "airline"}, refresh=REFRESH))
            .transform(airports.lookup_join({"dest": "faa"}, {"name": "airport"}, refresh=REFRESH))
        )
        counted: list[pd.DataFrame] = []

        def take(batch: DataFrame, number: int) -> None:
            counted.append(_counted(batch))
            flights = int(counted[-1]["flights"].sum())
            self.screen.say(f"   micro-batch {number + 1}: {flights:,} flights joined")
            if number in changes:
                changes[number]()

        query = joined.writeStream.foreachBatch(take).trigger(availableNow=True)
        query.option("checkpointLocation", str(self.folder / ".checkpoint")).start().awaitTermination()
        return dimensions.summed(counted)

    def _change(self, table: Table, rows: pa.Table, what: str) -> None:
        table.write(rows)
        self.screen.say(f"   {table.name}: {len(rows):,} {what}")


def _counted(batch: DataFrame) -> pd.DataFrame:
    counts = batch.groupBy(*GROUPS).agg(
        F.count("*").alias("flights"),
        F.count("seats").alias("planes"),
        F.coalesce(F.sum("seats"), F.lit(0)).alias("seats"),
        F.count("airport").alias("airports"),
    )
    frame: pd.DataFrame = counts.toArrow().to_pandas()
    return frame
