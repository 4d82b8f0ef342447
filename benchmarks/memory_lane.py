"""The memory of a task with rows whose encoding hides their width: ``python -m benchmarks.memory_lane CONFIG OUT``.

A table of 1.4 GB of rows has files of a few MB, because each of its ten columns has 80 distinct values of 1 KB. It is
compacted fully with `TASK_MEMORY` for each task, and read merged; the result is the memory of the largest worker.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.config import KEY, BenchConfig
from benchmarks.engine import open_table
from benchmarks.floors import drain
from benchmarks.lane import run_lane
from benchmarks.names import ENGINE
from benchmarks.session import in_session
from benchmarks.timing import Contender, Measurement, measure
from benchmarks.workspace import build, copy_table, remove
from lakelsm import Catalog

#: ``--max-task-memory`` of the compaction.
TASK_MEMORY = 128 << 20

_ROWS, _RUNS = 150_000, 5
_COLUMNS = tuple(f"c{number}" for number in range(10))
_VALUES, _CHARACTERS = 80, 1024


def _rows(spark: SparkSession, run: int) -> DataFrame:
    """Return the rows of one run: all in the first one, every tenth in the others."""
    value = F.lpad((F.col(KEY) * 7919 % _VALUES).cast("string"), _CHARACTERS, "x")
    ids = spark.range(0, _ROWS) if run == 0 else spark.range(run, _ROWS, 10)
    return ids.select(KEY, *(value.alias(name) for name in _COLUMNS))


def run(config: BenchConfig, spark: SparkSession) -> list[Measurement]:
    """Measure memory-compact and memory-read."""
    source, scratch = config.root / "dictionary", config.scratch / "dictionary"

    def make(target: Path) -> None:
        columns = ", ".join(f"{name} STRING" for name in _COLUMNS)
        options = {"bucket": "1", "write-only": "true", "merge-engine": "partial-update"}
        table = Catalog(config.scratch.as_uri()).create_table(
            "memory.t", f"{KEY} BIGINT NOT NULL, {columns}", primary_key=[KEY], options=options
        )
        for number in range(_RUNS):
            table.write(_rows(spark, number))
        copy_table(config.scratch / "memory.db" / "t", target)
        remove(config.scratch / "memory.db")

    def compact() -> object:
        return open_table(scratch).compact(full=True, max_task_memory=TASK_MEMORY).rows_written

    def check(written: object) -> None:
        assert written == _ROWS, f"wrong answer: {written} rows written of {_ROWS}"

    build(source, make)
    contenders = {
        "memory-compact": Contender(ENGINE, compact, lambda: copy_table(source, scratch), lambda: remove(scratch), check),
        "memory-read": Contender(ENGINE, lambda: drain(open_table(source).read())),
    }
    results: list[Measurement] = []
    for operation in config.operations:
        results += measure(operation, [contenders[operation]], config.turns)
    return results


if __name__ == "__main__":
    sys.exit(run_lane(in_session(run), sys.argv[1:]))
