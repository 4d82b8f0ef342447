"""``python -m benchmarks``: lakelsm beside Spark's floors and the peers that are installed, in one run.

Peers run in environments of their own: ``--install-peers DIR`` makes those, ``--peer-python
deltalake=PATH`` names one. Text goes to standard output, text and JSON to ``--out``. Exit status: 0
measured, 1 lakelsm or a floor failed, 3 everything was measured but a target was missed (only with
``--strict``).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.config import (
    CORES_OPERATION,
    ENGINE_OPERATIONS,
    GROUPS,
    INTEGRITY_OPERATIONS,
    MEMORY_OPERATIONS,
    METADATA_OPERATIONS,
    MODE_OPERATIONS,
    OPERATIONS,
    VECTOR_COMPACTIONS,
    VECTOR_OPERATIONS,
    BenchConfig,
    named_operations,
)
from benchmarks.modes_page import page_table
from benchmarks.report import ENGINE, table, verdicts
from benchmarks.timing import Measurement

_ROOT = Path(__file__).resolve().parent.parent
PEERS = {
    "deltalake": ("deltalake", "pyarrow"),
    "pypaimon": ("pypaimon",),
    "chdb": ("chdb", "pandas", "pyarrow"),
    "paimon_spark": ("pyspark==4.0.*",),
}
_SPARK_LANES = (("load",), ("upsert",), ("read", "where", "count"), ("read-again",), ("compact",))
EXIT_FAILED, EXIT_MISSED = 1, 3


def _say(text: str = "") -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=8_000_000, help="rows of the table (default %(default)s)")
    parser.add_argument("--buckets", type=int, default=4)
    parser.add_argument("--runs", type=int, default=8, help="level-0 runs of 1 %% each (default %(default)s)")
    parser.add_argument(
        "--repeat", type=int, default=5, help="measurements after the warm-up (default %(default)s)"
    )
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--files", type=int, default=100_000, help="files of the synthetic metadata")
    parser.add_argument("--driver-memory", default="4g")
    parser.add_argument(
        "--floor-codec", default="", help="parquet codec of the floors (default: Spark's own default)"
    )
    parser.add_argument("--slow-seconds", type=float, default=40.0, help="from here on measure once, cold")
    parser.add_argument(
        "--only",
        default=",".join(OPERATIONS),
        help=f"operations, or groups of them ({', '.join(GROUPS)}), comma-separated (default: all)",
    )
    parser.add_argument(
        "--workdir", type=Path, default=_ROOT / "bench-results" / "work", help="data; kept for reuse"
    )
    parser.add_argument("--out", type=Path, default=_ROOT / "bench-results", help="where the report goes")
    parser.add_argument(
        "--install-peers", type=Path, metavar="DIR", help="make the peers' environments in DIR"
    )
    parser.add_argument(
        "--peer-python", action="append", default=[], metavar="NAME=PYTHON", help="names: " + ", ".join(PEERS)
    )
    parser.add_argument("--paimon-jar", default="", help="Paimon's Spark jar, for the peer paimon_spark")
    parser.add_argument("--no-spark", action="store_true", help="only the peers")
    parser.add_argument("--strict", action="store_true", help="exit with status 3 when a target is missed")
    return parser


def install_peers(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Make an environment a peer below ``folder`` (kept where it exists); returns the Pythons of those
    that work."""
    pythons = {}
    for name in names:
        python = folder / name / "bin" / "python"
        done = folder / name / "installed"
        if not done.exists():
            _say(f"installing {', '.join(PEERS[name])} into {folder / name}")
            commands = (
                [sys.executable, "-m", "venv", "--clear", str(folder / name)],
                [str(python), "-m", "pip", "install", "--quiet", *PEERS[name]],
            )
            if any(subprocess.run(command, check=False).returncode for command in commands):
                _say(f"{name} could not be installed")
                continue
            done.touch()
        pythons[name] = str(python)
    return pythons


def _peer_pythons(arguments: argparse.Namespace) -> dict[str, str]:
    wanted = [name for name in PEERS if name != "paimon_spark" or arguments.paimon_jar]
    pythons = install_peers(arguments.install_peers.resolve(), wanted) if arguments.install_peers else {}
    for pair in arguments.peer_python:
        name, separator, python = pair.partition("=")
        if name not in PEERS or not separator:
            raise SystemExit(f"--peer-python {pair}: expected NAME=PYTHON with a name of {', '.join(PEERS)}")
        pythons[name] = os.path.abspath(python)
    return pythons


