"""A fresh process reads the first row of a small table, import included. Standard library only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.timing import Contender

_SCRIPT = Path(__file__).with_name("first_row_of.py")
_TINY_COLUMNS = 10


def first_row_contender(name: str, engine: str, location: str) -> Contender:
    """Return the contender of an ``engine`` of ``first_row_of.py``; ``location`` is that of its table."""
    started: list[subprocess.Popen[str]] = []

    def run() -> str:
        command = [sys.executable, str(_SCRIPT), engine, location]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        stdout = started[-1].stdout
        assert stdout is not None
        return stdout.readline()

    def end() -> None:
        if started:
            started.pop().communicate()

    def check(row: object) -> None:
        assert str(row).count(",") >= _TINY_COLUMNS - 1 or str(row).count("\\t") >= _TINY_COLUMNS - 1, f"no row: {row!r}"

    return Contender(name, run, teardown=end, check=check)
