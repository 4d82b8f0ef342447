"""The third act of ``make demo``: merge on write.

The flights are in a table with deletion vectors. Corrections of one flight in nine arrive, and one compaction masks the
replaced rows without a rewrite of their files. The same query runs before the corrections, while the corrections are on
level 0, and after the compaction.
"""

from __future__ import annotations

import time

import pandas as pd
from demo_corrections import LATE, board, corrections
from demo_screen import Screen
from demo_stream import OP, PRIMARY_KEY, QUERY, SCHEMA, Answer, answer_over, final_rows, query_answer, to_arrow
from demo_verdicts import Verdicts
from pyspark.sql import SparkSession

from lakelsm import Catalog, Table

BOARD = "nyc.board"
OPTIONS = {"bucket": "4", "deletion-vectors.enabled": "true", "write-only": "true"}


class ThirdAct:
    """One run of the third act over the given flights."""

    def __init__(self, screen: Screen, verdicts: Verdicts, spark: SparkSession, catalog: Catalog) -> None:
        self.screen = screen
        self.verdicts = verdicts
        self.spark = spark
        self.catalog = catalog
        self._query_costs: list[tuple[object, ...]] = []

    def run(self, flights: pd.DataFrame) -> None:
        """Run all steps; differences are in the verdicts."""
        screen = self.screen
        before, changes = board(flights), corrections(flights)
        then, now = answer_over(before), query_answer(flights)
        with screen.step("Third act: a table with deletion vectors") as remarks:
            table = self._table(before)
            remarks.append(f"{len(before):,} flights, merged")
        with screen.step("The query before the corrections") as remarks:
            remarks.append(self._ask(table, "before the corrections", then))
        with screen.step("Corrections arrive") as remarks:
            table.write(self.spark.createDataFrame(changes), row_kind=OP)
            screen.say(f"   cancelled flights are deleted, and arrivals more than {LATE} minutes late are known")
            waiting = table.inspect.status()
            screen.say(f"   status(): {waiting.level0_rows:,} rows in {waiting.level0_files} files on level 0")
            remarks.append(f"{len(changes):,} changes")
            self._ask(table, "corrections on level 0", then)
            self._ask(table, "corrections on level 0, fresh", now, fresh=True)
        with screen.step("A compaction that masks") as remarks:
            remarks.append(self._mask(table, len(changes)))
        with screen.step("The same query again") as remarks:
            remarks.append(self._ask(table, "after the compaction", now))
            screen.table(("", "seconds", "files scanned", "of them merged", "answer"), self._query_costs)
        with screen.step("Every row of the third act") as remarks:
            found = table.read().select(*SCHEMA.names).toArrow()
            remarks.append(self.verdicts.rows(found, final_rows(flights), list(PRIMARY_KEY)))

    def _table(self, rows: pd.DataFrame) -> Table:
        table = self.catalog.create_table(BOARD, SCHEMA, primary_key=list(PRIMARY_KEY), options=OPTIONS)
        written = table.write(self.spark.createDataFrame(to_arrow(rows)))
        table.compact(full=True)
        self.screen.say(f"   {BOARD}, {written.rows:,} rows, compacted to one file in each bucket")
        return table

    def _ask(self, table: Table, moment: str, want: Answer, *, fresh: bool = False) -> str:
        """Run the query, compare the answer with pandas, and keep the cost for the final table."""
        plan = table.explain(fresh=fresh)
        start = time.perf_counter()
        table.read(fresh=fresh).createOrReplaceTempView("flights")
        answer: Answer = [tuple(row) for row in self.spark.sql(QUERY).collect()]
        seconds = time.perf_counter() - start
        verdict = self.verdicts.add(f"The answer {moment}", answer == want)
        self._query_costs.append((moment, round(seconds, 2), plan.files_scanned, len(plan.merged_files), verdict))
        return verdict

    def _mask(self, table: Table, changed: int) -> str:
        """Compact, show the masked rows of each file, and compare their sum with the number of changed flights."""
        done = table.compact()
        self.screen.say(
            f"   compact(): {done.rows_read:,} rows read, {done.rows_written:,} written, {done.rows_masked:,} masked "
            f"in {done.seconds:.1f} s"
        )
        files = table.inspect.files().to_spark().orderBy("bucket", "level")
        rows = [tuple(row) for row in files.select("bucket", "level", "record_count", "masked_record_count").collect()]
        self.screen.table(("bucket", "level", "rows", "masked"), rows)
        masked = sum(row[-1] for row in rows)
        self.verdicts.add("Masked rows", changed == masked == done.rows_masked)
        return f"{masked:,} rows masked"
