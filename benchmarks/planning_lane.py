"""Planning, counting and committing on synthetic metadata: ``python -m benchmarks.planning_lane CONFIG OUT``."""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.config import BenchConfig
from benchmarks.engine import commit_files, count_rows, plan_files
from benchmarks.lane import run_lane
from benchmarks.names import ENGINE
from benchmarks.timing import Contender, Measurement, measure
from benchmarks.workspace import copy_table, remove

_ADDED_FILES = 10


def run(config: BenchConfig) -> list[Measurement]:
    """prepare: the metadata (in a separate process, whose memory does not count); plan: all files and one partition's;
    count-metadata: their rows; commit: ten more files. These operations read metadata only, so there is no floor."""
    from benchmarks.metadata import ONE_PARTITION, ROWS_A_FILE, WHERE, make_entries, prepare_metadata

    root = prepare_metadata(config)
    if config.operations == ("prepare",):
        return []
    scratch = config.scratch / "planned"
    results: list[Measurement] = []

    def check(planned: object) -> None:
        assert planned == config.files, f"wrong answer: {planned} files planned of {config.files}"

    def check_rows(counted: object) -> None:
        assert counted == config.files * ROWS_A_FILE, f"wrong answer: {counted} rows"

    added = make_entries(np.arange(config.files, config.files + _ADDED_FILES), top_level=False)

    def add() -> None:
        commit_files(scratch, added)

    plan = [
        Contender(ENGINE, lambda: plan_files(root, None), check=check),
        Contender(ENGINE + ", one partition", lambda: plan_files(root, WHERE)),
    ]
    count = [
        Contender(ENGINE, lambda: count_rows(root, None), check=check_rows),
        Contender(ENGINE + ", one partition", lambda: count_rows(root, ONE_PARTITION)),
    ]
    commit = [Contender(ENGINE, add, lambda: copy_table(root, scratch), lambda: remove(scratch))]
    for operation, contenders in (("plan", plan), ("count-metadata", count), ("commit", commit)):
        if operation in config.operations:
            results += measure(operation, contenders, config.turns)
    return results


if __name__ == "__main__":
    sys.exit(run_lane(run, sys.argv[1:]))
