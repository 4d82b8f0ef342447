"""``python -m benchmarks``: lakelsm beside Spark's floors and the installed peers, in one run.

Each peer runs in a separate environment: ``--install-peers DIR`` creates them (and downloads jars there), ``--peer-python
deltalake=PATH`` names one. Text goes to standard output, text and JSON to ``--out``. Exit status: 0
measured, 1 lakelsm or a floor failed, 3 everything was measured but a target was missed (only with
``--strict``).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.config import GROUPS, MODE_OPERATIONS, OPERATIONS, BenchConfig, named_operations
from benchmarks.environments import PEERS, install_peers
from benchmarks.modes_page import page_table
from benchmarks.names import BEFORE, ENGINE
from benchmarks.report import failures, judged, table
from benchmarks.run import ROOT, missing_peers, run, say
from benchmarks.targets import verdicts
from benchmarks.timing import Measurement, others_share

EXIT_FAILED, EXIT_MISSED, EXIT_TERMINATED = 1, 3, 143

#: If other processes use more than this share of the processors, processor time is compared instead of wall time.
_NOISY_SHARE = 0.05

#: The last revision before 'one engine, two runners'.
_BEFORE = "cc1b99e"


#: Each snapshot of the synthetic history replaces a file of the first one.
_MIN_FILES = 1_000


def _files(text: str) -> int:
    if int(text) < _MIN_FILES:
        raise argparse.ArgumentTypeError(f"{text} is less than {_MIN_FILES}")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=8_000_000, help="rows of the table (default %(default)s)")
    parser.add_argument("--buckets", type=int, default=4)
    parser.add_argument("--runs", type=int, default=8, help="level-0 runs of 1 %% each (default %(default)s)")
    parser.add_argument(
        "--repeat", type=int, default=5, help="measurements after the warm-up (default %(default)s)"
    )
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument(
        "--files", type=_files, default=100_000, help=f"files of the synthetic metadata, at least {_MIN_FILES:,}"
    )
    parser.add_argument("--driver-memory", default="4g")
    parser.add_argument(
        "--floor-codec", default="", help="Parquet codec of the floors' files (default: Spark's own default)"
    )
    parser.add_argument(
        "--slow-seconds", type=float, default=60.0, help="a slower warm-up is the only, cold measurement"
    )
    parser.add_argument(
        "--max-seconds", type=float, default=12.0, help="seconds for all runs of a contender (default %(default)s)"
    )
    parser.add_argument(
        "--only",
        default=",".join(OPERATIONS),
        help=f"operations, or groups of them ({', '.join(GROUPS)}), comma-separated (default: all)",
    )
    parser.add_argument(
        "--workdir", type=Path, default=ROOT / "bench-results" / "work", help="directory of the data, kept for reuse"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "bench-results", help="directory of the report")
    parser.add_argument(
        "--install-peers", type=Path, metavar="DIR", help="create the peers' environments in DIR"
    )
    parser.add_argument(
        "--peer-python", action="append", default=[], metavar="NAME=PYTHON", help="names: " + ", ".join(PEERS)
    )
    parser.add_argument("--peers", default=",".join(PEERS), help="peers to install (default: %(default)s)")
    parser.add_argument(
        "--before", default=_BEFORE, help="git revision of lakelsm to compare with; '' for none (default %(default)s)"
    )
    parser.add_argument("--only-peers", action="store_true", help="measure only the peers, on existing tables")
    parser.add_argument("--strict", action="store_true", help="exit with status 3 when a target is missed")
    return parser


def _named_peers(text: str) -> list[str]:
    names = list(filter(None, text.split(",")))
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        raise SystemExit(f"--peers {text}: no peer is called {unknown[0]}; peers are {', '.join(PEERS)}")
    return names


def _peer_pythons(arguments: argparse.Namespace) -> tuple[dict[str, str], list[Measurement]]:
    """Return the Pythons of the peers, and a failure for each that could not be installed."""
    pythons: dict[str, str] = {}
    failed: list[Measurement] = []
    names = _named_peers(arguments.peers)
    if arguments.install_peers:
        say(f"the peers' environments: {arguments.install_peers}")
        pythons, errors = install_peers(arguments.install_peers.resolve(), names)
        failed = [Measurement("install", name, error=error) for name, error in errors.items()]
    for pair in arguments.peer_python:
        name, separator, python = pair.partition("=")
        if name not in PEERS or not separator:
            raise SystemExit(f"--peer-python {pair}: expected NAME=PYTHON with a name of {', '.join(PEERS)}")
        pythons[name] = os.path.abspath(python)
    return pythons, failed


def _header(config: BenchConfig, others: float) -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    missing = missing_peers(config)
    lines = [
        f"{config.rows:,} rows x 10 columns, {config.buckets} buckets, {config.runs} level-0 runs of "
        f"{config.batch_rows:,} rows, local[{config.cores}], {config.files:,} files of synthetic metadata",
        f"Python {platform.python_version()}, {os.cpu_count()} processors, {memory:.0f} GiB; median of at most "
        f"{config.repeat} after a warm-up, contenders in turn; memory: peak resident MiB of the warm-up",
        f"parquet codec of what floors write: {config.floor_codec or 'the default of Spark'}; "
        f"of what they scan: that of lakelsm's tables; {BEFORE}: {config.before or 'none'}",
    ]
    if others > _NOISY_SHARE:
        lines.append(f"NOISY: others took {others:.0%} of the processors; ratios are of processor time")
    if missing:
        lines.append(f"not installed: {', '.join(missing)}")
    return "\n".join(lines)


def _config(arguments: argparse.Namespace, operations: tuple[str, ...], pythons: dict[str, str]) -> BenchConfig:
    return BenchConfig(
        workdir=str(arguments.workdir.resolve()),
        rows=arguments.rows,
        buckets=arguments.buckets,
        runs=arguments.runs,
        repeat=arguments.repeat,
        cores=arguments.cores,
        files=arguments.files,
        driver_memory=arguments.driver_memory,
        slow_seconds=arguments.slow_seconds,
        max_seconds=arguments.max_seconds,
        operations=operations,
        peer_pythons=pythons,
        coordinates={name: packages.coordinate for name, packages in PEERS.items()},
        jars=str((arguments.install_peers or arguments.workdir).resolve() / "jars"),
        before=arguments.before,
        floor_codec=arguments.floor_codec,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the module's docstring lists the exit statuses."""
    arguments = _parser().parse_args(argv)
    try:
        operations = named_operations(arguments.only)
    except ValueError as error:
        raise SystemExit(f"--only {arguments.only}: {error}") from None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_TERMINATED))  # ends the lane's process as well
    pythons, not_installed = _peer_pythons(arguments)
    config = _config(arguments, operations, pythons)
    results = not_installed + run(config, arguments.only_peers)
    others = others_share(results)
    found = verdicts(results, quiet=others <= _NOISY_SHARE)
    lines = [_header(config, others), "", table(results), "", *judged(found, operations), *failures(results)]
    if set(operations) & set(MODE_OPERATIONS):
        lines += ["The table of docs/modes.md:", "", page_table(config, results)]
    text = "\n".join(lines).rstrip()
    arguments.out.mkdir(parents=True, exist_ok=True)
    name = f"bench-{config.rows}-{time.strftime('%Y%m%d-%H%M%S')}"
    (arguments.out / f"{name}.txt").write_text(text + "\n", encoding="utf-8")
    document = {
        "config": json.loads(config.to_json()),
        "others_share": others,
        "measurements": [
            {**result.to_dict(), "median": result.median, "cpu_median": result.cpu_median} for result in results
        ],
        "targets": [verdict.to_dict() for verdict in found],
    }
    (arguments.out / f"{name}.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    say(f"\n{text}\n\nwritten: {arguments.out / name}.txt and .json")
    if any(result.error for result in results if result.contender.startswith((ENGINE, "Spark "))):
        return EXIT_FAILED
    return EXIT_MISSED if arguments.strict and any(verdict.met is False for verdict in found) else 0


if __name__ == "__main__":
    sys.exit(main())
