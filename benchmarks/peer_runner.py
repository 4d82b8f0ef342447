"""Runs one peer in its environment: ``python -m benchmarks.peer_runner MODULE CONFIG.json OUT.json``.

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
    """An engine with which lakelsm is compared."""

    def prepare(self) -> None:
        """Build the tables from which the operations start, once for each shape of the data."""

    def contenders(self, operation: str) -> list[Contender]:
        """Return the peer's contenders of the operation; none if it does not have the operation."""


def run(config: BenchConfig, open_peer: Callable[[], Peer], name: str) -> list[Measurement]:
    """Measure every operation that the peer has. If it cannot start or prepare, the failure is the only result."""
    try:
        peer = open_peer()
        peer.prepare()
    except Exception as error:  # noqa: BLE001 - every failure of a peer is a result
        traceback.print_exc()
        return [Measurement("prepare", name, error=error_line(error))]
    results: list[Measurement] = []
    for operation in config.operations:
        contenders = peer.contenders(operation)
        if contenders:
            results += measure(operation, contenders, config.turns)
    return results


def main(argv: list[str]) -> int:
    """Run the subprocess."""
    module_name, config_file, out_file = argv
    config = BenchConfig.from_json(Path(config_file).read_text(encoding="utf-8"))
    use_cores(config.cores)
    module = importlib.import_module(f"benchmarks.peers.{module_name}")
    results = run(config, lambda: module.open_peer(config), module_name)
    Path(out_file).write_text(json.dumps([result.to_dict() for result in results]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
