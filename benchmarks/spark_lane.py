"""One group of operations in a separate Spark process: ``python -m benchmarks.spark_lane CONFIG.json
OUT.json``.

Floor and lakelsm alternate within the process. Each group has a separate process, so that the memory of one operation is
not part of another's peak.
"""

from __future__ import annotations

import sys
import traceback

from pyspark.sql import SparkSession

from benchmarks.config import ENGINE_OPERATIONS, BenchConfig
from benchmarks.engine import Engine
from benchmarks.floors import floor_contenders, prepare_floor
from benchmarks.lane import run_lane
from benchmarks.merge_engines import prepare_answers
from benchmarks.names import ENGINE
from benchmarks.session import in_session
from benchmarks.timing import Measurement, error_line, measure


def run(config: BenchConfig, spark: SparkSession) -> list[Measurement]:
    """Measure the operations; "prepare" and "prepare-engines" build the tables instead. A failed preparation is
    reported."""
    engine = Engine(config, spark)
    if config.operations in (("prepare",), ("prepare-engines",)):
        try:
            if config.operations == ("prepare",):
                prepare_floor(config, spark)
                engine.prepare()
            else:
                prepare_answers(config)
                engine.prepare_merge_engines()
        except Exception as error:  # noqa: BLE001 - every failure is a result
            traceback.print_exc()
            return [Measurement("prepare", ENGINE, error=error_line(error))]
        return []
    results: list[Measurement] = []
    for operation in config.operations:
        floors = [] if operation in ENGINE_OPERATIONS else floor_contenders(config, spark, operation)
        contenders = [*floors, *engine.contenders(operation)]
        results += measure(operation, contenders, config.turns)
    return results


if __name__ == "__main__":
    sys.exit(run_lane(in_session(run), sys.argv[1:]))
