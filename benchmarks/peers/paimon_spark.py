"""Java Paimon's connector on Spark: a PySpark environment and a jar of matching versions.

The tables are copies of lakelsm's prepared ones, which must exist.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from benchmarks.config import ENGINE_OPERATIONS, KEY, WHERE, BenchConfig
from benchmarks.names import AGGREGATION, DEDUPLICATE, JAVA_ON_SPARK, PARTIAL_UPDATE, merging, smaller
from benchmarks.peers.left_out import LONG_ROWS, left_out
from benchmarks.timing import Contender
from benchmarks.workspace import check_count, copy_table, remove


class PaimonSparkPeer:
    """The warehouse is a scratch folder: ``state`` is read in place, other operations use copies."""

    def __init__(self, config: BenchConfig) -> None:
        self.config = config
        self.warehouse = config.scratch / "paimon"
        remove(self.warehouse)
        os.environ["PYSPARK_PYTHON"] = sys.executable
        session: Any = importlib.import_module("pyspark.sql").SparkSession
        settings = {
            "spark.master": f"local[{config.cores}]",
            "spark.driver.memory": config.driver_memory,
            "spark.driver.host": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.jars.packages": config.coordinates["paimon_spark"],
            "spark.jars.ivy": config.jars,
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
            "spark.sql.catalog.paimon": "org.apache.paimon.spark.SparkCatalog",
            "spark.sql.catalog.paimon.warehouse": self.warehouse.as_uri(),
        }
        builder = session.builder
        for key, value in settings.items():
            builder = builder.config(key, value)
        self.spark: Any = builder.getOrCreate()

    def _copy(self, source: str, target: str) -> None:
        copy_table(self.config.table(source), self.warehouse / "bench.db" / target)
        self.spark.sql(f"REFRESH TABLE paimon.bench.{target}")

    def _insert(self, target: str, source: str) -> None:
        self.spark.read.parquet(str(self.config.data(source))).createOrReplaceTempView("source")
        self.spark.sql(f"INSERT INTO paimon.bench.{target} SELECT * FROM source")

    def _create(self) -> None:
        self.spark.sql("DROP TABLE IF EXISTS paimon.bench.loaded")
        self.spark.read.parquet(str(self.config.data("base"))).limit(0).createOrReplaceTempView("empty")
        self.spark.sql(
            f"CREATE TABLE paimon.bench.loaded TBLPROPERTIES ('primary-key' = '{KEY}', "
            f"'bucket' = '{self.config.buckets}', 'write-only' = 'true') AS SELECT * FROM empty"
        )

    def prepare(self) -> None:
        """Copy lakelsm's state."""
        self.spark.sql("CREATE DATABASE IF NOT EXISTS paimon.bench")
        self._copy("state", "state")

    def contenders(self, operation: str) -> list[Contender]:
        """Return those of load, upsert (two table sizes), read, where, count, compact or ENGINE_OPERATIONS."""

        def frame(where: str = "true") -> Any:
            return self.spark.table("paimon.bench.state").where(where)

        def drain(where: str) -> None:
            frame(where).write.format("noop").mode("overwrite").save()

        def check(name: str, where: str) -> None:
            check_count(self.config, name, frame(where).count())

        def upsert(label: str, table: str, batch: str) -> Contender:
            return Contender(label, lambda: self._insert("work", batch), lambda: self._copy(table, "work"))

        # A batch compaction is always full; Paimon 0.9 does not know the argument `compact_strategy`.
        def compact() -> None:
            self.spark.sql("CALL paimon.sys.compact(table => 'bench.work')")

        def check_compacted() -> None:
            levels = self.spark.sql("SELECT DISTINCT level FROM paimon.bench.`work$files`").collect()
            assert len(levels) == 1 and levels[0][0] > 0, f"not a full compaction: files are on the levels {levels}"
            check_count(self.config, "rows", self.spark.table("paimon.bench.work").count())

        if operation == "load":
            return [Contender(JAVA_ON_SPARK, lambda: self._insert("loaded", "base"), self._create)]
        if operation == "upsert":
            return [upsert(JAVA_ON_SPARK, "base", "upsert"), upsert(smaller(JAVA_ON_SPARK), "small", "upsert-small")]
        if operation == "read":
            return [Contender(JAVA_ON_SPARK, lambda: drain("true"), check=lambda _: check("rows", "true"))]
        if operation == "where":
            return [Contender(JAVA_ON_SPARK, lambda: drain(WHERE), check=lambda _: check("where", WHERE))]
        if operation == "count":
            return [Contender(JAVA_ON_SPARK, lambda: frame().count(), check=lambda _: check("rows", "true"))]
        if operation == "compact":
            copy = lambda: self._copy("state", "work")  # noqa: E731
            return [Contender(JAVA_ON_SPARK, compact, copy, check=lambda _: check_compacted())]
        if operation in ENGINE_OPERATIONS:
            if self.config.rows > LONG_ROWS:  # Java's core library is measured with them.
                return [left_out(JAVA_ON_SPARK)]
            return [self._merging(operation, engine) for engine in (DEDUPLICATE, PARTIAL_UPDATE, AGGREGATION)]
        return []

    def _merging(self, operation: str, merge_engine: str) -> Contender:
        name = merging(JAVA_ON_SPARK, merge_engine)

        def copy() -> None:
            self._copy(merge_engine, "work")

        def read() -> None:
            self.spark.table("paimon.bench.work").write.format("noop").mode("overwrite").save()

        def check(_: object) -> None:
            check_count(self.config, "rows", self.spark.table("paimon.bench.work").count())

        def compact() -> None:
            self.spark.sql("CALL paimon.sys.compact(table => 'bench.work')")

        return Contender(name, read if operation == "engine-read" else compact, copy, check=check)


def open_peer(config: BenchConfig) -> PaimonSparkPeer:
    """Return the peer for :mod:`benchmarks.peer_runner`."""
    return PaimonSparkPeer(config)
