"""Output of the demo: steps with their cost, a progress bar, the LSM layout, and tables; plain lines in a log."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TextIO

_BAR_CELLS = 28
_LOG_LINES = 8
_FULL, _EMPTY = "█", "░"


class Screen:
    """Output on one stream. On a terminal the progress bar redraws its line; elsewhere it writes a few whole lines."""

    def __init__(self, stream: TextIO = sys.stdout) -> None:
        self.stream = stream
        self.terminal = stream.isatty()
        self.costs: list[tuple[str, float, str]] = []
        self._steps = 0

    def say(self, text: str = "") -> None:
        """Write one line."""
        self.stream.write(text + "\n")
        self.stream.flush()

    @contextmanager
    def step(self, title: str) -> Iterator[list[str]]:
        """Begin a numbered step. The summary shows its cost, and the texts that the block appends to the yielded list."""
        self._steps += 1
        self.say(f"\n{self._steps}. {title}")
        remarks: list[str] = []
        start = time.perf_counter()
        yield remarks
        seconds = time.perf_counter() - start
        self.costs.append((title, seconds, ", ".join(remarks)))

    def table(self, head: Sequence[str], rows: Sequence[Sequence[object]], indent: str = "   ") -> None:
        """Write aligned columns: texts left, numbers right."""
        cells = [[_cell(value) for value in row] for row in rows]
        numeric = [
            bool(rows) and all(isinstance(row[at], int | float) for row in rows) for at in range(len(head))
        ]
        widths = [max([len(name), *(len(line[at]) for line in cells)]) for at, name in enumerate(head)]

        def line(values: Sequence[str]) -> str:
            parts = zip(values, widths, numeric, strict=True)
            return indent + "  ".join(v.rjust(w) if right else v.ljust(w) for v, w, right in parts).rstrip()

        self.say(line(head))
        self.say(indent + "  ".join("─" * width for width in widths))
        for values in cells:
            self.say(line(values))

    def summary(self) -> None:
        """Write the cost of each step."""
        rows: list[tuple[str, float, str]] = [
            (title, round(cost, 1), text) for title, cost, text in self.costs
        ]
        rows.append(("total", round(sum(cost for _, cost, _ in self.costs), 1), ""))
        self.table(("step", "seconds", ""), rows)

    def progress(self, total: int) -> Progress:
        """Return a progress bar for ``total`` units of work."""
        return Progress(self, total)


class Progress:
    """A progress bar: redrawn on a terminal, else at most eight lines."""

    def __init__(self, screen: Screen, total: int) -> None:
        self._screen = screen
        self._total = total
        self._done = 0

    def advance(self, label: str, remark: str) -> None:
        """Count one finished unit."""
        self._done += 1
        filled = _BAR_CELLS * self._done // self._total
        bar = _FULL * filled + _EMPTY * (_BAR_CELLS - filled)
        text = f"   {bar} {self._done:>3}/{self._total}  {label:<19} {remark}"
        if self._screen.terminal:
            width = shutil.get_terminal_size().columns - 1
            end = "\n" if self._done == self._total else ""
            self._screen.stream.write("\r" + text[:width].ljust(width) + end)
            self._screen.stream.flush()
        elif self._done * _LOG_LINES // self._total > (self._done - 1) * _LOG_LINES // self._total:
            self._screen.say(text)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


Cells = Mapping[tuple[str, int], Mapping[int, tuple[int, int]]]
"""(partition, bucket) -> level -> (files, rows)."""


def layout_rows(cells: Cells, levels: Sequence[int]) -> list[list[object]]:
    """Return a line for each bucket: partition, bucket, files and rows of each level, and a bar of the file count."""
    max_files = max((sum(files for files, _ in by_level.values()) for by_level in cells.values()), default=1)
    lines: list[list[object]] = []
    for (partition, bucket), by_level in sorted(cells.items()):
        line: list[object] = [partition, bucket]
        for level in levels:
            files, rows = by_level.get(level, (0, 0))
            line.append(f"{files} × {rows:,} rows" if files else "·")
        files = sum(count for count, _ in by_level.values())
        line.append(_FULL * max(1, round(files / max_files * 12)))
        lines.append(line)
    return lines
