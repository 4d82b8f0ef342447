"""Java Paimon on Spark: a PySpark environment and Paimon's Spark jar (``--paimon-jar``) that fit each other.

It opens copies of lakelsm's prepared tables, so it needs those. Without a jar the peer is listed as not
installed.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from benchmarks.config import KEY, WHERE, BenchConfig
from benchmarks.timing import Contender
from benchmarks.workspace import check_count, copy_table, remove

_NAME = "Paimon (Java) on Spark"


class PaimonSparkPeer:
    """The warehouse is a scratch folder: ``state`` is read in place, the other operations get copies."""

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
        """load, upsert (two table sizes), read, where, count, compact."""

        def frame(where: str = "true") -> Any:
            return self.spark.table("paimon.bench.state").where(where)

        def drain(where: str) -> None:
            frame(where).write.format("noop").mode("overwrite").save()

        def check(name: str, where: str) -> None:
            check_count(self.config, name, frame(where).count())

        def upsert(label: str, table: str, batch: str) -> Contender:
            return Contender(label, lambda: self._insert("work", batch), lambda: self._copy(table, "work"))

        def compact() -> None:
            self.spark.sql("CALL paimon.sys.compact(table => 'bench.work', compact_strategy => 'full')")

        if operation == "load":
            return [Contender(_NAME, lambda: self._insert("loaded", "base"), self._create)]
        if operation == "upsert":
            return [upsert(_NAME, "base", "upsert"), upsert(_NAME + " (table / 10)", "small", "upsert-small")]
        if operation == "read":
            return [Contender(_NAME, lambda: drain("true"), check=lambda _: check("rows", "true"))]
        if operation == "where":
            return [Contender(_NAME, lambda: drain(WHERE), check=lambda _: check("where", WHERE))]
        if operation == "count":
            return [Contender(_NAME, lambda: frame().count(), check=lambda _: check("rows", "true"))]
        if operation == "compact":
            return [Contender(_NAME, compact, lambda: self._copy("state", "work"))]
        return []


def open_peer(config: BenchConfig) -> PaimonSparkPeer:
    """The peer for :mod:`benchmarks.peer_runner`."""
    return PaimonSparkPeer(config)
