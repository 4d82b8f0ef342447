"""MERGE INTO of one per cent of the rows by the key, beside the plain upsert of the same rows.

``python -m benchmarks.merge_lane CONFIG.json OUT.json``: with the operation "merge" on Spark, with "merge-local" in this
process, without a session. The table is the compacted base, and nine tenths of the keys are in it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.config import LOCAL_MERGE, MERGE_OPERATIONS, BenchConfig
from benchmarks.engine import open_table
from benchmarks.lane import run_lane
from benchmarks.names import ENGINE, LOCAL, upserting
from benchmarks.session import in_session
from benchmarks.timing import Contender, Measurement, measure
from benchmarks.workspace import copy_table, remove


def contenders(config: BenchConfig, name: str, rows: Any) -> list[Contender]:
    """Return the merge and the upsert of what ``rows()`` returns, each into a copy of the base."""
    scratch = config.scratch / "merged"

    def reset() -> None:
        copy_table(config.table("base"), scratch)

    def clear() -> None:
        remove(scratch)

    def merge() -> Any:
        builder = open_table(scratch).merge(rows(), "id")
        return builder.when_matched_update().when_not_matched_insert().execute()

    def check(result: Any) -> None:
        new = config.batch_rows // 10
        found = (result.updated_rows, result.inserted_rows)
        assert found == (config.batch_rows - new, new), f"wrong counts: {found}"

    return [
        Contender(upserting(name), lambda: open_table(scratch).write(rows()), reset, clear),
        Contender(name, merge, reset, clear, check),
    ]


def run_locally(config: BenchConfig) -> list[Measurement]:
    """Measure in this process."""
    data = config.data("upsert")
    return measure(LOCAL_MERGE, contenders(config, LOCAL, lambda: pq.read_table(data)), config.turns)


def run_on_spark(config: BenchConfig, spark: Any) -> list[Measurement]:
    """Measure on Spark."""
    data = str(config.data("upsert"))
    return measure("merge", contenders(config, ENGINE, lambda: spark.read.parquet(data)), config.turns)


def main(argv: list[str]) -> int:
    """Run the lane; one of MERGE_OPERATIONS is the only operation."""
    (operation,) = json.loads(Path(argv[0]).read_text(encoding="utf-8"))["operations"]
    assert operation in MERGE_OPERATIONS
    return run_lane(run_locally if operation == LOCAL_MERGE else in_session(run_on_spark), argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
