"""One run: it generates rows, prepares tables, and measures the lanes in separate processes, one after the other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Sequence, Set
from dataclasses import replace
from pathlib import Path

from benchmarks.config import (
    BEFORE_OPERATIONS,
    CORES_OPERATION,
    ENGINE_OPERATIONS,
    FORMAT_OPERATIONS,
    INTEGRITY_OPERATIONS,
    LOCAL_MERGE,
    LOOKUP_JOIN_OPERATIONS,
    LOOKUP_OPERATIONS,
    MEMORY_OPERATIONS,
    MERGE_OPERATIONS,
    METADATA_OPERATIONS,
    MODE_OPERATIONS,
    SPEED_OPERATIONS,
    STREAM_OPERATION,
    UPKEEP_OPERATIONS,
    VECTOR_COMPACTIONS,
    VECTOR_OPERATIONS,
    BenchConfig,
)
from benchmarks.environments import PEERS
from benchmarks.names import BEFORE
from benchmarks.sql_queries import SQL_HERE, SQL_ON_SPARK
from benchmarks.timing import Measurement

ROOT = Path(__file__).resolve().parent.parent
# BEFORE_OPERATIONS run in a process without other operations, as those of the earlier revision do.
_SPARK_LANES = (("load",), BEFORE_OPERATIONS, ("read", "where"), ("compact",))

#: Peers that have lookups by key only.
_LOOKUP_PEERS = frozenset({"rocksdb"})

#: Peers that have merges.
_MERGE_PEERS = frozenset({"deltalake"})

#: Seconds after which a hanging peer is killed.
_PEER_SECONDS = 900


def say(text: str = "") -> None:
    """Print a line of progress."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


