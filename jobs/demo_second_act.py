"""The second act of ``make demo``: four feeds write different columns of one partial-update table, out of order.

The changelog of the table keeps the totals of an aggregation table correct after each batch. This process writes,
compacts and reads the feeds' rows; Spark turns changes into totals and queries them.
"""

from __future__ import annotations

import time

import demo_delays as delays
import demo_feeds as feeds
import pandas as pd
import pyarrow as pa
from demo_records import records
from demo_screen import Screen
from demo_verdicts import Verdicts
from pyspark.sql import DataFrame, SparkSession

from lakelsm import Catalog, Table

STATUS = "nyc.flight_status"
DELAYS = "nyc.delays"
#: Maximum number of months of the second act, which keeps `make demo` short.
MONTHS = 3
#: The changelog has the rows before and after each change, and nothing for a report that changes no row.
CHANGELOG = {"changelog-producer": "lookup", "changelog-producer.row-deduplicate": "true"}
_KINDS = ("+I", "-U", "+U", "-D")


class SecondAct:
    """One run of the second act over the first ``months`` months (at most :data:`MONTHS`)."""

    def __init__(
        self, screen: Screen, verdicts: Verdicts, spark: SparkSession, catalog: Catalog, months: int
    ) -> None:
        self.screen = screen
        self.verdicts = verdicts
        self.spark = spark
        self.catalog = catalog
        self.months = min(months, MONTHS)

    def run(self) -> None:
        """Run all steps; differences are in the verdicts."""
        screen = self.screen
        with screen.step("Second act: four feeds, one table") as remarks:
            flights, weather = feeds.load_timetable(self.months), feeds.load_weather()
            screen.say(
                f"   {len(flights):,} flights (the first {self.months} months of 2013) and the weather at their "
                "origin in the hour of departure"
            )
            status, totals = self._tables()
            remarks.append(f"{len(flights):,} flights")
        stream = list(feeds.deliveries(flights, weather))
        read_until: int | None = None
        state: pa.Table | None = None
        for batch, title in enumerate(feeds.BATCHES):
            with screen.step(f"Batch {batch + 1}: {title[0].lower()}{title[1:]}") as remarks:
                rows = self._deliver(status, [delivery for delivery in stream if delivery.batch == batch])
                changes, read_until = self._changes(status, read_until)
                count = self._count(changes)
                remarks.append(f"{rows:,} rows, {count:,} changes")
                totals.write(self._counted(changes), row_kind="rowkind")
                after = feeds.state_after([delivery for delivery in stream if delivery.batch <= batch])
                if state is not None and after.equals(state):
                    self.verdicts.add("No changes by outdated reports", count == 0)
                state = after
                self._check_totals(totals, delays.totals(state.to_pandas()))
        want = feeds.final_rows(flights, weather)
        with screen.step(f"Every row of {STATUS}, compared with pandas") as remarks:
            found = status.to_arrow(columns=feeds.SCHEMA.names)
            remarks.append(self.verdicts.rows(found, want, feeds.KEY))
        with screen.step(f"Queries of {DELAYS}") as remarks:
            remarks.append(self._answers(totals, delays.totals(want.to_pandas())))

    def _tables(self) -> tuple[Table, Table]:
        status = self.catalog.create_table(
            STATUS,
            feeds.SCHEMA,
            primary_key=feeds.KEY,
            partition_by=["month"],
            options={"bucket": "2", **feeds.OPTIONS, **CHANGELOG},
        )
        totals = self.catalog.create_table(
            DELAYS, delays.SCHEMA, primary_key=delays.KEY, options={"bucket": "1", **delays.OPTIONS}
        )
        self.screen.say(f"   {STATUS}: each feed writes its own columns, with its own sequence field:")
        rows = [(feed.name, feed.sequence.name, ", ".join(f.name for f in feed.columns)) for feed in feeds.FEEDS]
        self.screen.table(("feed", "sequence field", "columns"), rows)
        self.screen.say(f"   {DELAYS} sums by carrier and airport: {delays.MEANING},")
        self.screen.say(f"   fed by the changelog of {STATUS}:")
        for line in delays.COUNTED.splitlines():
            self.screen.say(f"   {line}")
        return status, totals

    def _deliver(self, status: Table, batch: list[feeds.Delivery]) -> int:
        """Commit the deliveries, and return the number of rows."""
        progress = self.screen.progress(len(batch))
        for delivery in batch:
            start = time.perf_counter()
            rows = delivery.rows
            status.write(rows, feeds.OP if feeds.OP in rows.column_names else None)
            seconds = time.perf_counter() - start
            progress.advance(delivery.title, f"{len(rows):>6,} rows in {seconds:.2f} s")
        return sum(len(delivery.rows) for delivery in batch)

    def _changes(self, status: Table, start: int | None) -> tuple[DataFrame, int]:
        """Return the changes after snapshot ``start``, and the id of the last snapshot in them."""
        end = status.inspect.status().snapshot_id
        assert end is not None, "the batch was written"
        self.screen.say(f"   changelog(start={start}, end={end})")
        return status.changelog(start, end), end

    def _count(self, changes: DataFrame) -> int:
        """Show the number of changes by kind, and return their sum."""
        by_kind = {row.rowkind: row["count"] for row in changes.groupBy("rowkind").count().collect()}
        self.screen.table(_KINDS, [[by_kind.get(kind, 0) for kind in _KINDS]])
        return sum(by_kind.values())

    def _counted(self, changes: DataFrame) -> DataFrame:
        changes.createOrReplaceTempView("changes")
        return self.spark.sql(delays.COUNTED)

    def _check_totals(self, totals: Table, want: pd.DataFrame) -> None:
        found = self._query(totals, delays.TOTALS)
        counts = pd.DataFrame(found, columns=delays.SCHEMA.names)[delays.COUNTS].sum()
        self.screen.table(delays.COUNTS, [[int(count) for count in counts]])
        self.verdicts.add(f"{DELAYS}, {len(found)} totals", found == delays.as_answer(want))

    def _query(self, totals: Table, query: str) -> delays.Answer:
        totals.read().createOrReplaceTempView("delays")
        return [tuple(row) for row in self.spark.sql(query).collect()]

    def _answers(self, totals: Table, want: pd.DataFrame) -> str:
        airlines, airports = records("airlines"), records("airports")
        for name, frame in (("airlines", airlines), ("airports", airports[["faa", "name"]])):
            table = pa.Table.from_pandas(frame, preserve_index=False)
            self.spark.createDataFrame(table).createOrReplaceTempView(name)
        worst = self._query(totals, delays.WORST_QUERY)
        self.screen.table(("airline", "airport", "arrivals", "late_in"), worst[:5])
        self.screen.say(f"   … {len(worst)} in total")
        self.verdicts.add("Minutes of delay at arrival", worst == delays.worst_answer(want, airlines, airports))
        rain = self._query(totals, delays.RAIN_QUERY)
        self.screen.table(("airport", "departures", "minutes late each", "in rain", "minutes late each"), _means(rain))
        self.verdicts.add("Departures in rain", rain == delays.rain_answer(want))
        found = self._query(totals, delays.TOTALS)
        return self.verdicts.add(f"All {len(found)} totals, from the raw records", found == delays.as_answer(want))


def _means(rain: delays.Answer) -> list[tuple[object, ...]]:
    rows = pd.DataFrame(rain, columns=["airport", *delays.COUNTS[:4]])
    return [
        (airport, departures, late_out / departures, wet, late_wet / max(wet, 1))
        for airport, departures, late_out, wet, late_wet in rows.itertuples(index=False, name=None)
    ]
