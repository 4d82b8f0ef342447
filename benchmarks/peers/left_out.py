"""What a peer is not asked for on large tables, so that a run ends in time. Standard library only."""

from __future__ import annotations

from benchmarks.timing import Contender

#: From more rows than this on.
LONG_ROWS = 1_000_000


def left_out(name: str) -> Contender:
    """A contender that fails at once and says why."""

    def run() -> None:
        raise RuntimeError(f"left out above {LONG_ROWS:,} rows: it takes minutes, and no target is about it")

    return Contender(name, run)