class Runner:
    """Starts each lane as a process and gathers its measurements; what a lane prints goes to a log beside."""

    def __init__(self, config: BenchConfig) -> None:
        self.config = config
        self.results: list[Measurement] = []
        self.logs = config.root / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)

    def lane(
        self, title: str, python: str, module: str, operations: Sequence[str], *arguments: str, cores: int | None = None
    ) -> None:
        """Run one lane, on ``cores`` where they are given. One that dies is a failed measurement of each operation."""
        config = self.config if cores is None else replace(self.config, cores=cores)
        config_file, out_file = self.logs / f"{title}.config.json", self.logs / f"{title}.out.json"
        log_file = self.logs / f"{title}.log"
        config_file.write_text(config.with_operations(tuple(operations)).to_json(), encoding="utf-8")
        out_file.unlink(missing_ok=True)
        start = time.monotonic()
        with log_file.open("w", encoding="utf-8") as log:
            status = subprocess.run(
                [python, "-m", module, *arguments, str(config_file), str(out_file)],
                cwd=_ROOT,
                env={**os.environ, "PYTHONPATH": str(_ROOT)},
                stdout=log,
                stderr=subprocess.STDOUT,
                check=False,
            ).returncode
        state = "" if status == 0 else f", failed with status {status}: see {log_file}"
        _say(f"  {title}: {time.monotonic() - start:.0f} s{state}")
        if out_file.exists():
            found = [Measurement.from_dict(raw) for raw in json.loads(out_file.read_text(encoding="utf-8"))]
        else:
            found = [Measurement(name, title, error=f"exit status {status}") for name in operations]
        for result in found:
            if result.error:
                _say(f"    {result.operation} of {result.contender} failed: {result.error}")
        self.results += found


def _run_spark(runner: Runner, wanted: Collection[str]) -> None:
    """Prepare the tables that the wanted operations need, and measure."""
    for prepare, lanes in (("prepare", _SPARK_LANES), ("prepare-engines", [(name,) for name in ENGINE_OPERATIONS])):
        groups = [[name for name in group if name in wanted] for group in lanes]
        if any(groups):
            runner.lane(prepare, sys.executable, "benchmarks.spark_lane", (prepare,))
        for operations in filter(None, groups):
            runner.lane("-".join(operations), sys.executable, "benchmarks.spark_lane", operations)


def _run_vectors(runner: Runner, wanted: Collection[str]) -> None:
    """Reads and compactions under deletion vectors; a read on one core has a process of its own."""
    lane = "benchmarks.vectors_lane"
    operations = [name for name in VECTOR_OPERATIONS if name in wanted]
    if not operations:
        return
    if any(name in VECTOR_COMPACTIONS for name in operations):
        runner.lane("prepare", sys.executable, "benchmarks.spark_lane", ("prepare",))
    runner.lane("prepare-vectors", sys.executable, lane, ("prepare-vectors",))
    runner.lane("vectors", sys.executable, lane, operations)
    if CORES_OPERATION in operations:
        runner.lane("vectors-one-core", sys.executable, lane, (CORES_OPERATION,), cores=1)


def _run_modes(runner: Runner, wanted: Collection[str]) -> None:
    operations = [name for name in MODE_OPERATIONS if name in wanted]
    if operations:
        runner.lane("prepare", sys.executable, "benchmarks.spark_lane", ("prepare",))
        runner.lane("prepare-modes", sys.executable, "benchmarks.modes_lane", ("prepare-modes",))
        runner.lane("modes", sys.executable, "benchmarks.modes_lane", operations)


