"""Runs one peer in its own environment: ``python -m benchmarks.peer_runner MODULE CONFIG.json OUT.json``.

A peer module has ``open_peer(config) -> Peer``. Only the standard library and that module are imported here.
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from benchmarks.config import BenchConfig
from benchmarks.timing import Contender, Measurement, error_line, measure, use_cores


class Peer(Protocol):
    """An engine beside which lakelsm is measured."""

    def prepare(self) -> None:
        """Build the tables that the operations start from, once for each shape of the data."""

    def contenders(self, operation: str) -> list[Contender]:
        """How the peer does the operation; empty when it has no such thing."""


def run(config: BenchConfig, open_peer: Callable[[], Peer], name: str) -> list[Measurement]:
    """Every operation of the run that the peer can do. A failed start or preparation is its one result."""
    try:
        peer = open_peer()
        peer.prepare()
    except Exception as error:  # noqa: BLE001 - whatever a peer raises is a result to report
        traceback.print_exc()
        return [Measurement("prepare", name, error=error_line(error))]
    results: list[Measurement] = []
    for operation in config.operations:
        contenders = peer.contenders(operation)
        if contenders:
            results += measure(operation, contenders, config.turns)
    return results


def main(argv: list[str]) -> int:
    """Entry point of the subprocess."""
    module_name, config_file, out_file = argv
    config = BenchConfig.from_json(Path(config_file).read_text(encoding="utf-8"))
    use_cores(config.cores)
    module = importlib.import_module(f"benchmarks.peers.{module_name}")
    results = run(config, lambda: module.open_peer(config), module_name)
    Path(out_file).write_text(json.dumps([result.to_dict() for result in results]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
