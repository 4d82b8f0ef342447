"""pypaimon on lakelsm's prepared tables, or, if there are none, on tables that it writes."""

from __future__ import annotations

import importlib
import shutil
from pathlib import Path
from typing import Any

from benchmarks.config import KEY, BenchConfig
from benchmarks.first_row import first_row_contender
from benchmarks.names import AGGREGATION, DEDUPLICATE, PYPAIMON, merging, smaller
from benchmarks.peers.left_out import LONG_ROWS, left_out
from benchmarks.timing import Contender
from benchmarks.workspace import build, check_count, check_sums, copy_table, remove

#: Operations that take it minutes on larger tables.
_LONG = ("load", "where", "engine-read")


class PypaimonPeer:
    """Each table is in a separate warehouse: ``<home>/<table>/bench.db/t``."""

    def __init__(self, config: BenchConfig) -> None:
        self.paimon: Any = importlib.import_module("pypaimon")
        self.parquet: Any = importlib.import_module("pyarrow.parquet")
        self.dataset: Any = importlib.import_module("pyarrow.dataset")
        self.compute: Any = importlib.import_module("pyarrow.compute")
        self.config = config
        self.home = config.shape / "pypaimon"
        self.scratch = config.scratch / "pypaimon"

    def _open(self, warehouse: Path) -> Any:
        return self.paimon.CatalogFactory.create({"warehouse": str(warehouse)}).get_table("bench.t")

    def _create(self, warehouse: Path) -> Any:
        schema = self.paimon.Schema.from_pyarrow_schema(
            self.parquet.read_schema(next(self.config.data("base").glob("*.parquet"))),
            primary_keys=[KEY],
            options={"bucket": str(self.config.buckets), "write-only": "true"},
        )
        catalog = self.paimon.CatalogFactory.create({"warehouse": str(warehouse)})
        catalog.create_database("bench", True)
        catalog.create_table("bench.t", schema, False)
        return catalog.get_table("bench.t")

    def _write(self, table: Any, source: Path) -> None:
        builder = table.new_batch_write_builder()
        write, commit = builder.new_write(), builder.new_commit()
        for batch in self.dataset.dataset(source).to_batches(batch_size=1_000_000):
            write.write_arrow_batch(batch)
        commit.commit(write.prepare_commit())
        write.close()
        commit.close()

    def _build(self, name: str, source: Path, runs: int) -> None:
        def make(path: Path) -> None:
            prepared = self.config.table(name)
            if prepared.exists():
                copy_table(prepared, path / "bench.db" / "t")
                return
            table = self._create(path)
            self._write(table, source)
            for number in range(runs):
                self._write(table, self.config.data(f"run-{number}"))

        target = self.home / name
        if target.exists() and self.config.table(name).exists() and not (target / "lakelsm").exists():
            shutil.rmtree(target)
        build(target, make)
        if self.config.table(name).exists():
            (target / "lakelsm").touch()

    def prepare(self) -> None:
        """Use or write base, small and state. A table that it wrote has no compacted base, because pypaimon cannot
        compact."""
        self._build("base", self.config.data("base"), 0)
        self._build("small", self.config.data("small"), 0)
        self._build("state", self.config.data("base"), self.config.runs)
        self._build("tiny", self.config.data("tiny"), 0)

    def _scan(self, below: int | None = None, table: str = "state") -> Any:
        builder = self._open(self.home / table).new_read_builder()
        if below is not None:
            builder = builder.with_filter(builder.new_predicate_builder().less_than("quantity", below))
        splits = builder.new_scan().plan().splits()
        return builder.new_read().to_arrow_batch_reader(splits)

    def contenders(self, operation: str) -> list[Contender]:
        """Return those of load, upsert (two table sizes), read, where; engine-read by merge engine; first-row.

        It has partial-update only without sequence groups, so this engine is left out.
        """
        if operation in _LONG and self.config.rows > LONG_ROWS:
            return [left_out(PYPAIMON)]

        def clear() -> None:
            remove(self.scratch)

        def upsert(label: str, table: str, batch: str) -> Contender:
            def write() -> None:
                self._write(self._open(self.scratch), self.config.data(batch))

            return Contender(label, write, lambda: copy_table(self.home / table, self.scratch), clear)

        def count(below: int | None) -> int:
            return sum(batch.num_rows for batch in self._scan(below=below))

        def read() -> tuple[int, ...]:
            sums = [0, 0, 0, 0]
            for batch in self._scan():
                sums[0] += batch.num_rows
                for at, column in enumerate(("id", "quantity", "amount"), 1):
                    sums[at] += self.compute.sum(batch[column]).as_py() or 0
            return tuple(sums)

        name = PYPAIMON
        if operation == "load":
            base = self.config.data("base")
            return [Contender(name, lambda: self._write(self._create(self.scratch), base), clear, clear)]
        if operation == "upsert":
            return [upsert(name, "base", "upsert"), upsert(smaller(name), "small", "upsert-small")]
        if operation == "read":
            return [Contender(name, read, check=lambda sums: check_sums(self.config, *sums))]  # type: ignore[misc]
        if operation == "where":
            check = lambda rows: check_count(self.config, "where", rows)  # noqa: E731
            return [Contender(name, lambda: count(100), check=check)]
        if operation == "engine-read":
            return [self._merging(engine) for engine in (DEDUPLICATE, AGGREGATION)]
        if operation == "first-row":
            return [first_row_contender(name, "pypaimon", str(self.home / "tiny"))]
        return []

    def _merging(self, merge_engine: str) -> Contender:
        """Return a read of lakelsm's table of this merge engine."""

        source = self.config.table(merge_engine)

        def setup() -> None:
            build(self.home / merge_engine, lambda path: copy_table(source, path / "bench.db" / "t"))

        def read() -> int:
            return sum(batch.num_rows for batch in self._scan(table=merge_engine))

        def check(rows: object) -> None:
            check_count(self.config, "rows", rows)  # type: ignore[arg-type]

        return Contender(merging(PYPAIMON, merge_engine), read, setup, check=check)


def open_peer(config: BenchConfig) -> PypaimonPeer:
    """Return the peer for :mod:`benchmarks.peer_runner`."""
    return PypaimonPeer(config)
