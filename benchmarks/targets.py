"""The targets as data, and whether they are reached. Standard library only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.config import ENGINE_OPERATIONS, LOCAL_MERGE, STREAM_OPERATION
from benchmarks.names import (
    AGGREGATION,
    ARROW_SCAN,
    BARE_REQUESTS,
    BEFORE,
    CLICKHOUSE,
    COPY,
    DEDUPLICATE,
    DELTA,
    ENGINE,
    FORMAT_STREAM,
    FULL_CACHE,
    JAVA,
    KEY_SORTED_WRITE,
    LOCAL,
    NATIVE_STREAM,
    PARTIAL_CACHE,
    PARTIAL_UPDATE,
    PYPAIMON,
    QUERY_SERVICE,
    READ_BY_HAND,
    READER_BY_HAND,
    ROCKSDB,
    SCAN,
    SHUFFLE_JOIN,
    SORTED_WRITE,
    SQL_LOCAL,
    SQL_SPARK,
    cold,
    first,
    merging,
    reloaded,
    smaller,
    upserting,
)
from benchmarks.sql_queries import SQL_HERE, SQL_ON_SPARK
from benchmarks.timing import Measurement

_MIB = 1 << 20

#: The default memory of a compaction task, including that of the worker's interpreter and libraries.
_WORKER_BYTES = 512 << 20

#: The memory of a worker before it has read a row: interpreter, libraries, the allocators' reserve.
_BARE_WORKER_BYTES = 224 << 20


@dataclass(frozen=True)
class Target:
    """``contender`` at ``operation`` may take at most ``limit`` times what ``beside`` takes, or at most ``limit`` if
    ``beside`` is empty.

    ``of`` is the compared quantity. "time": median wall seconds, or, for a ratio on a busy machine, processor seconds;
    "cpu": processor seconds always; "memory" and "worker memory": resident bytes of the process or of the largest worker.
    """

    operation: str
    beside: str
    limit: float
    of: str = "time"
    contender: str = ENGINE


SPEED = (
    Target("load", KEY_SORTED_WRITE, 1.15),
    Target("load", SORTED_WRITE, 0.8),
    Target("load", CLICKHOUSE, 1.0, "cpu", LOCAL),
    Target("load", DELTA, 2.0, contender=LOCAL),
    Target("upsert", BEFORE, 0.75, "cpu"),
    # "Independent of the table's size" allows 15 % for the noise of a shared machine.
    Target("upsert", smaller(ENGINE), 1.15),
    Target("upsert", PYPAIMON, 0.5, contender=LOCAL),
    Target("upsert", DELTA, 0.1, contender=LOCAL),
    Target("read", SCAN, 1.35, contender=first(ENGINE)),
    Target("read", SCAN, 1.2),
    Target("where", SCAN, 1.3, contender=first(ENGINE)),
    Target("where", SCAN, 1.15),
    Target("count", BEFORE, 0.25, "cpu"),
    Target("count", "", 0.3, contender=LOCAL),
    Target("read", ARROW_SCAN, 1.3, contender=LOCAL),
    Target("read", PYPAIMON, 1 / 20, contender=LOCAL),
    Target("read", CLICKHOUSE, 1.5, contender=LOCAL),
    Target("compact", COPY, 0.42),
    Target("compact", COPY, 0.35, contender=LOCAL),
    Target("compact", JAVA, 0.6),
    Target("compact", JAVA, 0.6, contender=LOCAL),
    *(
        Target(operation, merging(engine, DEDUPLICATE), 1.15, contender=merging(engine, merge_engine))
        for engine in (ENGINE, LOCAL)
        for operation in ENGINE_OPERATIONS
        for merge_engine in (PARTIAL_UPDATE, AGGREGATION)
    ),
    Target("first-row", "", 0.8, contender=LOCAL),
)
"""Speed of one engine with two runners: one run, 2 cores, 8 million rows."""

MERGES = (
    Target("merge", upserting(ENGINE), 2.0),
    Target(LOCAL_MERGE, upserting(LOCAL), 2.0, contender=LOCAL),
    Target(LOCAL_MERGE, DELTA, 0.3, contender=LOCAL),
)
"""A merge of 1 % of 8 million rows by the key, which must find the keys that the table has."""

STREAMS = (
    Target(STREAM_OPERATION, upserting(ENGINE), 1.5, contender=NATIVE_STREAM),
    Target(STREAM_OPERATION, upserting(ENGINE), 2.5, contender=FORMAT_STREAM),
)
"""A micro-batch of 10,000 changes: the trigger, offset log, write, compaction and commit log."""

LOOKUPS = (
    Target("lookup-join-10k", SHUFFLE_JOIN, 0.2),
    # A million keys: 2 million a second, over the network half a million.
    Target("lookup-hits", "", 0.5, contender=FULL_CACHE),
    Target("lookup-hits", "", 0.5, contender=PARTIAL_CACHE),
    Target("lookup-hits", "", 2.0, contender=QUERY_SERVICE),
    *(
        Target(operation, ROCKSDB, 0.2, contender=cache)
        for operation in ("lookup-hits", "lookup-half", "lookup-misses")
        for cache in (FULL_CACHE, PARTIAL_CACHE)
    ),
    # A thousand keys: 50 and 10 microseconds for each.
    Target("lookup-get", "", 0.05, contender=FULL_CACHE),
    Target("lookup-get-miss", "", 0.01, contender=FULL_CACHE),
    Target("lookup-cold", ARROW_SCAN, 1.3, contender=PARTIAL_CACHE),
    Target("lookup-bootstrap", ARROW_SCAN, 2.0, contender=FULL_CACHE),
    Target("lookup-refresh", reloaded(FULL_CACHE), 0.02, contender=FULL_CACHE),
)
"""Speed and memory of lookups: the same rows, the same cores."""

SQL = (
    *(Target(operation, READER_BY_HAND, 1.3, contender=SQL_LOCAL) for operation in SQL_HERE),
    Target("sql-count", LOCAL, 1.3, contender=SQL_LOCAL),
    *(Target(operation, READ_BY_HAND, 1.05, contender=SQL_SPARK) for operation in SQL_ON_SPARK),
)
"""Queries by SQL beside the same by hand."""

UPKEEP = (
    Target("expire", "", 5.0),
    Target("orphan-scan", "", 60.0),
    Target("orphan-scan", "", float(1 << 30), "memory"),
    Target("check", "", 20.0),
    Target("store-commit", BARE_REQUESTS, 1.5),
    Target("store-commit", cold(BARE_REQUESTS), 1.5, contender=cold(ENGINE)),
)
"""Upkeep of a table of 100,000 files and 1,000 snapshots, and commits on a local S3 server. Their number of requests is
tested in `tests/storage/test_requests.py`."""

BOUNDS = (
    Target("upsert", DELTA, 0.5),
    *(
        Target(operation, "", float(_WORKER_BYTES), "worker memory", merging(ENGINE, merge_engine))
        for operation in ENGINE_OPERATIONS
        for merge_engine in (PARTIAL_UPDATE, AGGREGATION)
    ),
    Target("vector-read-8", SCAN, 1.05),
    Target("vector-where-8", SCAN, 1.05),
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
"""Results of the past that must stay: of vectors, metadata, integrity and memory."""

TARGETS = SPEED + MERGES + STREAMS + LOOKUPS + SQL + UPKEEP + BOUNDS


@dataclass(frozen=True)
class Verdict:
    """A target with its measured ratio (or value, without another contender) of wall time, processor time or memory;
    None if one side is missing. ``cold``: only one side was measured without a warm-up."""

    target: Target
    wall: float | None = None
    cpu: float | None = None
    memory: float | None = None
    quiet: bool = True
    cold: bool = False

    @property
    def value(self) -> float | None:
        """The number that the target's limit applies to."""
        if self.target.of == "time":
            return self.wall if self.quiet or not self.target.beside else self.cpu
        return self.cpu if self.target.of == "cpu" else self.memory

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None if it could not be measured."""
        return None if self.value is None else self.value <= self.target.limit

    def text(self, title: str) -> str:
        """Return one line of text; ``title`` is the operation's."""
        target = self.target
        state = {True: "reached", False: "MISSED", None: "not measured"}[self.met]
        what = f"{title}, {target.contender}"
        what += f" beside {target.beside}" if target.beside else ""
        if target.of in ("memory", "worker memory"):
            what += ", largest worker" if target.of == "worker memory" else ""
            got = "-" if self.memory is None else f"{self.memory / _MIB:.0f} MiB"
            return f"{state:12} {what}: {got} (at most {target.limit / _MIB:.0f} MiB)"
        unit = "x" if target.beside else "s"
        by_cpu = target.of == "cpu" or (target.beside and not self.quiet)
        judged, other = (" CPU", f", {_number(self.wall)} {unit} wall") if by_cpu else ("", "")
        if not by_cpu and self.cpu is not None:
            other = f", {_number(self.cpu)} {unit} CPU"
        other += ", one side cold" if self.cold else ""
        limit = f"at most {_number(target.limit)} {unit}{judged}"
        return f"{state:12} {what}: {_number(self.value)} {unit}{judged} ({limit}{other})"

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict for JSON."""
        target = self.target
        return {
            "operation": target.operation,
            "contender": target.contender,
            "beside": target.beside,
            "of": target.of,
            "limit": target.limit,
            "wall": self.wall,
            "cpu": self.cpu,
            "value": self.value,
            "met": self.met,
            "cold": self.cold,
            "speed": target in SPEED,
        }


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def _ratio(own: float | None, other: float | None) -> float | None:
    return own / other if own is not None and other else None


def verdicts(results: Sequence[Measurement], quiet: bool = True) -> list[Verdict]:
    """Return every target with its value in these results; ``quiet``: no other process kept the machine busy."""
    by_name = {(result.operation, result.contender): result for result in results}
    found = []
    for target in TARGETS:
        own = by_name.get((target.operation, target.contender))
        other = by_name.get((target.operation, target.beside))
        if own is None or own.median is None or (target.beside and other is None):
            found.append(Verdict(target, quiet=quiet))
        elif target.of in ("memory", "worker memory"):
            peak = own.peaks.process if target.of == "memory" else own.peaks.largest_worker
            found.append(Verdict(target, memory=float(peak), quiet=quiet))
        elif other is None:
            found.append(Verdict(target, own.median, own.cpu_median, quiet=quiet))
        else:
            wall, cpu = _ratio(own.median, other.median), _ratio(own.cpu_median, other.cpu_median)
            found.append(Verdict(target, wall, cpu, quiet=quiet, cold=own.once != other.once))
    return found
