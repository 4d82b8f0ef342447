"""The checks of `make matrix`, in the environment of one pair: each uses one face of lakelsm and compares the rows.

Arguments: the file for the results (JSON), and the release of Spark that must run.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession, datasource

from lakelsm import Catalog, Table
from lakelsm.errors import InvalidInputError

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
Rows = list[tuple[Any, ...]]


def session(folder: Path) -> SparkSession:
    """Return a small local session, whose warehouse is not that of lakelsm."""
    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": (folder / "spark-warehouse").as_uri(),
    }
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def same(found: DataFrame | Rows, expected: Rows) -> None:
    """Compare rows in any order."""
    rows = [tuple(row) for row in (found.collect() if isinstance(found, DataFrame) else found)]
    if sorted(rows, key=str) != sorted(expected, key=str):
        raise AssertionError(f"rows {rows[:20]} instead of {expected[:20]}")


class Checks:
    """The checks, in the order in which they run. ``trips`` is a table of two columns and two buckets."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.catalog = Catalog(str(folder / "warehouse"), spark)
        self.path = str(folder / "warehouse" / "nyc.db" / "trips")

    @property
    def trips(self) -> Table:
        """The table."""
        return self.catalog.table("nyc.trips")

    def rows(self) -> Rows:
        """Return its rows, read in this process."""
        return [(row["id"], row["city"]) for row in self.trips.to_arrow().to_pylist()]

    def write(self) -> None:
        """Create a table, and write a DataFrame and a list of rows."""
        options = {"bucket": "2"}
        self.catalog.create_table("nyc.trips", {"id": "INT", "city": "STRING"}, primary_key="id", options=options)
        self.trips.write(self.spark.createDataFrame([(1, "a"), (2, "b"), (3, "c")], "id INT, city STRING"))
        self.trips.write([{"id": 3, "city": "C"}])
        same(self.rows(), [(1, "a"), (2, "b"), (3, "C")])

    def read(self) -> None:
        """Read as a DataFrame, with a condition and in the past."""
        same(self.trips.read(), [(1, "a"), (2, "b"), (3, "C")])
        same(self.trips.read("id > 1", ["city"]), [("b",), ("C",)])
        same(self.trips.at(snapshot=1).read(), [(1, "a"), (2, "b"), (3, "c")])

    def compact(self) -> None:
        """Compact on Spark."""
        result = self.trips.compact(full=True, engine="spark")
        if not result.snapshot_ids:
            raise AssertionError(f"{result} has no snapshot")
        same(self.trips.read(), [(1, "a"), (2, "b"), (3, "C")])

    def sql_queries(self) -> None:
        """Run queries on Spark and in this process."""
        text = "SELECT t.id, o.city FROM nyc.trips t JOIN nyc.trips VERSION AS OF 1 o ON t.id = o.id WHERE t.id > 1"
        same(self.catalog.sql(text), [(2, "b"), (3, "c")])
        local = self.catalog.sql(text, "local").to_arrow().to_pylist()
        same([tuple(row.values()) for row in local], [(2, "b"), (3, "c")])

    def sql_merge(self) -> None:
        """Run MERGE INTO on Spark and in this process."""
        for engine, number in (("spark", 4), ("local", 5)):
            source = f"(SELECT {number} AS id, '{engine}' AS city UNION ALL SELECT {number - 3}, 'x')"
            self.catalog.sql(
                f"MERGE INTO nyc.trips t USING {source} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET city = s.city "
                "WHEN NOT MATCHED THEN INSERT *",
                engine,
            )
        same(self.rows(), [(1, "x"), (2, "x"), (3, "C"), (4, "spark"), (5, "local")])

    def sql_call(self) -> None:
        """Call a procedure."""
        self.catalog.sql("CALL sys.create_tag(table => 'nyc.trips', tag => 'now')")
        same(self.catalog.sql("SELECT count(*) FROM nyc.trips VERSION AS OF 'now'"), [(5,)])

    def source_read(self) -> None:
        """Read the data source without registration, with the session's own setting for filters."""
        found = self.spark.read.format("lakelsm").option("columns", "id").load(self.path).where("id < 3")
        same(found, [(1,), (2,)])

    def source_filters(self) -> None:
        """Read the data source with pushed filters, and without them."""
        if not hasattr(datasource, "EqualTo"):
            return
        before = self.spark.conf.get(PUSHDOWN)
        try:
            for value in ("true", "false"):
                self.spark.conf.set(PUSHDOWN, value)
                same(self.spark.read.format("lakelsm").load(self.path).where("id = 2"), [(2, "x")])
        finally:
            self.spark.conf.set(PUSHDOWN, before or "false")

    def source_write(self) -> None:
        """Append by the data source, to fixed and dynamic buckets, and overwrite."""
        frame = self.spark.range(1, 7).selectExpr("CAST(id AS INT) AS id", "'w' AS city")
        frame.write.format("lakelsm").mode("append").save(self.path)
        same(self.rows(), [(number, "w") for number in range(1, 7)])
        self.catalog.create_table("nyc.dynamic", {"id": "INT", "city": "STRING"}, primary_key="id")
        for mode in ("append", "overwrite"):
            frame.write.format("lakelsm").mode(mode).save(self.path.replace("trips", "dynamic"))
            same(self.catalog.table("nyc.dynamic").read(), [(number, "w") for number in range(1, 7)])

    def source_stream(self) -> None:
        """Write a stream by the data source, and again as after a crash; 4.0 refuses it by name."""
        folder = Path(self.path).parents[2]
        options = {"bucket": "2"}
        self.catalog.create_table("nyc.stream", {"id": "INT", "city": "STRING"}, primary_key="id", options=options)
        (folder / "in").mkdir()
        for number in (1, 2):
            rows = [{"id": 1, "city": f"s{number}", "k": "+I"}, {"id": number + 1, "city": "s", "k": "+I"}]
            (folder / "in" / f"{number}.json").write_text("\n".join(map(json.dumps, rows)))
            try:
                self.run_stream(folder)
            except Exception as error:
                if hasattr(datasource, "DataSourceStreamArrowWriter") or "Use Table.write_stream" not in str(error):
                    raise
                return
        for path in (folder / "log" / "commits").glob("*1*"):
            path.unlink()
        self.run_stream(folder)
        table = self.catalog.table("nyc.stream")
        same([tuple(row.values()) for row in table.to_arrow().to_pylist()], [(1, "s2"), (2, "s"), (3, "s")])
        kinds = table.inspect.snapshots().to_arrow().column("commit_kind").to_pylist()
        same([(kinds.count("APPEND"),)], [(2,)])

    def run_stream(self, folder: Path) -> None:
        """Run a query until it has written all files of a directory."""
        rows = self.spark.readStream.schema("id INT, city STRING, k STRING").json(str(folder / "in"))
        query = rows.writeStream.format("lakelsm").trigger(availableNow=True).option("row-kind", "k")
        query = query.option("checkpointLocation", str(folder / "log"))
        query.start(self.path.replace("trips", "stream")).awaitTermination()

    def native_stream(self) -> None:
        """Write a stream by `Table.write_stream`, and again as after a crash; refuse one without a checkpoint."""
        folder = Path(self.path).parents[2] / "native"
        options = {"bucket": "1", "merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
        table = self.catalog.create_table("nyc.native", {"id": "INT", "n": "INT"}, primary_key="id", options=options)
        (folder / "in").mkdir(parents=True)
        for number in (1, 2):
            (folder / "in" / f"{number}.json").write_text('{"id": 1, "n": 5}')
            stream = self.spark.readStream.schema("id INT, n INT").json(str(folder / "in")).writeStream
            try:
                table.write_stream(stream)
            except InvalidInputError as error:
                same([("checkpoint" in str(error),)], [(True,)])
            stream = stream.option("checkpointLocation", str(folder / "log")).trigger(availableNow=True)
            table.write_stream(stream).awaitTermination()
        for path in (folder / "log" / "commits").glob("*1*"):
            path.unlink()
        table.write_stream(stream).awaitTermination()
        same([tuple(row.values()) for row in table.to_arrow().to_pylist()], [(1, 10)])

    def stream_read(self) -> None:
        """Read the table as a stream, by its path and from one checkpoint after a restart."""
        for expected in ([(number, "w") for number in range(1, 7)], [(1, "w")]):
            found: Rows = []

            def collect(batch: DataFrame, _: int, rows: Rows = found) -> None:
                rows += [tuple(row) for row in batch.collect()]

            writer = self.spark.readStream.format("lakelsm").load(self.path).writeStream.foreachBatch(collect)
            query = writer.option("checkpointLocation", "stream-read").trigger(availableNow=True).start()
            query.awaitTermination()
            same(found, expected)
            self.trips.write([{"id": 1, "city": "w"}])

    def register(self) -> None:
        """Use tables by name: queries, INSERT INTO, a new table, and pinned views."""
        self.catalog.register(self.spark)
        self.spark.sql("INSERT INTO nyc.trips VALUES (7, 'i')")
        self.spark.sql("INSERT INTO nyc.dynamic SELECT * FROM nyc.trips WHERE id = 7")
        joined = "SELECT id, d.city FROM nyc.trips t JOIN nyc.dynamic d USING (id) WHERE id > 5"
        same(self.spark.sql(joined), [(6, "w"), (7, "i")])
        self.catalog.create_table("nyc.new", {"id": "INT"}, primary_key="id").write([{"id": 1}])
        self.catalog.register(self.spark)
        same(self.spark.sql("SELECT * FROM nyc.new"), [(1,)])
        self.catalog.register(self.spark, ["nyc"], pinned=True)
        same(self.spark.sql("SELECT count(*) FROM `nyc.trips`"), [(7,)])
        self.spark.sql("DROP DATABASE nyc CASCADE")
        same([(self.trips.count(engine="local").rows,)], [(7,)])


#: Names of the results, in the order of the table.
NAMES: dict[str, Callable[[Checks], None]] = {
    "write": Checks.write,
    "read": Checks.read,
    "compact": Checks.compact,
    "query": Checks.sql_queries,
    "MERGE": Checks.sql_merge,
    "CALL": Checks.sql_call,
    "source read": Checks.source_read,
    "filters": Checks.source_filters,
    "source write": Checks.source_write,
    "stream write": Checks.source_stream,
    "native stream": Checks.native_stream,
    "stream read": Checks.stream_read,
    "register": Checks.register,
}


def main(report: Path, release: str) -> None:
    """Run all checks, and write the result of each: 'ok', 'none' if Spark lacks the feature, or 'failed: …'."""
    if not pyspark.__version__.startswith(f"{release}."):
        raise SystemExit(f"PySpark {pyspark.__version__} runs instead of {release}")
    spark = session(Path.cwd())
    checks, results = Checks(spark, Path.cwd()), {"spark": pyspark.__version__}
    for name, check in NAMES.items():
        try:
            check(checks)
            lacks = name in ("filters", "stream write") and release == "4.0"
            results[name] = "none" if lacks else "ok"
        except Exception as error:  # noqa: BLE001  All are reported.
            traceback.print_exc()
            results[name] = f"failed: {str(error)[:300]}"
    report.write_text(json.dumps(results))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
