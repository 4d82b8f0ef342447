"""Work of a peer that is left out on large tables, because it takes minutes. Standard library only."""

from __future__ import annotations

from benchmarks.timing import Contender

#: Above this number of rows, long work is left out.
LONG_ROWS = 1_000_000


def left_out(name: str) -> Contender:
    """Return a contender that fails immediately with the reason."""

    def run() -> None:
        raise RuntimeError(f"left out above {LONG_ROWS:,} rows: it takes minutes, and no target is about it")

    return Contender(name, run)
