"""Micro-batches of streams into a table: ``python -m benchmarks.stream_lane CONFIG OUT``.

A file of 10,000 changes lands in a directory. Its time counts from the landing to the commit log of Spark, which the
streaming query writes last. The upsert beside it is `Table.write` of the same file. Each contender compacts after its
write, and has a table of its own.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.config import STREAM_BATCH, STREAM_BATCHES, STREAM_OPERATION, BenchConfig
from benchmarks.engine import open_catalog
from benchmarks.lane import run_lane
from benchmarks.names import ENGINE, FORMAT_STREAM, NATIVE_STREAM, upserting
from benchmarks.session import in_session
from benchmarks.timing import Contender, Measurement, Turns, measure
from benchmarks.workspace import remove

_COLUMNS = {"id": "BIGINT", "v": "BIGINT", "name": "STRING"}
_DDL = "id BIGINT, v BIGINT, name STRING"
_KEYS = 5 * STREAM_BATCH
_SEED = 20260101
_MAX_SECONDS = 120.0


class _Landing:
    """A directory into which the same batches are written for each contender."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = count()
        folder.mkdir(parents=True)

    def add(self) -> Path:
        """Add the next batch, and return its file."""
        number = next(self._numbers)
        rng = np.random.default_rng(_SEED + number)
        ids = rng.integers(0, _KEYS, STREAM_BATCH)
        values = np.arange(STREAM_BATCH) + number * STREAM_BATCH
        names = pa.array([f"name-{value}" for value in values])
        staged, landed = self.folder.with_name(f"{self.folder.name}-staged"), self.folder / f"{number:05d}.parquet"
        pq.write_table(pa.table({"id": ids, "v": values, "name": names}), staged)
        os.replace(staged, landed)
        return landed


def _table(config: BenchConfig, name: str) -> Any:
    options = {"bucket": str(config.buckets)}
    return open_catalog(config.scratch / "streams").create_table(name, _COLUMNS, primary_key="id", options=options)


def contenders(config: BenchConfig, spark: SparkSession, queries: list[Any]) -> list[Contender]:
    """Return the upsert and the two sinks. ``queries`` gets the queries that run."""
    root = config.scratch / "streams"
    plain = _table(config, "db.plain")
    plain_landing = _Landing(root / "plain-landing")

    def upsert() -> None:
        plain.write(spark.read.schema(_DDL).parquet(str(plain_landing.add())))

    def sink(name: str, label: str, start: Callable[[Any, Any], Any]) -> Contender:
        landing, checkpoint = _Landing(root / f"{label}-landing"), root / f"{label}-log"
        table = _table(config, f"db.{label}")
        stream = spark.readStream.schema(_DDL).parquet(str(landing.folder))
        writer = stream.writeStream.option("checkpointLocation", str(checkpoint))
        query = start(table, writer)
        queries.append(query)
        batches = count()

        def batch() -> None:
            landing.add()
            done, end = checkpoint / "commits" / str(next(batches)), time.monotonic() + _MAX_SECONDS
            while not done.exists():
                assert query.isActive and time.monotonic() < end, f"no commit: {query.exception()}"
                time.sleep(0.001)

        def check(_: object) -> None:
            found = pa.table(table.to_arrow()).num_rows
            assert found == plain.count(engine="local").rows, f"wrong number of rows: {found}"

        return Contender(name, batch, check=check)

    return [
        Contender(upserting(ENGINE), upsert),
        sink(NATIVE_STREAM, "native", lambda table, writer: table.write_stream(writer)),
        sink(FORMAT_STREAM, "format", lambda table, writer: writer.format("lakelsm").start(table._store().paths.root)),
    ]


def run(config: BenchConfig, spark: SparkSession) -> list[Measurement]:
    """Measure STREAM_BATCHES batches of each contender, in turns."""
    remove(config.scratch / "streams")
    queries: list[Any] = []
    try:
        turns = Turns(max(config.repeat, STREAM_BATCHES), config.slow_seconds)
        return measure(STREAM_OPERATION, contenders(config, spark, queries), turns)
    finally:
        for query in queries:
            query.stop()
        remove(config.scratch / "streams")


if __name__ == "__main__":
    sys.exit(run_lane(in_session(run), sys.argv[1:]))
