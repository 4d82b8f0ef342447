"""lakelsm without Spark, in a process without a JVM: ``python -m benchmarks.local_lane CONFIG.json OUT.json``."""

from __future__ import annotations

import sys

import pyarrow as pa

from benchmarks.config import BenchConfig
from benchmarks.lane import run_lane
from benchmarks.local_engine import LocalEngine
from benchmarks.timing import Measurement, measure


def run(config: BenchConfig) -> list[Measurement]:
    """Measure every operation, beside pyarrow's own scan if there is one."""
    pa.set_cpu_count(config.cores)
    engine = LocalEngine(config)
    results: list[Measurement] = []
    for operation in config.operations:
        results += measure(operation, engine.contenders(operation), config.turns)
    return results


if __name__ == "__main__":
    sys.exit(run_lane(run, sys.argv[1:]))
