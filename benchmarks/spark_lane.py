"""One group of operations in a Spark process of its own: ``python -m benchmarks.spark_lane CONFIG.json
OUT.json``.

Floor and engine take turns within the process. A process of its own for each group keeps one operation's
memory out of another's peak.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.config import ENGINE_OPERATIONS, BenchConfig
from benchmarks.engine import NAME, Engine
from benchmarks.floors import floor_contender, prepare_floor
from benchmarks.merge_engines import prepare_answers
from benchmarks.session import open_session
from benchmarks.timing import Measurement, error_line, measure, use_cores


def run(config: BenchConfig, spark: SparkSession) -> list[Measurement]:
    """Measure the operations; "prepare" and "prepare-engines" build the tables instead. An engine that
    cannot prepare is reported."""
    engine = Engine(config, spark)
    if config.operations in (("prepare",), ("prepare-engines",)):
        try:
            if config.operations == ("prepare",):
                prepare_floor(config, spark)
                engine.prepare()
            else:
                prepare_answers(config)
                engine.prepare_merge_engines()
        except Exception as error:  # noqa: BLE001 - whatever the engine raises is a result to report
            traceback.print_exc()
            return [Measurement("prepare", NAME, error=error_line(error))]
        return []
    results: list[Measurement] = []
    for operation in config.operations:
        floors = [] if operation in ENGINE_OPERATIONS else [floor_contender(config, spark, operation)]
        contenders = [*floors, *engine.contenders(operation)]
        results += measure(operation, contenders, config.repeat, config.slow_seconds)
    return results


def main(argv: list[str]) -> int:
    """Entry point of the subprocess."""
    config = BenchConfig.from_json(Path(argv[0]).read_text(encoding="utf-8"))
    use_cores(config.cores)
    spark = open_session(config)
    try:
        results = run(config, spark)
    finally:
        spark.stop()
    Path(argv[1]).write_text(json.dumps([result.to_dict() for result in results]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