def run(config: BenchConfig, with_spark: bool) -> list[Measurement]:
    """Generate, prepare, measure: Spark's lanes, planning, then the peers."""
    from benchmarks.data import generate

    config.root.mkdir(parents=True, exist_ok=True)
    runner = Runner(config)
    start = time.monotonic()
    generate(config)
    _say(f"  rows generated: {time.monotonic() - start:.0f} s")
    wanted = set(config.operations)
    if with_spark:
        _run_spark(runner, wanted)
        _run_vectors(runner, wanted)
        _run_modes(runner, wanted)
    planning = [name for name in METADATA_OPERATIONS if name in wanted]
    if planning:
        runner.lane("prepare-metadata", sys.executable, "benchmarks.planning_lane", ("prepare",))
        runner.lane("-".join(planning), sys.executable, "benchmarks.planning_lane", planning)
    integrity = [name for name in INTEGRITY_OPERATIONS if name in wanted]
    if integrity:
        runner.lane("integrity", sys.executable, "benchmarks.integrity_lane", integrity)
    memory = [name for name in MEMORY_OPERATIONS if name in wanted]
    if memory and with_spark:
        runner.lane("memory", sys.executable, "benchmarks.memory_lane", memory)
    ours = {"read-again", *METADATA_OPERATIONS, *(name for group in GROUPS.values() for name in group)}
    peer_operations = [name for name in config.operations if name not in ours]
    for name, python in config.peer_pythons.items() if peer_operations else ():
        runner.lane(name, python, "benchmarks.peer_runner", peer_operations, name)
    return runner.results


def _header(config: BenchConfig, load_before: float) -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    missing = [name for name in PEERS if name not in config.peer_pythons]
    lines = [
        f"{config.rows:,} rows x 10 columns, {config.buckets} buckets, {config.runs} level-0 runs of "
        f"{config.batch_rows:,} rows, local[{config.cores}], {config.files:,} files of synthetic metadata",
        f"Python {platform.python_version()}, {os.cpu_count()} processors, {memory:.0f} GiB; "
        f"median of {config.repeat} after a warm-up, contenders in turn; memory: peak resident MiB",
        f"floors' parquet codec: {config.floor_codec or 'the default of Spark'}",
    ]
    if load_before > config.cores / 2:
        lines.append(f"NOISY: the load average before the run was {load_before:.1f}; ratios are rough")
    if missing:
        lines.append(f"not installed: {', '.join(missing)}")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; see the module's text for the exit status."""
    arguments = _parser().parse_args(argv)
    try:
        operations = named_operations(arguments.only)
    except ValueError as error:
        raise SystemExit(f"--only {arguments.only}: {error}") from None
    config = BenchConfig(
        workdir=str(arguments.workdir.resolve()),
        rows=arguments.rows,
        buckets=arguments.buckets,
        runs=arguments.runs,
        repeat=arguments.repeat,
        cores=arguments.cores,
        files=arguments.files,
        driver_memory=arguments.driver_memory,
        slow_seconds=arguments.slow_seconds,
        operations=operations,
        peer_pythons=_peer_pythons(arguments),
        paimon_jar=arguments.paimon_jar and str(Path(arguments.paimon_jar).resolve()),
        floor_codec=arguments.floor_codec,
    )
    load_before = os.getloadavg()[0]
    results = run(config, with_spark=not arguments.no_spark)
    judged = verdicts(results)
    asked = [verdict.text() for verdict in judged if verdict.target.operation in operations]
    lines = [_header(config, load_before), "", table(results), "", *asked]
    if set(operations) & set(MODE_OPERATIONS):
        lines += ["", "The table of docs/modes.md:", "", page_table(config, results)]
    text = "\n".join(lines)
    arguments.out.mkdir(parents=True, exist_ok=True)
    name = f"bench-{config.rows}-{time.strftime('%Y%m%d-%H%M%S')}"
    (arguments.out / f"{name}.txt").write_text(text + "\n", encoding="utf-8")
    document = {
        "config": json.loads(config.to_json()),
        "load_average_before": load_before,
        "measurements": [{**result.to_dict(), "median": result.median} for result in results],
        "targets": [verdict.to_dict() for verdict in judged],
    }
    (arguments.out / f"{name}.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    _say(f"\n{text}\n\nwritten: {arguments.out / name}.txt and .json")
    ours = [result for result in results if result.contender.startswith((ENGINE, "Spark "))]
    if any(result.error for result in ours):
        return EXIT_FAILED
    return EXIT_MISSED if arguments.strict and any(verdict.met is False for verdict in judged) else 0


if __name__ == "__main__":
    sys.exit(main())
