"""Facts joined with a table by key: ``python -m benchmarks.lookup_join_lane CONFIG OUT``.

A lookup join with a warm cache, beside Spark's own joins of the same facts with the same rows as plain Parquet. One
fact in ten has no row.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.config import JOINED_FACTS, KEY, BenchConfig
from benchmarks.engine import open_table
from benchmarks.floors import drain
from benchmarks.lane import run_lane
from benchmarks.names import BROADCAST_JOIN, ENGINE, SHUFFLE_JOIN
from benchmarks.session import in_session
from benchmarks.timing import Contender, Measurement, measure
from benchmarks.workspace import build, expected

COLUMNS = ["quantity", "status"]
_SEED = 20131209


def prepare(config: BenchConfig) -> None:
    """Write the facts once for each shape of the data: a number and a random key."""
    rng = np.random.default_rng(_SEED)
    keys = expected(config)["rows"]

    def make(folder: Path, rows: int) -> None:
        folder.mkdir(parents=True)
        ids = rng.integers(0, keys + keys // 9, rows)
        pq.write_table(pa.table({"n": np.arange(rows), KEY: ids}), folder / "facts.parquet")

    for operation, rows in JOINED_FACTS.items():
        build(config.data(operation), lambda folder, rows=rows: make(folder, rows))  # type: ignore[misc]


def contenders(config: BenchConfig, spark: SparkSession, operation: str) -> list[Contender]:
    """Return the joins of the facts of one operation."""
    table = open_table(config.table("state"))

    def facts() -> DataFrame:
        return spark.read.parquet(str(config.data(operation)))

    def rows() -> DataFrame:
        return spark.read.parquet(str(config.scanned_floor)).select(KEY, *COLUMNS)

    def shuffled() -> DataFrame:
        return facts().join(rows().hint("merge"), KEY, "left")

    def broadcast() -> DataFrame:
        return facts().join(F.broadcast(rows()), KEY, "left")

    def looked_up() -> DataFrame:
        joined: DataFrame = facts().transform(table.lookup_join(KEY, COLUMNS))
        return joined

    sums = [F.count("*"), F.sum("n"), F.sum(KEY), F.count("status"), F.sum("quantity")]
    answers: list[object] = []

    def contender(name: str, joined: Callable[[], DataFrame]) -> Contender:
        def check(_: object) -> None:
            answers.append(joined().agg(*sums).first())
            assert answers[-1] == answers[0], f"wrong answer: {answers[-1]}, expected {answers[0]}"

        return Contender(name, lambda: drain(joined()), check=check)

    named = {SHUFFLE_JOIN: shuffled, BROADCAST_JOIN: broadcast, ENGINE: looked_up}
    return [contender(name, joined) for name, joined in named.items()]


def run(config: BenchConfig, spark: SparkSession) -> list[Measurement]:
    """Measure operations of JOINED_FACTS."""
    prepare(config)
    results: list[Measurement] = []
    for operation in config.operations:
        results += measure(operation, contenders(config, spark, operation), config.turns)
    return results


if __name__ == "__main__":
    sys.exit(run_lane(in_session(run), sys.argv[1:]))
