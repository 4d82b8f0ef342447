"""Deletion vectors: ``python -m benchmarks.vectors_lane CONFIG OUT``.

Reads of tables with 0, 1, 8 and 50 % of the rows masked, each beside the plain scan of the same files; a read within
one bucket; compactions of the same level-0 runs with and without vectors.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.config import CORES_OPERATION, KEY, MASKED_PERCENT, VECTOR_READS, WHERE, BenchConfig
from benchmarks.data import SCHEMA
from benchmarks.engine import Engine, open_table
from benchmarks.floors import check_frame, drain
from benchmarks.lane import run_lane
from benchmarks.names import ENGINE, SCAN
from benchmarks.session import in_session
from benchmarks.timing import Contender, Measurement, measure
from benchmarks.workspace import build, copy_table, remove

VECTORS = {"deletion-vectors.enabled": "true"}
WITHOUT_VECTORS = f"{ENGINE} without vectors"
ONE_CORE = f"{ENGINE}, one core"
_ONE_BUCKET, _STATE = "vector-one-bucket", "vector-state"
_OF_ONE_BUCKET = 8


class VectorTables:
    """The prepared tables with the rows of ``base``: newer versions of N % of them have masked the older ones."""

    def __init__(self, config: BenchConfig, spark: SparkSession) -> None:
        self.config = config
        self.engine = Engine(config, spark)

    def _corrected(self, percent: int, all_rows: bool = True) -> DataFrame:
        """Return the base rows, or only the corrected ones: this many per cent, spread evenly over keys and files."""
        chosen = F.col(KEY) % 100 < percent
        rows = self.engine.rows("base")
        quantity = F.when(chosen, 999 - F.col("quantity")).otherwise(F.col("quantity")).alias("quantity")
        shown = rows.select(*(quantity if name == "quantity" else name for name in SCHEMA.names))
        return shown if all_rows else shown.where(chosen)

    def prepare(self) -> None:
        """Build the tables once for each shape of the data."""
        config, engine = self.config, self.engine
        none_masked = config.table("vector-0")

        def mask(target: Path, percent: int) -> None:
            table = open_table(target)
            table.write(self._corrected(percent, all_rows=False))
            table.compact()

        def masked(percent: int, target: Path) -> None:
            copy_table(none_masked, target)
            mask(target, percent)

        def one_bucket(target: Path) -> None:
            engine.load(target, engine.rows("base"), {**VECTORS, "bucket": "1"})
            mask(target, _OF_ONE_BUCKET)

        def runs(target: Path) -> None:
            copy_table(none_masked, target)
            for number in range(config.runs):
                open_table(target).write(engine.rows(f"run-{number}"))

        build(none_masked, lambda path: engine.load(path, engine.rows("base"), VECTORS))
        for percent in MASKED_PERCENT[1:]:
            build(config.table(f"vector-{percent}"), lambda path, percent=percent: masked(percent, path))  # type: ignore[misc]
        build(config.table(_ONE_BUCKET), one_bucket)
        build(config.table(_STATE), runs)

    def reads(self, operation: str) -> list[Contender]:
        """Return a read of VECTOR_READS, and the plain scan of the files that it opens."""
        percent = int(operation.rpartition("-")[2])
        path = self.config.table(f"vector-{percent}")
        where = WHERE if operation.startswith("vector-where") else None
        files = [file.path for file in open_table(path).explain().raw_files]

        def read() -> DataFrame:
            frame: DataFrame = open_table(path).read(where=where)
            return frame

        def scan() -> DataFrame:
            frame = self.engine.spark.read.parquet(*files).select(*SCHEMA.names)
            return frame if where is None else frame.where(where)

        def check(_: object) -> None:
            assert files, f"{path} has no file that is read without a merge"
            want = self._corrected(percent)
            _check_sums(read(), want if where is None else want.where(where))

        return [Contender(SCAN, lambda: drain(scan())), Contender(ENGINE, lambda: drain(read()), check=check)]

    def read_of_one_bucket(self) -> list[Contender]:
        """Return the read of the table of one bucket on all cores of this process; the name says if it is one core."""
        path = self.config.table(_ONE_BUCKET)

        def check(_: object) -> None:
            _check_sums(open_table(path).read(), self._corrected(_OF_ONE_BUCKET))

        name = ONE_CORE if self.config.cores == 1 else ENGINE
        return [Contender(name, lambda: drain(open_table(path).read()), check=check)]

    def compactions(self, operation: str) -> list[Contender]:
        """Return the compactions of the level-0 runs of ``state`` in a table with vectors and in one without."""
        full = operation == "vector-compact-full"
        return [
            self._compaction(WITHOUT_VECTORS, self.config.table("state"), full),
            self._compaction(ENGINE, self.config.table(_STATE), full),
        ]

    def _compaction(self, name: str, source: Path, full: bool) -> Contender:
        scratch = self.engine.scratch / source.name
        checked = False

        def compact() -> Any:
            return open_table(scratch).compact(full=full)

        def teardown() -> None:
            nonlocal checked
            if not checked:
                checked = True
                check_frame(self.config, open_table(scratch).read())
            remove(scratch)

        def check(done: Any) -> None:
            assert done.files_written, f"{done.status}: --runs {self.config.runs} needs no ordinary compaction"

        return Contender(name, compact, lambda: copy_table(source, scratch), teardown, check)


def _check_sums(found: DataFrame, want: DataFrame) -> None:
    """Raise AssertionError unless two frames have the same number of rows and the same sums of ids and quantities."""
    sums = [F.count("*"), F.sum(KEY), F.sum("quantity"), F.sum(F.col("amount").cast("decimal(28,2)"))]
    got, expected = found.agg(*sums).first(), want.agg(*sums).first()
    assert got == expected, f"wrong answer: rows, id, quantity, amount are {got}, expected {expected}"


def run(config: BenchConfig, spark: SparkSession) -> list[Measurement]:
    """Measure VECTOR_OPERATIONS; "prepare-vectors" builds the tables instead."""
    tables = VectorTables(config, spark)
    if config.operations == ("prepare-vectors",):
        tables.prepare()
        return []
    results: list[Measurement] = []
    for operation in config.operations:
        if operation in VECTOR_READS:
            contenders = tables.reads(operation)
        else:
            contenders = tables.read_of_one_bucket() if operation == CORES_OPERATION else tables.compactions(operation)
        results += measure(operation, contenders, config.turns)
    return results


if __name__ == "__main__":
    sys.exit(run_lane(in_session(run), sys.argv[1:]))
