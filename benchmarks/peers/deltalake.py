"""delta-rs (PyPI ``deltalake``): MERGE as the upsert, and reads of the resulting copy-on-write table."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from benchmarks.config import KEY, LOCAL_MERGE, BenchConfig
from benchmarks.first_row import first_row_contender
from benchmarks.names import DELTA, smaller
from benchmarks.timing import Contender
from benchmarks.workspace import build, check_count, check_sums, copy_table, remove


class DeltaPeer:
    """Tables ``base``, ``small`` and ``state`` (base plus every run merged) below ``shape/deltalake``."""

    def __init__(self, config: BenchConfig) -> None:
        # Imported by importlib, because deltalake is installed only in its environment.
        self.delta: Any = importlib.import_module("deltalake")
        self.parquet: Any = importlib.import_module("pyarrow.parquet")
        self.dataset: Any = importlib.import_module("pyarrow.dataset")
        self.compute: Any = importlib.import_module("pyarrow.compute")
        self.config = config
        self.home = config.shape / "deltalake"
        self.scratch = config.scratch / "deltalake"

    def _load(self, source: Path, target: Path) -> None:
        reader = self.dataset.dataset(source).scanner().to_reader()
        self.delta.write_deltalake(str(target), reader, mode="overwrite")

    def _merge(self, table: Path, batch: Path) -> None:
        merge = self.delta.DeltaTable(str(table)).merge(
            self.parquet.read_table(batch), predicate=f"t.{KEY} = s.{KEY}", source_alias="s", target_alias="t"
        )
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def prepare(self) -> None:
        """Load the base tables and merge the runs into the state, with one commit each."""
        build(self.home / "base", lambda path: self._load(self.config.data("base"), path))
        build(self.home / "small", lambda path: self._load(self.config.data("small"), path))

        def state(path: Path) -> None:
            copy_table(self.home / "base", path)
            for number in range(self.config.runs):
                self._merge(path, self.config.data(f"run-{number}"))

        def tiny(path: Path) -> None:
            self._load(self.config.data("tiny"), path)
            self._merge(path, self.config.data("tiny-run"))

        build(self.home / "state", state)
        build(self.home / "tiny", tiny)

    def contenders(self, operation: str) -> list[Contender]:
        """Return those of load, upsert (two table sizes), LOCAL_MERGE, read, where, count, compact, first-row."""
        name = DELTA
        state = self.home / "state"

        def clear() -> None:
            remove(self.scratch)

        def upsert(label: str, table: str, batch: str) -> Contender:
            def reset() -> None:
                copy_table(self.home / table, self.scratch)

            return Contender(label, lambda: self._merge(self.scratch, self.config.data(batch)), reset, clear)

        def stream(where: Any) -> int:
            data = self.delta.DeltaTable(str(state)).to_pyarrow_dataset()
            return sum(batch.num_rows for batch in data.scanner(filter=where).to_batches())

        def check_state(_: object) -> None:
            columns = ["id", "quantity", "amount"]
            table = self.delta.DeltaTable(str(state)).to_pyarrow_dataset().to_table(columns)
            sums = [self.compute.sum(table[column]).as_py() for column in columns]
            check_sums(self.config, table.num_rows, *sums)

        def compact() -> None:
            self.delta.DeltaTable(str(self.scratch)).optimize.compact()

        if operation == "load":
            return [Contender(name, lambda: self._load(self.config.data("base"), self.scratch), clear, clear)]
        if operation == "upsert":
            return [upsert(name, "base", "upsert"), upsert(smaller(name), "small", "upsert-small")]
        if operation == LOCAL_MERGE:
            return [upsert(name, "base", "upsert")]
        if operation == "read":
            return [Contender(name, lambda: stream(None), check=check_state)]
        if operation == "where":
            where = self.compute.field("quantity") < 100
            check = lambda rows: check_count(self.config, "where", rows)  # noqa: E731
            return [Contender(name, lambda: stream(where), check=check)]
        if operation == "count":
            return [Contender(name, lambda: self.delta.DeltaTable(str(state)).count())]
        if operation == "compact":
            label = name + " (no runs to merge)"
            return [Contender(label, compact, lambda: copy_table(state, self.scratch), clear)]
        if operation == "first-row":
            return [first_row_contender(name, "deltalake", str(self.home / "tiny"))]
        return []


def open_peer(config: BenchConfig) -> DeltaPeer:
    """Return the peer for :mod:`benchmarks.peer_runner`."""
    return DeltaPeer(config)
