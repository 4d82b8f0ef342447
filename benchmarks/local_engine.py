"""Every call of lakelsm without Spark that the harness makes, and pyarrow's scan of the same files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from benchmarks.config import ENGINE_OPERATIONS, WHERE, BenchConfig
from benchmarks.data import SCHEMA
from benchmarks.engine import create, open_table, unread_copies
from benchmarks.first_row import first_row_contender
from benchmarks.merge_engines import MERGE_ENGINES, check_table
from benchmarks.names import ARROW_SCAN, ENGINE, LOCAL, first, merging, smaller
from benchmarks.timing import Contender
from benchmarks.workspace import check_count, check_sums, copy_table, remove


class LocalEngine:
    """lakelsm in this process, on the prepared tables."""

    def __init__(self, config: BenchConfig) -> None:
        self.config = config
        self.scratch = config.scratch / "local"

    def contenders(self, operation: str) -> list[Contender]:
        """Return those of SPEED_OPERATIONS; first-row includes lakelsm on Spark, in a session that it starts itself."""
        if operation in ENGINE_OPERATIONS:
            return [self._engine_contender(operation, name) for name in MERGE_ENGINES]
        if operation == "first-row":
            location = self.config.table("tiny").as_uri()
            return [
                first_row_contender(LOCAL, "lakelsm-local", location),
                first_row_contender(ENGINE, "lakelsm-spark", location),
            ]
        return self._writes(operation) if operation in ("load", "upsert", "compact") else self._reads(operation)

    def _writes(self, operation: str) -> list[Contender]:
        config, scratch = self.config, self.scratch / "written"

        def clear() -> None:
            remove(scratch)

        def load() -> None:
            create(config, scratch).write(ds.dataset(config.data("base")).scanner().to_reader())

        def upsert(name: str, table: str, batch: str) -> Contender:
            def write() -> None:
                open_table(scratch).write(pq.read_table(config.data(batch)))

            return Contender(name, write, lambda: copy_table(config.table(table), scratch), clear)

        if operation == "load":
            return [Contender(LOCAL, load, clear, clear)]
        if operation == "upsert":
            return [upsert(LOCAL, "base", "upsert"), upsert(smaller(LOCAL), "small", "upsert-small")]
        return [self._compaction(LOCAL, config.table("state"), lambda: self._check_rows(scratch), scratch)]

    def _compaction(self, name: str, source: Path, check: Any, scratch: Path) -> Contender:
        checked = False

        def compact() -> Any:
            return open_table(scratch).compact(full=True, engine="local")

        def teardown() -> None:
            nonlocal checked
            if not checked:
                checked = True
                check()
            remove(scratch)

        return Contender(name, compact, lambda: copy_table(source, scratch), teardown)

    def _check_rows(self, path: Path) -> None:
        columns = ["id", "quantity", "amount"]
        table = open_table(path).to_arrow(columns=columns)
        check_sums(self.config, table.num_rows, *(pc.sum(table[name]).as_py() for name in columns))

    def _reads(self, operation: str) -> list[Contender]:
        config, state, copies = self.config, self.config.table("state"), self.scratch / "unread"
        setup, newest = unread_copies(state, copies)

        def clear() -> None:
            remove(copies)

        if operation == "count":
            check = lambda rows: check_count(config, "rows", rows)  # noqa: E731
            return [Contender(LOCAL, lambda: int(open_table(newest()).count(engine="local")), setup, clear, check)]
        where = WHERE if operation == "where" else None

        def read(path: Path) -> int:
            return _drain(open_table(path).to_reader(where=where))

        def scan() -> int:
            files = ds.dataset(json.loads(config.live_files.read_text(encoding="utf-8")))
            condition = None if where is None else pc.field("quantity") < 100
            return _drain(files.scanner(columns=SCHEMA.names, filter=condition).to_reader())

        def check_read(rows: object) -> None:
            check_count(config, "rows" if where is None else "where", rows)  # type: ignore[arg-type]
            if where is None:
                self._check_rows(state)

        return [
            Contender(ARROW_SCAN, scan),
            Contender(first(LOCAL), lambda: read(newest()), setup, clear),
            Contender(LOCAL, lambda: read(state), check=check_read),
        ]

    def _engine_contender(self, operation: str, merge_engine: str) -> Contender:
        config, table = self.config, self.config.table(merge_engine)
        name = merging(LOCAL, merge_engine)

        def check(path: Path) -> None:
            check_table(config, merge_engine, open_table(path).to_arrow())

        if operation == "engine-read":
            return Contender(name, lambda: _drain(open_table(table).to_reader()), check=lambda _: check(table))
        scratch = self.scratch / merge_engine
        return self._compaction(name, table, lambda: check(scratch), scratch)


def _drain(reader: pa.RecordBatchReader) -> int:
    return sum(batch.num_rows for batch in reader)
