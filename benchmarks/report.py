"""The table of measurements and the lines of targets, as text. Standard library only."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from benchmarks.config import MASKED_PERCENT, OPERATIONS
from benchmarks.names import DEDUPLICATE, ENGINE, merging
from benchmarks.targets import BOUNDS, LOOKUPS, MERGES, SPEED, SQL, STREAMS, UPKEEP, Verdict
from benchmarks.timing import Measurement

TITLES = {
    "load": "bulk load",
    "upsert": "upsert of 1 % of the rows",
    "read": "merge-on-read, all columns",
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
    "lookup-join-10k": "lookup join of 10,000 facts, cache warm",
    "lookup-join-1m": "lookup join of 1,000,000 facts, cache warm",
    "sql-aggregate": "aggregation in this process",
    "sql-where": "aggregation with a condition in this process",
    "sql-count": "count(*) in this process",
    "sql-min-max": "min and max in this process",
    "sql-point": "query of one key in this process",
    "sql-limit": "query with LIMIT 5 in this process",
    "sql-top": "ORDER BY with LIMIT 10 in this process",
    "sql-self-join": "self join in this process",
    "sql-spark-aggregate": "aggregation on Spark",
    "sql-spark-range": "aggregation of a range of keys on Spark",
    "sql-spark-point": "query of one key on Spark",
    "sql-spark-partition": "aggregation of one partition on Spark (rows / 10)",
    "sql-spark-join": "join with a tenth of the rows on Spark",
    "sql-spark-count": "count(*) on Spark",
    "sql-spark-limit": "query with LIMIT 5 on Spark",
    "format-read": "read of all columns (rows / 10)",
    "format-column": "read of one column (rows / 10)",
    "format-point": "read of one key (rows / 10)",
    "format-write": "write (rows / 10)",
    "stream-batch": "micro-batch of 10,000 changes, from its file to Spark's commit log",
    "lookup-hits": "lookups of 10 x 100,000 keys with a row, warm",
    "lookup-half": "lookups of 10 x 100,000 keys, half of them with a row, warm",
    "lookup-misses": "lookups of 10 x 100,000 keys without a row, warm",
    "lookup-get": "1,000 single lookups of keys with a row, warm",
    "lookup-get-miss": "1,000 single lookups of keys without a row, warm",
    "lookup-cold": "first lookup of 100,000 keys, every file touched",
    "lookup-bootstrap": "a cache of the whole table",
    "merge": "merge of 1 % of the rows by key, on Spark",
    "merge-local": "merge of 1 % of the rows by key, in this process",
    "lookup-refresh": "refresh after an upsert of 1 % of the rows",
    "first-row": "a fresh process to the first row of a small table",
    "plan": "planning (metadata only)",
    "count-metadata": "count (metadata only)",
    "commit": "commit of 10 files (metadata only)",
    "expire": "expiry of 100 of 1,000 snapshots (metadata only)",
    "orphan-scan": "orphan scan, ten listed files for each live one",
    "check": "check of metadata, 1,000 snapshots",
    "store-commit": "10 commits on an S3 server on loopback (metadata only)",
    "integrity-write": "files as a task writes them (rows / 4)",
    "integrity-read": "files as a task reads them (rows / 4)",
    "integrity-scan": "files as Spark scans them (rows / 4)",
    "memory-compact": "full compaction of 1.4 GB in dictionaries, 128 MiB a task",
    "memory-read": "merge-on-read of 1.4 GB in dictionaries",
}
_MIB = 1 << 20


def judged(found: Sequence[Verdict], operations: Collection[str]) -> list[str]:
    """Return a line for each target of the operations: speed first, then merges, lookups, SQL, upkeep and bounds."""
    lines: list[str] = []
    headings = {"Speed to reach:": SPEED, "Merges:": MERGES, "Lookups:": LOOKUPS, "SQL:": SQL}
    headings |= {"Streams:": STREAMS, "Upkeep:": UPKEEP, "Bounds to keep:": BOUNDS}
    for heading, targets in headings.items():
        requested = [verdict for verdict in found if verdict.target in targets and verdict.target.operation in operations]
        if requested:
            lines += [heading, *(verdict.text(TITLES[verdict.target.operation]) for verdict in requested), ""]
    return lines


def failures(results: Sequence[Measurement]) -> list[str]:
    """Return a line for each failed measurement."""
    failed = [f"{result.contender}, {result.operation}: {result.error}" for result in results if result.error]
    return ["Failed:", *failed, ""] if failed else []


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
        "-" if result.cpu_median is None else f"{result.cpu_median:.2f}",
        ratio(floor),
        ratio(engine),
        _mebibytes(peaks.tree),
        _mebibytes(peaks.jvm),
        _mebibytes(peaks.process),
        _mebibytes(peaks.workers),
        _mebibytes(peaks.largest_worker),
    ]


_HEAD = [
    *("", "median s", "min..max s", "CPU s", "/ floor", "/ lakelsm"),
    *("tree", "JVM", "process", "workers", "largest worker"),
]


def table(results: Sequence[Measurement]) -> str:
    """Return the measurements by operation, aligned; ratios are of medians, memory is peak resident MiB."""
    lines: list[list[str]] = [_HEAD]
    for operation in OPERATIONS:
        rows = [result for result in results if result.operation == operation]
        if rows:
            floor = _floor_median(rows, operation)
            engine = next((row.median for row in rows if row.contender in (ENGINE, merging(ENGINE, DEDUPLICATE))), None)
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
        text.append("* slow: measured once, cold, while its memory was sampled")
    return "\n".join(text)
