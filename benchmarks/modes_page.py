"""The table of docs/modes.md from a run's measurements. Standard library only."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from benchmarks.config import BenchConfig
from benchmarks.names import SCAN
from benchmarks.timing import Measurement

#: The modes by the titles of the page's columns, and their options.
MODES: dict[str, dict[str, str]] = {
    "merge-on-read": {},
    "copy-on-write": {"full-compaction.delta-commits": "1"},
    "merge-on-write": {"deletion-vectors.enabled": "true"},
}
CONTENDER = "lakelsm {}"
LIVE_FILES, ALL_FILES = "live files", "all files"
_MIB = 1 << 20

Cell = Callable[[str], str]


def page_table(config: BenchConfig, results: Sequence[Measurement]) -> str:
    """Return the cost of each mode as a table for the page; a cell without a measurement is a dash."""
    found = {(result.operation, result.contender): result for result in results}

    def seconds(operation: str, per: int = 1) -> Cell:
        def cell(mode: str) -> str:
            result = found.get((operation, CONTENDER.format(mode)))
            if result is None or result.median is None:
                return "–"
            return f"{result.median / per:.2f} s ({statistics.median(result.cpu_seconds) / per:.2f} s)"

        return cell

    def beside_scan(operation: str) -> Cell:
        scan = found.get((operation, SCAN))

        def cell(mode: str) -> str:
            result = found.get((operation, CONTENDER.format(mode)))
            if result is None or result.median is None or scan is None or not scan.median:
                return "–"
            return f"{result.median:.2f} s, {result.median / scan.median:.2f} ×"

        return cell

    def size(of: str) -> Cell:
        def cell(mode: str) -> str:
            result = found.get(("mode-read", CONTENDER.format(mode)))
            return f"{result.stored[of] / _MIB:,.1f} MiB" if result is not None and of in result.stored else "–"

        return cell

    rows: list[tuple[str, Cell]] = [
        ("write of 1 % and the compaction after it (CPU)", seconds("mode-write", config.runs)),
        ("read, all columns; beside the plain scan", beside_scan("mode-read")),
        ("read, predicate on a value column; beside the plain scan", beside_scan("mode-where")),
        (f"data files of the newest snapshot after {config.runs} writes", size(LIVE_FILES)),
        (f"all files after {config.runs} writes, snapshots not expired", size(ALL_FILES)),
    ]
    lines = [["", *MODES], ["---"] * (len(MODES) + 1)]
    lines += [[title, *map(cell, MODES)] for title, cell in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines).replace("|  |", "| |")
