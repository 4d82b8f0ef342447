"""An earlier revision of lakelsm on Spark: ``python -m benchmarks.before_lane CONFIG.json OUT.json``.

It runs with the package ``lakelsm`` of that revision, on tables that the present one prepared.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from pyspark.sql import SparkSession

from benchmarks.config import BenchConfig
from benchmarks.engine import Engine
from benchmarks.lane import run_lane
from benchmarks.names import BEFORE, ENGINE
from benchmarks.session import in_session
from benchmarks.timing import Measurement, measure


def run(config: BenchConfig, spark: SparkSession) -> list[Measurement]:
    """Measure BEFORE_OPERATIONS; the contenders of the present engine get the name of the earlier one."""
    engine = Engine(config, spark)
    results: list[Measurement] = []
    for operation in config.operations:
        contenders = [contender for contender in engine.contenders(operation) if contender.name == ENGINE]
        results += measure(operation, [replace(contender, name=BEFORE) for contender in contenders], config.turns)
    return results


if __name__ == "__main__":
    sys.exit(run_lane(in_session(run), sys.argv[1:]))
