"""The table of ratios and targets, as text and as JSON-ready dictionaries."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.config import ENGINE_OPERATIONS, MASKED_PERCENT, OPERATIONS
from benchmarks.timing import Measurement

TITLES = {
    "load": "bulk load",
    "upsert": "upsert of 1 % of the rows",
    "read": "merge-on-read, all columns",
    "read-again": "merge-on-read of one snapshot, again and again",
    "where": "merge-on-read, predicate on a value column",
    "count": "merge-on-read, count",
    "compact": "full compaction",
    "engine-read": "merge-on-read by merge engine",
    "engine-compact": "full compaction by merge engine",
    **{f"vector-read-{n}": f"read under deletion vectors, {n} % masked, all columns" for n in MASKED_PERCENT},
    **{f"vector-where-{n}": f"read under deletion vectors, {n} % masked, predicate on a value" for n in MASKED_PERCENT},
    "vector-cores": "read under deletion vectors, 8 % masked, one bucket",
    "vector-compact": "ordinary compaction of the level-0 runs with deletion vectors",
    "vector-compact-full": "full compaction with deletion vectors",
    "mode-write": "all runs written in turn, each with the compaction after it",
    "mode-read": "read after these writes, all columns",
    "mode-where": "read after these writes, predicate on a value column",
    "plan": "planning (metadata only)",
    "count-metadata": "count (metadata only)",
    "commit": "commit of 10 files (metadata only)",
    "integrity-write": "files as a task writes them (rows / 4)",
    "integrity-read": "files as a task reads them (rows / 4)",
    "integrity-scan": "files as Spark scans them (rows / 4)",
    "memory-compact": "full compaction of 1.4 GB in dictionaries, 128 MiB a task",
    "memory-read": "merge-on-read of 1.4 GB in dictionaries",
}
ENGINE = "lakelsm"
DEDUPLICATE = f"{ENGINE} deduplicate"
_MIB = 1 << 20

#: What a compaction task may hold by default. A worker's interpreter and libraries are counted in here.
_WORKER_BYTES = 512 << 20

#: What a worker takes before it has read a row: the interpreter, its libraries, the allocators' reserve.
_BARE_WORKER_BYTES = 224 << 20


@dataclass(frozen=True)
class Target:
    """The median of ``contender`` at ``operation`` may be ``limit`` times that of ``beside``, or ``limit``
    seconds where ``beside`` is empty. With ``of`` "memory" or "worker memory", ``limit`` is resident bytes of
    the process or of the largest worker."""

    operation: str
    beside: str
    limit: float
    of: str = "time"
    contender: str = ENGINE


# "No slower on a table ten times larger" leaves 15 % to the noise of a shared machine.
TARGETS = (
    Target("upsert", "delta-rs", 0.5),
    Target("upsert", "lakelsm (table / 10)", 1.15),
    Target("load", "Spark sorted write", 1.2),
    Target("read", "Spark parquet scan", 1.5),
    Target("where", "Spark parquet scan", 1.5),
    Target("compact", "Spark parquet copy", 0.5),
    *(
        target
        for operation in ENGINE_OPERATIONS
        for contender in (f"{ENGINE} partial-update", f"{ENGINE} aggregation")
        for target in (
            Target(operation, DEDUPLICATE, 1.5, contender=contender),
            Target(operation, "", float(_WORKER_BYTES), "worker memory", contender),
        )
    ),
    Target("read-again", "Spark parquet scan", 1.5, contender=f"{ENGINE}, first query"),
    Target("read-again", "Spark parquet scan", 1.15, contender=f"{ENGINE}, later queries"),
    Target("vector-read-8", "Spark parquet scan", 1.05),
    Target("vector-where-8", "Spark parquet scan", 1.05),
    Target("vector-cores", f"{ENGINE}, one core", 1 / 1.7),
    Target("vector-compact", f"{ENGINE} without vectors", 1.25),
    Target("vector-compact-full", f"{ENGINE} without vectors", 1.25),
    Target("plan", "", 2.0),
    Target("plan", "", float(1 << 30), "memory"),
    Target("count-metadata", "", 0.3),
    Target("commit", "", 1.0),
    Target("integrity-write", "without checksums", 1.05),
    Target("integrity-read", "without checks", 1.05),
    Target("integrity-scan", "without checks", 1.05),
    Target("memory-compact", "", float(_BARE_WORKER_BYTES + (128 << 20)), "worker memory"),
    Target("memory-read", "", float(_BARE_WORKER_BYTES + (256 << 20)), "worker memory"),
)


@dataclass(frozen=True)
class Verdict:
    """A target beside what was measured; ``value`` is None when one side is missing."""

    target: Target
    value: float | None

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None when it could not be measured."""
        return None if self.value is None else self.value <= self.target.limit

    def text(self) -> str:
        """One line for people."""
        target = self.target
        unit: Callable[[float], str] = lambda number: f"{number:.2f} x"  # noqa: E731
        if target.of != "time":
            unit = lambda number: f"{number / _MIB:.0f} MiB"  # noqa: E731
        elif not target.beside:
            unit = lambda number: f"{number:.2f} s"  # noqa: E731
        state = {True: "reached", False: "MISSED", None: "not measured"}[self.met]
        what = TITLES[target.operation]
        what += f", {target.contender}" if target.contender != ENGINE else ""
        what += f" beside {target.beside}" if target.beside else ""
        what += ", largest worker" if target.of == "worker memory" else ""
        got = "-" if self.value is None else unit(self.value)
        return f"{state:12} {what}: {got} (at most {unit(target.limit)})"

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        target = self.target
        return {
            "operation": target.operation,
            "contender": target.contender,
            "beside": target.beside,
            "of": target.of,
            "limit": target.limit,
            "value": self.value,
            "met": self.met,
        }


