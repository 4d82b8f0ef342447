"""Java Paimon's core library in a separate JVM, on as many threads as there are cores.

PySpark's environment has the launcher, which downloads the jar, and the libraries that Paimon needs. There is no Spark
session. The tables are copies of lakelsm's prepared ones, which must exist.
"""

from __future__ import annotations

import importlib
from decimal import Decimal
from pathlib import Path
from typing import Any

from benchmarks.config import ENGINE_OPERATIONS, BenchConfig
from benchmarks.names import AGGREGATION, DEDUPLICATE, JAVA, PARTIAL_UPDATE, merging, smaller
from benchmarks.timing import Contender
from benchmarks.workspace import check_count, check_sums, copy_table, remove

_BELOW = 100


class PaimonJavaPeer:
    """Reads the tables in place, and writes copies."""

    def __init__(self, config: BenchConfig) -> None:
        self.config = config
        self.scratch = config.scratch / "paimon-java"
        remove(self.scratch)
        spill = self.scratch / "spill"
        spill.mkdir(parents=True)
        conf: Any = importlib.import_module("pyspark").SparkConf(loadDefaults=False)
        conf.set("spark.jars.packages", config.coordinates["paimon_java"]).set("spark.jars.ivy", config.jars)
        conf.set("spark.driver.memory", config.driver_memory)
        jvm: Any = importlib.import_module("pyspark.java_gateway").launch_gateway(conf).jvm
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setTargetVersion(8)
        compiler.setParentClassLoader(jvm.Thread.currentThread().getContextClassLoader())
        compiler.cook(Path(__file__).with_name("PaimonJava.java").read_text(encoding="utf-8"))
        self.java: Any = compiler.getClassLoader().loadClass("PaimonJava").newInstance()
        self.java.start(config.cores, str(spill))

    def prepare(self) -> None:
        """Do nothing: the tables are lakelsm's."""
        assert self.config.table("state").exists(), "lakelsm's tables are not prepared"

    def contenders(self, operation: str) -> list[Contender]:
        """Return those of load, upsert (two table sizes), read, where, count, compact or ENGINE_OPERATIONS."""
        config, work = self.config, self.scratch / "work"
        state = str(config.table("state"))

        def clear() -> None:
            remove(work)

        def load() -> None:
            self.java.create(str(work), str(config.table("base")))
            self.java.write(str(work), str(config.data("base")))

        def upsert(name: str, table: str, batch: str) -> Contender:
            def write() -> None:
                self.java.write(str(work), str(config.data(batch)))

            return Contender(name, write, lambda: copy_table(config.table(table), work), clear)

        def check(sums: Any) -> None:
            check_sums(config, sums[0], sums[1], sums[2], Decimal(sums[3]).scaleb(-2))

        if operation == "load":
            return [Contender(JAVA, load, clear, clear)]
        if operation == "upsert":
            return [upsert(JAVA, "base", "upsert"), upsert(smaller(JAVA), "small", "upsert-small")]
        if operation == "read":
            return [Contender(JAVA, lambda: self.java.read(state, 0), check=check)]
        if operation == "where":
            check_where = lambda sums: check_count(config, "where", sums[0])  # noqa: E731
            return [Contender(JAVA, lambda: self.java.read(state, _BELOW), check=check_where)]
        if operation == "count":
            check_rows = lambda rows: check_count(config, "rows", rows)  # noqa: E731
            return [Contender(JAVA, lambda: self.java.count(state), check=check_rows)]
        if operation == "compact":
            return [self._compaction(JAVA, config.table("state"), lambda: check(self.java.read(str(work), 0)))]
        if operation in ENGINE_OPERATIONS:
            return [self._merging(operation, engine) for engine in (DEDUPLICATE, PARTIAL_UPDATE, AGGREGATION)]
        return []

    def _compaction(self, name: str, source: Path, check: Any) -> Contender:
        work = self.scratch / "work"
        checked = False

        def teardown() -> None:
            nonlocal checked
            if not checked:
                checked = True
                check()
            remove(work)

        return Contender(name, lambda: self.java.compact(str(work)), lambda: copy_table(source, work), teardown)

    def _merging(self, operation: str, merge_engine: str) -> Contender:
        config, table = self.config, self.config.table(merge_engine)
        name = merging(JAVA, merge_engine)

        def check(rows: Any) -> None:
            check_count(config, "rows", rows)

        if operation == "engine-read":
            return Contender(name, lambda: self.java.rows(str(table)), check=check)
        return self._compaction(name, table, lambda: check(self.java.rows(str(self.scratch / "work"))))


def open_peer(config: BenchConfig) -> PaimonJavaPeer:
    """Return the peer for :mod:`benchmarks.peer_runner`."""
    return PaimonJavaPeer(config)
