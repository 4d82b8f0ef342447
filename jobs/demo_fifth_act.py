"""The fifth act of ``make demo``: streams from feeds to totals, all live.

Four streams write the feeds of the second act into one partial-update table, at the same time. Two more streams read the
changes of that table while they are written: one keeps an aggregation table, the other joins a lookup table and keeps
the late flights. This process compacts the table beside them, which writes its changelog, and at the end withdraws the
cancelled flights.
"""

from __future__ import annotations

import time
from pathlib import Path

import demo_feeds as feeds
import demo_live as live
import pandas as pd
from demo_dimensions import MERGED, MERGED_NAME
from demo_screen import Screen
from demo_verdicts import Verdicts
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from lakelsm import Catalog, Table

STATUS = "nyc.live_status"
TOTALS = "nyc.live_totals"
LATE = "nyc.late_flights"
AIRLINES = "nyc.airlines"
#: Days of the fifth act, which keeps `make demo` short.
DAYS = 10
#: The changelog has the rows before and after each change, and nothing for a report that changes no row.
CHANGELOG = {"changelog-producer": "lookup", "changelog-producer.row-deduplicate": "true"}


class FifthAct:
    """One run of the fifth act in a warehouse; the feeds are files in its folder ``live``."""

    def __init__(
        self, screen: Screen, verdicts: Verdicts, spark: SparkSession, catalog: Catalog, warehouse: Path
    ) -> None:
        self.screen = screen
        self.verdicts = verdicts
        self.spark = spark
        self.catalog = catalog
        self.warehouse = warehouse
        self.folder = warehouse / "live"

    def run(self, days: int = DAYS) -> None:
        """Run all steps over the first ``days`` days; differences are in the verdicts.

        REQUIRES: the airlines of the fourth act.
        """
        flights, weather = live.days(days)
        deliveries, withdrawals = live.split(flights, weather)
        with self.screen.step("Fifth act: streams from feeds to totals") as remarks:
            rows = live.write_files(deliveries, self.folder)
            status, totals, late = self._tables()
            remarks.append(f"{rows:,} rows in {len(deliveries)} files of {len(feeds.FEEDS)} feeds")
        with self.screen.step("Six streams at the same time") as remarks:
            readers = [self._count(status, totals), self._join(status, late)]
            writers = [self._feed(feed, status) for feed in feeds.FEEDS]
            while any(query.isActive for query in writers):
                status.compact(engine="local")  # Beside the streams, so that four writers do not compact the same files.
                time.sleep(0.5)
            for query in writers:
                query.awaitTermination()
            for delivery in withdrawals:
                status.write(delivery.rows, feeds.OP)
            for query in readers:
                query.processAllAvailable()
                query.stop()
            batches = [self._batches(query) for query in (*writers, *readers)]
            shown = f"{sum(batches[:4])} of feeds, {batches[4]} of totals, {batches[5]} of the join"
            self.screen.say(f"   micro-batches: {shown}")
            remarks.append(f"{sum(batches)} micro-batches")
        want = feeds.final_rows(flights, weather)
        with self.screen.step("Every row of the three tables, compared with pandas") as remarks:
            self.verdicts.rows(status.to_arrow(columns=feeds.SCHEMA.names), want, feeds.KEY)
            self.verdicts.rows(late.to_arrow(), live.late_flights(want, {MERGED: MERGED_NAME}), feeds.KEY)
            remarks.append(self.verdicts.add(TOTALS, self._totals(totals).equals(live.totals(want))))

    def _tables(self) -> tuple[Table, Table, Table]:
        status = self.catalog.create_table(
            STATUS, feeds.SCHEMA, primary_key=feeds.KEY, options={"bucket": "1", **feeds.OPTIONS, **CHANGELOG}
        )
        aggregation = {"merge-engine": "aggregation", "fields.default-aggregate-function": "sum"}
        totals = self.catalog.create_table(
            TOTALS, live.TOTALS, primary_key=live.KEY, options={"bucket": "1", **aggregation}
        )
        late = self.catalog.create_table(LATE, live.LATE_FLIGHTS, primary_key=feeds.KEY, options={"bucket": "1"})
        self.screen.say(f"   feeds → {STATUS} (partial-update) → changelog → {TOTALS} (aggregation)")
        self.screen.say(f"   {STATUS} → changelog → lookup join with {AIRLINES} → {LATE}")
        return status, totals, late

    def _feed(self, feed: feeds.Feed, status: Table) -> StreamingQuery:
        """Start a stream of the files of a feed, at most two in each micro-batch."""
        folder = self.folder / feed.name
        schema = self.spark.read.parquet(str(folder)).schema
        rows = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", 2).parquet(str(folder))
        return status.write_stream(self._writer(rows, feed.name).trigger(availableNow=True), compact_every=0)

    def _count(self, status: Table, totals: Table) -> StreamingQuery:
        """Start the stream of changes that are added to the totals, or subtracted from them."""
        self._changes(status).createOrReplaceTempView("changes")
        counted = self._writer(self.spark.sql(live.COUNTED), "totals").trigger(processingTime="2 seconds")
        return totals.write_stream(counted, row_kind="rowkind")

    def _join(self, status: Table, late: Table) -> StreamingQuery:
        """Start the stream of late flights with the names of their airlines."""
        self._changes(status).createOrReplaceTempView("changes")
        names = self.catalog.table(AIRLINES).lookup_join("carrier", {"name": "airline"})
        joined = self._writer(self.spark.sql(live.LATE_CHANGES).transform(names), "late")
        return late.write_stream(joined.trigger(processingTime="2 seconds"), row_kind="rowkind")

    def _changes(self, status: Table) -> DataFrame:
        path = (self.warehouse / STATUS.replace(".", ".db/")).as_uri()
        return self.spark.readStream.format("lakelsm").option("read.changelog", True).load(path)

    def _writer(self, stream: DataFrame, name: str) -> DataStreamWriter:
        return stream.writeStream.option("checkpointLocation", str(self.folder / f".{name}"))

    def _batches(self, query: StreamingQuery) -> int:
        return len({progress["batchId"] for progress in query.recentProgress if progress["numInputRows"]})

    def _totals(self, totals: Table) -> pd.DataFrame:
        found = totals.to_pandas()
        known = (found["departures"] != 0) | (found["arrivals"] != 0)
        return found[known].sort_values(live.KEY).reset_index(drop=True)[[*live.KEY, *live.COUNTS]]