def verdicts(results: Sequence[Measurement]) -> list[Verdict]:
    """Every target with its value in these results."""
    by_name = {(result.operation, result.contender): result for result in results}
    found = []
    for target in TARGETS:
        own = by_name.get((target.operation, target.contender))
        value = None
        if own is not None and own.median is not None:
            if target.of != "time":
                value = float(own.peaks.process if target.of == "memory" else own.peaks.largest_worker)
            elif not target.beside:
                value = own.median
            else:
                other = by_name.get((target.operation, target.beside))
                value = own.median / other.median if other is not None and other.median else None
        found.append(Verdict(target, value))
    return found


def _floor_median(results: Sequence[Measurement], operation: str) -> float | None:
    for result in results:
        if result.operation == operation and result.contender.startswith("Spark "):
            return result.median
    return None


def _mebibytes(size: int) -> str:
    return f"{size / _MIB:,.0f}" if size else "-"


def _row(result: Measurement, floor: float | None, engine: float | None) -> list[str]:
    median = result.median
    if median is None:
        return [f"  {result.contender}", "failed: " + (result.error or "no measurement")]
    peaks = result.peaks

    def ratio(other: float | None) -> str:
        return f"{median / other:.2f}" if other else "-"

    return [
        f"  {result.contender}{' *' if result.once else ''}",
        f"{median:.3f}",
        f"{min(result.seconds):.3f}..{max(result.seconds):.3f}",
        f"{statistics.median(result.cpu_seconds):.2f}" if result.cpu_seconds else "-",
        ratio(floor),
        ratio(engine),
        _mebibytes(peaks.jvm),
        _mebibytes(peaks.process),
        _mebibytes(peaks.workers),
        _mebibytes(peaks.largest_worker),
    ]


_HEAD = [
    *("", "median s", "min..max s", "CPU s", "/ floor", "/ lakelsm"),
    *("JVM", "process", "workers", "largest worker"),
]


def table(results: Sequence[Measurement]) -> str:
    """The measurements by operation, aligned; ratios are of medians, memory is peak resident MiB."""
    lines: list[list[str]] = [_HEAD]
    for operation in OPERATIONS:
        rows = [result for result in results if result.operation == operation]
        if rows:
            floor = _floor_median(rows, operation)
            engine = next((row.median for row in rows if row.contender in (ENGINE, DEDUPLICATE)), None)
            lines.append([TITLES[operation]])
            lines += [_row(row, floor, engine) for row in rows]
    widths = [max(len(line[at]) for line in lines if len(line) > 2) for at in range(len(_HEAD))]
    text = []
    for line in lines:
        if len(line) == len(_HEAD):
            cells = [line[0].ljust(widths[0])]
            cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
            text.append("  ".join(cells).rstrip())
        else:
            text.append(line[0].ljust(widths[0]) + ("  " + line[1] if len(line) > 1 else ""))
    if any(result.once for result in results):
        text.append("* slow: measured once, cold")
    return "\n".join(text)
