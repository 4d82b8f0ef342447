"""The three modes of a table on the same rows: ``python -m benchmarks.modes_lane CONFIG OUT``.

Each table is loaded and compacted. Then upserts of 1 % follow, each with the compaction that its mode runs after a
write. Reads use the table after the last upsert.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks.config import WHERE, BenchConfig
from benchmarks.engine import Engine, open_table
from benchmarks.floors import check_frame, drain, floor_contenders
from benchmarks.lane import run_lane
from benchmarks.modes_page import ALL_FILES, CONTENDER, LIVE_FILES, MODES
from benchmarks.session import in_session
from benchmarks.timing import Contender, Measurement, measure
from benchmarks.workspace import build, check_count, copy_table, remove


class ModeTables:
    """Two tables for each mode: a loaded one, and one after all upserts."""

    def __init__(self, config: BenchConfig, spark: SparkSession) -> None:
        self.config = config
        self.spark = spark
        self.engine = Engine(config, spark)

    def _loaded(self, mode: str) -> Path:
        return self.config.table(f"mode-{mode}-loaded")

    def _upserted(self, mode: str) -> Path:
        return self.config.table(f"mode-{mode}-upserted")

    def _upsert(self, path: Path) -> None:
        for number in range(self.config.runs):
            open_table(path).write(self.engine.rows(f"run-{number}"))

    def prepare(self) -> None:
        """Build the tables once for each shape of the data."""

        def upserted(mode: str, target: Path) -> None:
            copy_table(self._loaded(mode), target)
            self._upsert(target)

        for mode, options in MODES.items():
            every = {"write-only": "false", **options}
            base = self.engine.rows("base")
            build(self._loaded(mode), lambda path, rows=base, more=every: self.engine.load(path, rows, more))  # type: ignore[misc]
            build(self._upserted(mode), lambda path, mode=mode: upserted(mode, path))  # type: ignore[misc]

    def contenders(self, operation: str) -> list[Contender]:
        """Return mode-write, mode-read or mode-where for each mode; reads beside the plain scan of the merged rows."""
        if operation == "mode-write":
            return [self._writes(mode) for mode in MODES]
        where = WHERE if operation == "mode-where" else None
        floors = floor_contenders(self.config, self.spark, "read" if where is None else "where")
        return [*floors, *(self._reads(mode, where) for mode in MODES)]

    def _writes(self, mode: str) -> Contender:
        scratch = self.engine.scratch / mode
        return Contender(
            CONTENDER.format(mode),
            lambda: self._upsert(scratch),
            lambda: copy_table(self._loaded(mode), scratch),
            lambda: remove(scratch),
        )

    def _reads(self, mode: str, where: str | None) -> Contender:
        def read() -> DataFrame:
            frame: DataFrame = open_table(self._upserted(mode)).read(where=where)
            return frame

        def check(_: object) -> None:
            if where is None:
                check_frame(self.config, read())
            else:
                check_count(self.config, "where", read().count())

        return Contender(CONTENDER.format(mode), lambda: drain(read()), check=check)

    def stored(self, mode: str) -> dict[str, int]:
        """Return the bytes of the table after the upserts: of its newest snapshot's data files, and of all files."""
        path = self._upserted(mode)
        live = open_table(path).inspect.files().to_spark().agg({"file_size_in_bytes": "sum"}).collect()[0][0]
        every = sum(os.path.getsize(Path(root) / name) for root, _, names in os.walk(path) for name in names)
        return {LIVE_FILES: live, ALL_FILES: every}


def run(config: BenchConfig, spark: SparkSession) -> list[Measurement]:
    """Measure MODE_OPERATIONS; "prepare-modes" builds the tables instead."""
    tables = ModeTables(config, spark)
    if config.operations == ("prepare-modes",):
        tables.prepare()
        return []
    results: list[Measurement] = []
    for operation in config.operations:
        results += measure(operation, tables.contenders(operation), config.turns)
    stored = {CONTENDER.format(mode): tables.stored(mode) for mode in MODES}
    for result in results:
        result.stored = stored.get(result.contender, {})
    return results


if __name__ == "__main__":
    sys.exit(run_lane(in_session(run), sys.argv[1:]))