class Runner:
    """Starts each lane as a process and collects its measurements; the output of a lane goes to a log file."""

    def __init__(self, config: BenchConfig) -> None:
        self.config = config
        self.results: list[Measurement] = []
        self.logs = config.root / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)

    def lane(
        self,
        title: str,
        module: str,
        operations: Sequence[str],
        *arguments: str,
        python: str = sys.executable,
        cores: int | None = None,
        code: Path = ROOT,
        max_seconds: float | None = None,
    ) -> None:
        """Run one lane, on ``cores`` if they are given, with the packages below ``code``.

        A lane that crashes, or is killed after ``max_seconds``, is a failed measurement of each operation.
        """
        config = self.config if cores is None else replace(self.config, cores=cores)
        config_file, out_file = self.logs / f"{title}.config.json", self.logs / f"{title}.out.json"
        log_file = self.logs / f"{title}.log"
        config_file.write_text(config.with_operations(tuple(operations)).to_json(), encoding="utf-8")
        out_file.unlink(missing_ok=True)
        start = time.monotonic()
        with log_file.open("w", encoding="utf-8") as log:
            process = subprocess.Popen(
                [python, "-m", module, *arguments, str(config_file), str(out_file)],
                cwd=code,
                env={**os.environ, "PYTHONPATH": str(code)},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            error = _ended(process, max_seconds)
        say(f"  {title}: {time.monotonic() - start:.0f} s{error and f', {error}: see {log_file}'}")
        if out_file.exists():
            found = [Measurement.from_dict(raw) for raw in json.loads(out_file.read_text(encoding="utf-8"))]
        else:
            found = [Measurement(name, title, error=error or "no result") for name in operations]
        self.add(found)

    def add(self, found: Sequence[Measurement]) -> None:
        """Add measurements, and print failures immediately."""
        for result in found:
            if result.error:
                say(f"    {result.operation} of {result.contender} failed: {result.error}")
        self.results += found


def _ended(process: subprocess.Popen[bytes], max_seconds: float | None) -> str:
    """Wait for a lane and return the fault of its end; its whole process tree (JVM, workers) has ended then."""
    try:
        status = process.wait(max_seconds)
    except subprocess.TimeoutExpired:
        return f"not done after {max_seconds:.0f} s"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return f"exit status {status}" if status else ""


def _run_spark(runner: Runner, wanted: Collection[str]) -> None:
    """Prepare the tables that the wanted operations need, and measure them."""
    lane = "benchmarks.spark_lane"
    for prepare, lanes in (("prepare", _SPARK_LANES), ("prepare-engines", [(name,) for name in ENGINE_OPERATIONS])):
        groups = [[name for name in group if name in wanted] for group in lanes]
        if any(groups) or (prepare == "prepare" and "first-row" in wanted):
            runner.lane(prepare, lane, (prepare,))
        for operations in filter(None, groups):
            runner.lane("-".join(operations), lane, operations)


def _run_before(runner: Runner, wanted: Collection[str]) -> None:
    """Measure an earlier revision of lakelsm on the same tables, with the present harness."""
    operations = [name for name in BEFORE_OPERATIONS if name in wanted]
    revision = runner.config.before
    if not operations or not revision:
        return
    code = runner.config.root / f"before-{revision}"
    if not (code / "benchmarks").exists():
        code.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(
            ["git", "archive", revision, "lakelsm"], cwd=ROOT, capture_output=True, check=False
        )
        unpacked = archive.returncode or subprocess.run(["tar", "-x"], cwd=code, input=archive.stdout).returncode
        if unpacked:
            error = f"unknown revision: {archive.stderr.decode(errors='replace').strip()}"
            runner.add([Measurement(name, BEFORE, error=error) for name in operations])
            return
        (code / "benchmarks").symlink_to(ROOT / "benchmarks")
    runner.lane("before", "benchmarks.before_lane", operations, code=code)


def _run_vectors(runner: Runner, wanted: Collection[str]) -> None:
    """Measure reads and compactions with deletion vectors; a read on one core has a separate process."""
    lane = "benchmarks.vectors_lane"
    operations = [name for name in VECTOR_OPERATIONS if name in wanted]
    if not operations:
        return
    if any(name in VECTOR_COMPACTIONS for name in operations):
        runner.lane("prepare", "benchmarks.spark_lane", ("prepare",))
    runner.lane("prepare-vectors", lane, ("prepare-vectors",))
    runner.lane("vectors", lane, operations)
    if CORES_OPERATION in operations:
        runner.lane("vectors-one-core", lane, (CORES_OPERATION,), cores=1)


def _run_modes(runner: Runner, wanted: Collection[str]) -> None:
    operations = [name for name in MODE_OPERATIONS if name in wanted]
    if operations:
        runner.lane("prepare", "benchmarks.spark_lane", ("prepare",))
        runner.lane("prepare-modes", "benchmarks.modes_lane", ("prepare-modes",))
        runner.lane("modes", "benchmarks.modes_lane", operations)


def _run_merges(runner: Runner, wanted: Collection[str]) -> None:
    operations = [name for name in MERGE_OPERATIONS if name in wanted]
    if operations:
        runner.lane("prepare", "benchmarks.spark_lane", ("prepare",))
    for name in operations:  # Each in a separate process: one of them has no session.
        runner.lane(name, "benchmarks.merge_lane", (name,))


def _run_lookup_joins(runner: Runner, wanted: Collection[str]) -> None:
    operations = [name for name in LOOKUP_JOIN_OPERATIONS if name in wanted]
    if operations:
        runner.lane("prepare", "benchmarks.spark_lane", ("prepare",))
        runner.lane("lookup-joins", "benchmarks.lookup_join_lane", operations)


def _run_streams(runner: Runner, wanted: Collection[str]) -> None:
    if STREAM_OPERATION in wanted:
        runner.lane("streams", "benchmarks.stream_lane", (STREAM_OPERATION,))


def _run_sql(runner: Runner, wanted: Set[str]) -> None:
    """Measure queries in this process, and queries and the data source on Spark."""
    lanes = {
        "sql": ("benchmarks.sql_lane", SQL_HERE),
        "sql-spark": ("benchmarks.sql_spark_lane", SQL_ON_SPARK),
        "format": ("benchmarks.sql_spark_lane", FORMAT_OPERATIONS),
    }
    if not wanted.isdisjoint([*SQL_HERE, *SQL_ON_SPARK, *FORMAT_OPERATIONS]):
        runner.lane("prepare", "benchmarks.spark_lane", ("prepare",))
    for title, (lane, known) in lanes.items():
        operations = [name for name in known if name in wanted]
        if operations:
            runner.lane(title, lane, operations)


def _run_own(runner: Runner, wanted: Collection[str]) -> None:
    """Run the lanes without peers."""
    planning = [name for name in METADATA_OPERATIONS if name in wanted]
    if planning:
        runner.lane("prepare-metadata", "benchmarks.planning_lane", ("prepare",))
        runner.lane("-".join(planning), "benchmarks.planning_lane", planning)
    upkeep = [name for name in UPKEEP_OPERATIONS if name in wanted]
    if upkeep:
        runner.lane("prepare-upkeep", "benchmarks.upkeep_lane", ("prepare",))
    for name in upkeep:  # Each in a separate process, because its memory is reported.
        runner.lane(name, "benchmarks.upkeep_lane", (name,))
    lookups = [name for name in LOOKUP_OPERATIONS if name in wanted]
    if lookups:
        runner.lane("lookups", "benchmarks.lookup_lane", lookups)
    integrity = [name for name in INTEGRITY_OPERATIONS if name in wanted]
    if integrity:
        runner.lane("integrity", "benchmarks.integrity_lane", integrity)
    memory = [name for name in MEMORY_OPERATIONS if name in wanted]
    if memory:
        runner.lane("memory", "benchmarks.memory_lane", memory)


def run(config: BenchConfig, only_peers: bool) -> list[Measurement]:
    """Generate, prepare and measure: Spark's lanes, those without a session, then the peers."""
    from benchmarks.data import generate

    config.root.mkdir(parents=True, exist_ok=True)
    runner = Runner(config)
    start = time.monotonic()
    generate(config)
    say(f"  rows generated: {time.monotonic() - start:.0f} s")
    wanted = set(config.operations)
    speed = [name for name in SPEED_OPERATIONS if name in wanted]
    if not only_peers:
        _run_spark(runner, wanted)
        _run_before(runner, wanted)
        if speed:
            runner.lane("local", "benchmarks.local_lane", speed)
        _run_vectors(runner, wanted)
        _run_modes(runner, wanted)
        _run_merges(runner, wanted)
        _run_lookup_joins(runner, wanted)
        _run_sql(runner, wanted)
        _run_streams(runner, wanted)
        _run_own(runner, wanted)
    lookups = [name for name in LOOKUP_OPERATIONS if name in wanted]
    for name, python in config.peer_pythons.items():
        operations = lookups if name in _LOOKUP_PEERS else speed
        if name in _MERGE_PEERS and LOCAL_MERGE in wanted:
            operations = [*operations, LOCAL_MERGE]
        if operations:
            runner.lane(name, "benchmarks.peer_runner", operations, name, python=python, max_seconds=_PEER_SECONDS)
    return runner.results


def missing_peers(config: BenchConfig) -> list[str]:
    """Return the peers without an environment in this run."""
    return [name for name in PEERS if name not in config.peer_pythons]
