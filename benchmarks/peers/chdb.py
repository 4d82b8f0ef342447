"""Embedded ClickHouse (PyPI ``chdb``): ReplacingMergeTree, ``FINAL`` reads and ``OPTIMIZE … FINAL``."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.config import WHERE, BenchConfig
from benchmarks.first_row import first_row_contender
from benchmarks.names import CLICKHOUSE, smaller
from benchmarks.timing import Contender
from benchmarks.workspace import check_count, check_sums, remove

_COLUMNS = (
    "id Int64, account Int32, quantity Int32, price Float64, score Float64, status String, note String, "
    "day Date32, event_time DateTime64(6, 'UTC'), amount Decimal(12, 2), version UInt32"
)
_SUMS = "SELECT count(), sum(id), sum(quantity), sum(toDecimal128(amount, 2)) FROM state FINAL"

# A process has one session, so another process creates the small table.
_MAKE = "import chdb.session, json, sys; s = chdb.session.Session(sys.argv[1]); list(map(s.query, json.load(sys.stdin)))"


def _table(name: str, config: BenchConfig) -> str:
    return (
        f"CREATE TABLE {name} ({_COLUMNS}) ENGINE = ReplacingMergeTree(version) ORDER BY id "
        f"PARTITION BY id % {config.buckets}"
    )


def _insert(name: str, source: Path, version: int) -> str:
    return f"INSERT INTO {name} SELECT *, {version} FROM file('{source}/*.parquet', Parquet)"


class ChdbPeer:
    """Tables ``base``, ``small`` and ``state`` in one session, with background merges stopped so that the
    state has its runs; ``version`` is an eleventh column, the run's number."""

    def __init__(self, config: BenchConfig) -> None:
        chdb: Any = importlib.import_module("chdb.session")
        self.config = config
        self.home = config.scratch / "chdb"
        remove(self.home)
        self.home.mkdir(parents=True)
        self.session: Any = chdb.Session(str(self.home))
        self._run(f"SET max_threads = {config.cores}")
        self._run("CREATE DATABASE bench ENGINE = Atomic")
        self._run("USE bench")

    def _run(self, sql: str) -> str:
        return str(self.session.query(sql, "TabSeparated"))

    def _create(self, name: str) -> None:
        self._run(f"DROP TABLE IF EXISTS {name} SYNC")
        self._run(_table(name, self.config))
        self._run(f"SYSTEM STOP MERGES {name}")

    def _insert(self, name: str, source: Path, version: int) -> None:
        self._run(_insert(name, source, version))

    def _copy(self, source: str, target: str) -> None:
        self._create(target)
        for bucket in range(self.config.buckets):
            self._run(f"ALTER TABLE {target} ATTACH PARTITION ID '{bucket}' FROM {source}")

    def prepare(self) -> None:
        """Load the tables; the base is merged to one part for each partition before the runs are written."""
        for name in ("base", "small"):
            self._create(name)
            self._insert(name, self.config.data(name), 0)
            self._run(f"SYSTEM START MERGES {name}")
            self._run(f"OPTIMIZE TABLE {name} FINAL")
            self._run(f"SYSTEM STOP MERGES {name}")
        self._copy("base", "state")
        for number in range(self.config.runs):
            self._insert("state", self.config.data(f"run-{number}"), number + 1)

    def _first_row(self) -> Contender:
        location, config = self.home.with_name("chdb-tiny"), self.config
        remove(location)
        parts = [_insert("bench.tiny", config.data(name), version) for version, name in enumerate(("tiny", "tiny-run"))]
        queries = ["CREATE DATABASE bench ENGINE = Atomic", _table("bench.tiny", config), *parts]
        subprocess.run([sys.executable, "-c", _MAKE, str(location)], input=json.dumps(queries), text=True, check=True)
        return first_row_contender(CLICKHOUSE, "chdb", str(location))

    def contenders(self, operation: str) -> list[Contender]:
        """Return those of load, upsert (two table sizes), read, where, count, compact, first-row."""
        name, config = CLICKHOUSE, self.config

        def upsert(label: str, table: str, batch: str) -> Contender:
            def insert() -> None:
                self._insert("work", config.data(batch), config.runs + 1)

            return Contender(label, insert, lambda: self._copy(table, "work"))

        def check_state(_: object) -> None:
            rows, ids, quantity, amount = self._run(_SUMS).split()
            check_sums(config, int(rows), int(ids), int(quantity), amount)

        def count(condition: str) -> int:
            return int(self._run(f"SELECT count() FROM state FINAL {condition}"))

        def reset_merges() -> None:
            self._copy("state", "work")
            self._run("SYSTEM START MERGES work")

        if operation == "load":
            load = lambda: self._insert("work", config.data("base"), 0)  # noqa: E731
            return [Contender(name, load, lambda: self._create("work"))]
        if operation == "upsert":
            return [upsert(name, "base", "upsert"), upsert(smaller(name), "small", "upsert-small")]
        if operation == "read":
            scan = "SELECT * FROM state FINAL FORMAT Null"
            return [Contender(name, lambda: self._run(scan), check=check_state)]
        if operation == "where":
            scan = f"SELECT * FROM state FINAL WHERE {WHERE} FORMAT Null"
            check = lambda _: check_count(config, "where", count(f"WHERE {WHERE}"))  # noqa: E731
            return [Contender(name, lambda: self._run(scan), check=check)]
        if operation == "count":
            check = lambda _: check_count(config, "rows", count(""))  # noqa: E731
            return [Contender(name, lambda: count(""), check=check)]
        if operation == "compact":
            return [Contender(name, lambda: self._run("OPTIMIZE TABLE work FINAL"), reset_merges)]
        return [self._first_row()] if operation == "first-row" else []


def open_peer(config: BenchConfig) -> ChdbPeer:
    """Return the peer for :mod:`benchmarks.peer_runner`."""
    return ChdbPeer(config)
